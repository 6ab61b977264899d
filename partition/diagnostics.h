// Messages of partition/ as typed rows (partition/diagnostics.def).
#pragma once

#include "support/diagnostics.h"

namespace gshard::diag {

#define GSHARD_DIAG(code, severity, name, text, types) \
  inline constexpr Diag<GSHARD_DIAG_TYPES types> name{#code, Severity::severity, #name, text};
#include "partition/diagnostics.def"
#undef GSHARD_DIAG

}  // namespace gshard::diag
