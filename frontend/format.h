// The formatter's entrance: `gshardc fmt`. One style, no options (docs/language.md shows it).
#pragma once

#include <optional>
#include <string>

#include "support/diagnostics.h"
#include "support/source.h"

namespace gshard {

/// The file in the one style. Every comment and the AST stay as they are (imports are sorted); formatting the result
/// again changes nothing. Nothing when the file has syntax errors, which are reported.
std::optional<std::string> formatFile(FileId file, const SourceManager& sources, DiagSink& sink);

}  // namespace gshard
