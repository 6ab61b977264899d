// argmax, argmin and top_k along a split dim: every part names its candidates, and these compete. Two words per
// candidate travel, never the row.
#pragma once

#include "partition/spmd_writer.h"

namespace gshard {

// The axes over which the plan splits a dim of which candidates are taken; empty if it does not.
AxisList candidateAxes(const OpFactors& factors, const OpPlan& plan);

// How many candidates a part names per row when `dim` is cut into `parts`: one, or as many as the result has places.
std::int64_t candidatesOfPart(const OpFactors& factors, std::int64_t size, std::int64_t parts);

// Writes `op`, whose operand is in its tiles and whose result has its sharding, by way of candidates over `axes`.
void writeSplitCandidates(const Module& module, const Function& function, const Op& op, const OpFactors& factors,
                          const AxisList& axes, SpmdWriter& writer);

}  // namespace gshard
