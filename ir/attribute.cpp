// Attributes: sorted by name; literals compare by bits.
#include "ir/attribute.h"

#include <algorithm>
#include <bit>

namespace gshard {

bool operator==(const Literal& a, const Literal& b) {
  if (a.ints != b.ints || a.floats.size() != b.floats.size()) return false;
  for (std::size_t i = 0; i < a.floats.size(); ++i) {
    const bool bothNan = a.floats[i] != a.floats[i] && b.floats[i] != b.floats[i];
    if (!bothNan && std::bit_cast<std::uint64_t>(a.floats[i]) != std::bit_cast<std::uint64_t>(b.floats[i]))
      return false;
  }
  return true;
}

Literal intLiteral(std::int64_t value) {
  return {{value}, {}};
}
Literal floatLiteral(double value) {
  return {{}, {value}};
}

namespace {
template <class Items>
auto lowerBound(Items& items, std::string_view name) {
  return std::lower_bound(items.begin(), items.end(), name,
                          [](const auto& item, std::string_view key) { return item.first < key; });
}
}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [known, value] : items_) {  // a handful at most: their lengths tell most apart
    if (known == name) return &value;
  }
  return nullptr;
}

void Attributes::set(std::string name, Attribute value) {
  const auto place = lowerBound(items_, name);
  if (place != items_.end() && place->first == name) {
    place->second = std::move(value);
  } else {
    items_.emplace(place, std::move(name), std::move(value));
  }
}

void Attributes::erase(std::string_view name) {
  const auto place = lowerBound(items_, name);
  if (place != items_.end() && place->first == name) items_.erase(place);
}

}  // namespace gshard
