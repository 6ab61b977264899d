// Diagnostics of sema as typed constants, from the rows of diagnostics.def. Mistakes in shapes and arguments of ops
// have the codes of ir/ (E03xx), also when sema finds them first: one mistake, one code. Inside gshard::sema `diag::`
// names both.
#pragma once

#include "ir/diagnostics.h"
#include "support/diagnostics.h"

namespace gshard::sema::diag {
using namespace gshard::diag;
#define GSHARD_DIAG(code, severity, name, text, types) \
  inline constexpr Diag<GSHARD_DIAG_TYPES types> name{#code, Severity::severity, #name, text};
#include "sema/diagnostics.def"
#undef GSHARD_DIAG
}  // namespace gshard::sema::diag
