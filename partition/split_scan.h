// cumsum along a split dim: every part runs by itself, beginning with the totals of the parts before it. One word per
// row and part travels, nothing as long as the dim.
#pragma once

#include "partition/spmd_writer.h"

namespace gshard {

// The axes over which the plan splits a dim that is scanned; empty if it does not.
AxisList scanAxes(const OpFactors& factors, const OpPlan& plan);

// Writes `op`, whose operand is in its tiles and whose result has its sharding, by way of totals over `axes`.
void writeSplitScan(const Module& module, const Function& function, Op op, const AxisList& axes, SpmdWriter& writer);

}  // namespace gshard
