// What else could have moved a value where collectives stand in an SPMD program: for reports, worked out again when
// they are asked for, so that compiling pays nothing for it.
#pragma once

#include "partition/reshard.h"

namespace gshard {

// Of the list of collectives that begins with op `index` (an op that continues a list has none of its own).
std::vector<RejectedPlan> rejectedAt(const Module& module, const Function& function, std::size_t index);

}  // namespace gshard
