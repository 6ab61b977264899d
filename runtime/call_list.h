// The last calls (collectives, agreements, barriers) of a device. All devices make the same calls in the same order;
// where lists part, the program or the runtime has a bug, and these few numbers are enough to name the line.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gshard::runtime {

constexpr std::uint32_t kCallsKept = 64;

struct CallList {
  std::uint32_t count = 0;               // calls made so far, the one that goes on included
  std::int32_t labels[kCallsKept] = {};  // of call number c (from 1): at c % kCallsKept

  bool remembers(std::uint32_t call) const { return call >= 1 && call <= count && count - call < kCallsKept; }
  std::int32_t at(std::uint32_t call) const { return labels[call % kCallsKept]; }
};

struct CallDifference {
  std::uint32_t call = 0;
  std::size_t device = 0, other = 0;
};

// The first call, of those that are remembered, that is not the same on all devices; told of `own` where it can be.
inline std::optional<CallDifference> firstDifference(const std::vector<CallList>& lists, std::size_t own) {
  std::uint32_t newest = 0;
  for (const CallList& list : lists) newest = std::max(newest, list.count);
  for (std::uint32_t call = newest < kCallsKept ? 1 : newest - kCallsKept + 1; call <= newest; ++call) {
    std::size_t device = own;
    for (std::size_t i = 0; i < lists.size() && !lists[device].remembers(call); ++i) device = i;
    for (std::size_t other = 0; other < lists.size(); ++other) {
      if (lists[device].remembers(call) && lists[other].remembers(call) &&
          lists[device].at(call) != lists[other].at(call)) {
        return CallDifference{call, device, other};
      }
    }
  }
  return std::nullopt;
}

}  // namespace gshard::runtime
