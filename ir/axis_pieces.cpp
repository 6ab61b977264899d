// Cutting mesh axes; see axis_pieces.h.
#include "ir/axis_pieces.h"

#include <algorithm>

namespace gshard {

void AxisPieces::add(const AxisRef& ref) {
  cuts_[ref.axis].push_back(ref.pre);
  cuts_[ref.axis].push_back(ref.pre * ref.size);
}

void AxisPieces::add(const std::vector<AxisRef>& refs) {
  for (const AxisRef& ref : refs) add(ref);
}

std::vector<AxisRef> AxisPieces::all() const {
  std::vector<AxisRef> result;
  for (const auto& [axis, cuts] : cuts_) {
    std::vector<std::int64_t> sorted = cuts;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i] % sorted[i - 1] == 0) result.push_back({axis, sorted[i - 1], sorted[i] / sorted[i - 1]});
    }
  }
  return result;
}

bool covers(const std::vector<AxisRef>& axes, const AxisRef& piece) {
  return std::any_of(axes.begin(), axes.end(), [&](const AxisRef& ref) { return overlaps(ref, piece); });
}

std::optional<Reduction> partialOver(const Sharding& sharding, const AxisRef& piece) {
  for (const PartialAxis& each : sharding.partial) {
    if (overlaps(each.axis, piece)) return each.reduction;
  }
  return std::nullopt;
}

}  // namespace gshard
