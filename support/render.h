// Diagnostics as people and tools read them: text with source lines and carets, and JSON. The only place that lays out
// messages; terminal, files and editors all get theirs here (ux.md section 2).
#pragma once

#include <string>

#include "support/diagnostics.h"
#include "support/source.h"

namespace gshard {

struct RenderOptions {
  bool color = false;
  bool explainLine = true;  // the closing `= see: gshardc explain E0312`
};

/// The text form, several lines, ending in a line break.
std::string renderText(const Diagnostic& diagnostic, const SourceManager& sources, const RenderOptions& options = {});
/// One line: "file:line:col: error[E0312]: message", ending in a line break.
std::string renderShort(const Diagnostic& diagnostic, const SourceManager& sources);
/// One JSON object on one line, ending in a line break.
std::string renderJson(const Diagnostic& diagnostic, const SourceManager& sources);

}  // namespace gshard
