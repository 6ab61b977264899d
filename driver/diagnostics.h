// The rows of driver/diagnostics.def as typed values.
#pragma once

#include "support/diagnostics.h"

namespace gshard::diag {
#define GSHARD_DIAG(code, severity, name, text, types) \
  inline constexpr Diag<GSHARD_DIAG_TYPES types> name{#code, Severity::severity, #name, text};
#include "driver/diagnostics.def"
#undef GSHARD_DIAG
}  // namespace gshard::diag
