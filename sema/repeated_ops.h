// RepeatedOps: ops that were emitted once and are wanted again on other values. An optimizer's body is elaborated for
// one weight of a type and repeated for the others. Apart from optimizers.cpp, since it knows ops and values alone.
#pragma once

#include "ir/module.h"

namespace gshard::sema {

class RepeatedOps {
 public:
  // Of the ops of `function` from `firstOp` on, those that `outputs` need; `inputs` are what is read in place of others
  // later. Scalars that follow from no input are the same each time: they are shared, not repeated.
  RepeatedOps(const Function& function, std::size_t firstOp, std::vector<ValueId> inputs, std::vector<ValueId> outputs);

  // Is the value an output, or read by what is repeated?
  bool reads(const Function& function, ValueId value) const;
  // Appends the ops once more, which read `inputs` now; gives the outputs. Of the same function, which has only grown.
  std::vector<ValueId> repeat(Function& function, const std::vector<ValueId>& inputs) const;

 private:
  std::vector<ValueId> inputs_, outputs_;
  std::vector<std::size_t> ops_;               // of the function, in order
  std::uint32_t firstValue_ = 0, values_ = 0;  // that they may define
};

}  // namespace gshard::sema
