// gshard_rt_sort: the first elements of a row in order. Elements become unsigned keys that compare as the language
// orders them (NaN the largest, -0 equal to +0), each with its place: all entries differ, so that any sort is stable.
#include <algorithm>
#include <cstring>

#include "runtime/abi.h"
#include "runtime/element_type.h"

namespace gshard::runtime {

namespace {

// Keys of 4 bytes share a word with the place.
class Packed {
 public:
  Packed() = default;
  Packed(std::uint32_t key, std::int64_t place) : bits_(std::uint64_t{key} << 32 | static_cast<std::uint64_t>(place)) {}
  std::int64_t place() const { return static_cast<std::int64_t>(bits_ & 0xFFFFFFFFu); }
  friend bool operator<(const Packed& a, const Packed& b) { return a.bits_ < b.bits_; }

 private:
  std::uint64_t bits_ = 0;
};

class Wide {
 public:
  Wide() = default;
  Wide(std::uint64_t key, std::int64_t place) : key_(key), place_(place) {}
  std::int64_t place() const { return place_; }
  friend bool operator<(const Wide& a, const Wide& b) {
    return a.key_ != b.key_ ? a.key_ < b.key_ : a.place_ < b.place_;
  }

 private:
  std::uint64_t key_ = 0;
  std::int64_t place_ = 0;
};

// Bits of floats ascend with the value among positive ones and descend among negative ones.
std::uint32_t keyOf(float x) {
  if (x != x) return ~std::uint32_t{0};
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x == 0 ? 0.0f : x);
  return (bits >> 31) != 0 ? ~bits : bits | std::uint32_t{1} << 31;
}
std::uint64_t keyOf(double x) {
  if (x != x) return ~std::uint64_t{0};
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x == 0 ? 0.0 : x);
  return (bits >> 63) != 0 ? ~bits : bits | std::uint64_t{1} << 63;
}
std::uint32_t keyOf(std::int32_t x) {
  return static_cast<std::uint32_t>(x) ^ std::uint32_t{1} << 31;
}
std::uint64_t keyOf(std::int64_t x) {
  return static_cast<std::uint64_t>(x) ^ std::uint64_t{1} << 63;
}
std::uint32_t keyOf(std::uint8_t x) {
  return x;
}

struct Row {
  const void* elements;
  void *values, *indices, *workspace;
  std::int64_t size, kept, stride, outputStride;
  bool descending;
};

template <class Entry, class Element, class ToNumber>
void sortRow(const Row& row, ToNumber toNumber) {
  const Element* elements = static_cast<const Element*>(row.elements);
  Entry* entries = static_cast<Entry*>(row.workspace);
  for (std::int64_t i = 0; i < row.size; ++i) {
    const auto key = keyOf(toNumber(elements[i * row.stride]));
    entries[i] = Entry(row.descending ? ~key : key, i);  // the place always ascends: the lowest of equals comes first
  }
  if (row.kept < row.size) std::nth_element(entries, entries + row.kept, entries + row.size);
  std::sort(entries, entries + row.kept);
  for (std::int64_t i = 0; i < row.kept; ++i) {
    const std::int64_t place = entries[i].place();
    if (row.values != nullptr) static_cast<Element*>(row.values)[i * row.outputStride] = elements[place * row.stride];
    if (row.indices != nullptr)
      static_cast<std::int32_t*>(row.indices)[i * row.outputStride] = static_cast<std::int32_t>(place);
  }
}

void sortTyped(ElementType type, const Row& row) {
  const auto same = [](auto x) { return x; };
  switch (type) {
    case ElementType::F32:
      return sortRow<Packed, float>(row, same);
    case ElementType::F64:
      return sortRow<Wide, double>(row, same);
    case ElementType::BF16:
      return sortRow<Packed, std::uint16_t>(row, &bfloatToFloat);
    case ElementType::F16:
      return sortRow<Packed, std::uint16_t>(row, &halfToFloat);
    case ElementType::I32:
      return sortRow<Packed, std::int32_t>(row, same);
    case ElementType::I64:
      return sortRow<Wide, std::int64_t>(row, same);
    case ElementType::U8:
    case ElementType::Bool:
      return sortRow<Packed, std::uint8_t>(row, same);
  }
}

}  // namespace

}  // namespace gshard::runtime

extern "C" void gshard_rt_sort(const void* elements, void* values, void* indices, void* workspace, int64_t dtype,
                               int64_t size, int64_t kept, int64_t stride, int64_t outputStride, int64_t descending) {
  gshard::runtime::sortTyped(static_cast<gshard::runtime::ElementType>(dtype),
                             {elements, values, indices, workspace, size, kept, stride, outputStride, descending != 0});
}
