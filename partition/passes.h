// The passes of partition/ and their pipeline.
#pragma once

#include "ir/pass_manager.h"

namespace gshard {

#define GSHARD_PASS(function, name, help, form) void function(Module&, PassContext&);
#include "partition/passes.def"
#undef GSHARD_PASS

namespace pass {
#define GSHARD_PASS(function, name, help, form) \
  inline constexpr Pass function{name, help, &gshard::function, Form::form};
#include "partition/passes.def"
#undef GSHARD_PASS
}  // namespace pass

// From a global program to the SPMD program that every device runs.
std::span<const Pass> partitionPipeline();

}  // namespace gshard
