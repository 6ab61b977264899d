// argmax and argmin along a split dim: every part names its candidate, and the candidates compete. Two words per row
// and part travel, never the row.
#pragma once

#include "partition/spmd_writer.h"

namespace gshard {

// The axes over which the plan splits a dim of which candidates are taken; empty if it does not.
AxisList candidateAxes(const OpFactors& factors, const OpPlan& plan);

// Writes `op`, whose operand is in its tiles and whose result has its sharding, by way of candidates over `axes`.
void writeSplitCandidates(const Module& module, const Function& function, const Op& op, const AxisList& axes,
                          SpmdWriter& writer);

}  // namespace gshard
