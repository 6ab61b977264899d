// eliminate-dead-code: ops have no effects, so what no result needs goes.
#include "ir/passes.h"

namespace gshard {

void eliminateDeadCode(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    const std::size_t ops = function.ops.size();
    eraseUnused(function);
    if (function.ops.size() == ops) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
