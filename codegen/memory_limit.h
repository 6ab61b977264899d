// --mem-limit: functions whose planned peak is over it are errors before anything is emitted. The plan is exact, so a
// program that passes does not run out of memory.
#pragma once

#include "codegen/program_tables.h"

namespace gshard {

// One E0501 per such function, at the line of its peak, with the three largest values alive there. True if there was
// one.
bool exceedsMemory(const Module& module, const std::vector<PlannedFunction>& functions, const FixedMemory& fixed,
                   ExtentTable& extents, std::int64_t limit, DiagSink& diag);

}  // namespace gshard
