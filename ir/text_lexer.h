// Tokens of the IR's text form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/source.h"

namespace gshard {

enum class IrTokenKind : std::uint8_t {
  Name,    // net.w1
  Value,   // %x; text without the %
  String,  // text without quotes, escapes resolved
  Number,  // -1.5e-3
  Mark,    // one of { } [ ] ( ) : , = @ or ->
  End,
  Bad,  // a character that starts no token
};

struct IrToken {
  IrTokenKind kind = IrTokenKind::End;
  std::string text;
  SourceRange range;
};

// The last token is always End.
std::vector<IrToken> lexIr(FileId file, std::string_view text);
std::string describeToken(const IrToken& token);  // "`mesh`", "the end of the text"

}  // namespace gshard
