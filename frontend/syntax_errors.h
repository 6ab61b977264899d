// Words for what the parser met instead of what the grammar allows; free of ANTLR, whose own messages are never shown.
#pragma once

#include <string>
#include <vector>

#include "frontend/tokens.h"
#include "support/diagnostics.h"

namespace gshard {

/// Where in the grammar the parser stood, as far as wording needs it.
enum class SyntaxPlace { Other, Declaration, Member, Statement, Assignment, List };

/// `at` is an index into `tokens`, the visible tokens (comments left out) ending in the end of the file.
struct Unexpected {
  const std::vector<Token>& tokens;
  std::size_t at = 0;
  SyntaxPlace place = SyntaxPlace::Other;
  /// What the grammar allows: spellings as `->` or `let`, and the classes `NAME`, `INT`, `FLOAT`, `STRING`, `END`.
  std::vector<std::string> expected;
  std::string_view foundText;  // filled by reportUnexpected
};

void reportUnexpected(Unexpected what, const SourceManager& sources, DiagSink& sink);

}  // namespace gshard
