// Tokens as plain data, free of ANTLR, and the checks that need nothing else: stray characters, open strings and
// comments, brackets, nesting. Done before parsing, because a parser that meets an unbalanced bracket reports it far
// from its cause.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "support/diagnostics.h"
#include "support/source.h"

namespace gshard {

/// How deep brackets and operands may nest: recursive stages then fit in any stack.
constexpr std::int64_t kMaxNesting = 256;

enum class TokenRole { Ordinary, Open, Close, End, Comment, Doc, Stray, OpenString, OpenComment };

struct Token {
  TokenRole role = TokenRole::Ordinary;
  std::size_t type = 0;  // the grammar's number
  SourceRange range;
  bool firstOnLine = false;
  bool afterHole = false;       // characters without meaning stood before it
  std::int64_t braceDepth = 0;  // of `{`; an opening and its closing one have the same
};

struct TokenCheck {
  bool parse = true;  // false: too deep to go on
  /// Mistakes that the parser meets at or after this byte follow from an unbalanced bracket and stay silent.
  std::uint32_t unbalancedFrom = std::numeric_limits<std::uint32_t>::max();
};

/// Reports what is wrong with the tokens alone and fills `firstOnLine` and `braceDepth`.
TokenCheck checkTokens(std::vector<Token>& tokens, const SourceManager& sources, DiagSink& sink);

}  // namespace gshard
