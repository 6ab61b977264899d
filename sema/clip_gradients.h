// Clipping by the global norm: all gradients are scaled alike, so that their joint 2-norm is at most a limit. Apart
// from training, because it is plain IR: one number per gradient, whose sums partitioning completes once per set of
// axes.
#pragma once

#include "ir/builder.h"

namespace gshard::sema {

// `limit` is a float scalar above 0; its dtype is that of the norm. A norm that is no number makes all gradients so.
std::vector<ValueId> clipByGlobalNorm(Builder& builder, std::span<const ValueId> gradients, ValueId limit,
                                      SourceRange range);

}  // namespace gshard::sema
