// What all transports share: ownership of reduced elements and the counting of bytes.
#include "runtime/transport.h"

#include <algorithm>
#include <cstdio>

#include "runtime/failure.h"

namespace gshard::runtime {

// Made when the program starts, since handlers of crashes read it and may not allocate.
static const std::string kOutside[] = {"start-up", "the agreement after a call", "a barrier outside the plan",
                                       "the collection of a result", "its end"};

const std::string& Transport::label(int index) const {
  if (index >= 0 && index < static_cast<int>(labels_.size())) return labels_[static_cast<std::size_t>(index)];
  return kOutside[index >= kEnded && index < 0 ? kStarting - index : 0];
}

std::string Transport::waitedText(int where, std::int64_t step, double seconds) const {
  char waited[32];
  std::snprintf(waited, sizeof waited, "%.3g", seconds);
  return diagText(diag::WaitedTooLong, step, rank_, std::string(waited), label(where));
}

std::string Transport::differenceText(const std::vector<CallList>& lists) const {
  const std::optional<CallDifference> found = gshard::runtime::firstDifference(lists, static_cast<std::size_t>(rank_));
  if (!found) return "";
  const auto side = [&](std::size_t device) {
    return label(lists[device].at(found->call)) + " on device " + std::to_string(device);
  };
  return diagText(diag::CallDiffers, rank_, found->call, side(found->device), side(found->other));
}

int positionIn(const std::vector<int>& group, int rank) {
  const auto found = std::find(group.begin(), group.end(), rank);
  return found == group.end() ? -1 : static_cast<int>(found - group.begin());
}

OwnedPart ownedPart(const ReducePart& part, int position, int members) {
  OwnedPart owned{part.source, part.target, 0, 0};
  if (part.scatterDim < 0) {
    const std::int64_t count = part.source.extents.count();
    const std::int64_t chunk = (count + members - 1) / members;
    owned.begin = std::min(count, position * chunk);
    owned.end = std::min(count, owned.begin + chunk);
  } else {
    const int dim = part.scatterDim;
    const std::int64_t size = part.source.extents.dim[dim];
    const std::int64_t first = std::min(size, position * part.chunk);
    const std::int64_t extent = std::min(size, first + part.chunk) - first;
    owned.source.offset += first * part.source.strides.dim[dim] * elementBytes(part.type);
    owned.source.extents.dim[dim] = extent;
    owned.target.extents = owned.source.extents;
    owned.end = owned.source.extents.count();
  }
  coalesce(owned.source, owned.target);
  return owned;
}

std::int64_t receivedBytes(const MovePlan& plan, int rank) {
  std::int64_t bytes = 0;
  for (const BoxCopy& copy : plan.copies) {
    if (copy.from != rank) bytes += copy.target.extents.count() * elementBytes(copy.type);
  }
  return bytes;
}

std::int64_t receivedBytes(const ReducePlan& plan, int rank) {
  const int members = static_cast<int>(plan.group.size());
  const int position = positionIn(plan.group, rank);
  if (position < 0) return 0;
  std::int64_t bytes = 0;
  for (const ReducePart& part : plan.parts) {
    const OwnedPart owned = ownedPart(part, position, members);
    const std::int64_t own = owned.end - owned.begin;
    std::int64_t elements = (members - 1) * own;
    if (part.scatterDim < 0) elements += part.source.extents.count() - own;
    bytes += elements * elementBytes(part.type);
  }
  return bytes;
}

}  // namespace gshard::runtime
