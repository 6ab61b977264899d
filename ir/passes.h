// The passes of ir/ on global programs, and their pipeline.
#pragma once

#include "ir/pass_manager.h"

namespace gshard {

#define GSHARD_PASS(function, name, help, form) void function(Module&, PassContext&);
#include "ir/passes.def"
#undef GSHARD_PASS

namespace pass {
#define GSHARD_PASS(function, name, help, form) \
  inline constexpr Pass function{name, help, &gshard::function, Form::form};
#include "ir/passes.def"
#undef GSHARD_PASS
}  // namespace pass

// From the program that sema built to the one that is partitioned.
std::span<const Pass> globalPipeline();

}  // namespace gshard
