// One step of propagation: what an op says about the splits of its tensors, seen from what they are now. Pure, so that
// it can be tested op by op; the walk over a module is in propagate_shardings.cpp.
#pragma once

#include "partition/factor_axes.h"

namespace gshard {

// A tensor of the op as the step sees it.
struct StepTensor {
  const Type* type = nullptr;
  const std::vector<AxisList>* dims = nullptr;  // its split so far
  const std::vector<bool>* fixed = nullptr;     // per dim: not to be changed
  bool source = true;                           // its split may be handed on
  bool target = true;                           // its split may be refined
};

// A longer split of one dim of one tensor, and who asks for it.
struct Refinement {
  std::size_t tensor = 0;  // as in tensorsOf
  std::int64_t dim = 0;
  AxisList axes;           // the whole new list of the dim
  int factor = 0;          // through which it came
  std::size_t from = 0;    // the tensor that has it
  std::int64_t bytes = 0;  // of that tensor
};

struct StepResult {
  std::vector<Refinement> refinements;  // free of conflict
  std::vector<Refinement> contested;    // further ones, each opposed by another claim of this op
};

// `windows`: factors that relate dims by a window are handed on as well (the last to be, since they cost a halo).
StepResult propagateStep(const OpFactors& factors, std::span<const StepTensor> tensors, bool windows);

}  // namespace gshard
