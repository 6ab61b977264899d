// Reverse-mode differentiation on the global IR, before partitioning.
#pragma once

#include "ir/builder.h"
#include "ir/recompute.h"

namespace gshard {

// Appends the ops that compute the gradients of scalar `y` by each of `xs` (values defined before their uses;
// parameters are arguments). Gradients are of the type of x; a value that y does not depend on has gradient zero. Ops
// get Phase::Backward and the source range of the op they come from. Integers and what is NotDifferentiable end a path.
// Of `regions`, backward reads clones (ir/recompute.h).
std::vector<ValueId> gradients(Builder& builder, ValueId y, std::span<const ValueId> xs,
                               const RecomputedRegions& regions = {});

}  // namespace gshard
