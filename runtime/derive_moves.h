// From a symbolic move (two tiles and an index map) to the boxes that one device reads: the intersections that
// design.md section 4 leaves to each device at start. One derivation serves gather, all_to_all, permute, slice and
// exchange, since all are the identity (or an index map) on a global value.
#pragma once
#include <vector>

#include "runtime/extents.h"
#include "runtime/transport.h"

namespace gshard::runtime {

// Boxes of `transfer.to` on `reader` that devices of `group` hold in `transfer.from`. Of several holders of an element,
// the reader itself, then the nearest following member sends. `pairs` by device, for the members of the group.
std::vector<BoxCopy> deriveCopies(const ExtentTable& table, const gshard_rt_transfer& transfer, int reader,
                                  const std::vector<int>& group, const std::vector<std::vector<std::int64_t>>& pairs);

}  // namespace gshard::runtime
