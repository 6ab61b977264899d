// Fusion: which maps share a kernel, which are computed inside the kernels of their users, and which values lie in
// memory.
//
// Maps over one iteration space that feed each other become one kernel with several outputs, if that leaves no path out
// of it and back in (through a collective, a product, a reduction). A group whose only result is read once, or by
// reductions alone, becomes part of its readers. No element's value depends on any of this.
#pragma once

#include "codegen/views.h"

namespace gshard {

struct FusionPlan {
  std::vector<int> group;     // per op: of Map, Take and WindowRead ops the group's number (its first op), else -1
  std::vector<bool> inlined;  // per op: ops of those kinds without a kernel of their own
  std::vector<bool> stored;   // per value: has a buffer
};

// `isProduct`: contractions that read their operands from memory as they lie (GEMM).
FusionPlan planFusion(const FunctionViews& views, const std::vector<bool>& isProduct, bool enabled);

}  // namespace gshard
