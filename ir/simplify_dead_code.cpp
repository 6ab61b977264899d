// eliminate-dead-code: ops have no effects, so what no result needs goes.
#include "ir/passes.h"

namespace gshard {

void eliminateDeadCode(Module& module, PassContext&) {
  for (Function& function : module.functions) eraseUnused(function);
}

}  // namespace gshard
