// What holds for every message, whatever the text that it is about: it can be shown in each form.
#pragma once

#include "support/render.h"
#include "tests/fuzz/bytes/finding.h"

namespace gshard::fuzz {

inline void renderAll(const CollectingSink& sink, const SourceManager& sources) {
  for (const Diagnostic& diagnostic : sink.diagnostics()) {
    if (diagnostic.code.empty() || diagnostic.message.empty()) finding("a message without code or words");
    renderText(diagnostic, sources);
    renderShort(diagnostic, sources);
    renderJson(diagnostic, sources);
  }
}

}  // namespace gshard::fuzz
