// The rows of codegen/diagnostics.def as typed values: diag.emit(range, diag::TargetUnknown, …).
#pragma once

#include "support/diagnostics.h"

namespace gshard::diag {
#define GSHARD_DIAG(code, severity, name, text, types) \
  inline constexpr Diag<GSHARD_DIAG_TYPES types> name{#code, Severity::severity, #name, text};
#include "codegen/diagnostics.def"
#undef GSHARD_DIAG
}  // namespace gshard::diag
