// Cutting IR text into tokens.
#include "ir/text_lexer.h"

#include <charconv>

namespace gshard {

namespace {
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isNamePart(char c) {
  return isLetter(c) || isDigit(c) || c == '.';
}

class Lexer {
 public:
  Lexer(FileId file, std::string_view text) : file_(file), text_(text) {}

  std::vector<IrToken> all() {
    while (skipSpace()) next();
    start_ = at_;
    push(IrTokenKind::End, "");
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  // False at the end of the text.
  bool skipSpace() {
    while (at_ < text_.size()) {
      if (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
        ++at_;
      } else if (peek() == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      } else {
        return true;
      }
    }
    return false;
  }

  void push(IrTokenKind kind, std::string text) {
    tokens_.push_back(
        {kind, std::move(text), {file_, static_cast<std::uint32_t>(start_), static_cast<std::uint32_t>(at_)}});
  }

  std::string takeNameParts() {
    const std::size_t from = at_;
    while (isNamePart(peek())) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }

  void next() {
    start_ = at_;
    const char c = peek();
    if (c == '%') {
      ++at_;
      push(IrTokenKind::Value, takeNameParts());
    } else if (c == '"') {
      string();
    } else if (c == '-' && peek(1) == '>') {
      at_ += 2;
      push(IrTokenKind::Mark, "->");
    } else if (isDigit(c) || c == '-') {
      number();
    } else if (isLetter(c)) {
      push(IrTokenKind::Name, takeNameParts());
    } else {
      ++at_;
      const bool isMark = std::string_view("{}[]():,=@").find(c) != std::string_view::npos;
      push(isMark ? IrTokenKind::Mark : IrTokenKind::Bad, std::string(1, c));
    }
  }

  void number() {
    ++at_;
    while (true) {
      const char c = peek();
      const bool isSign = (c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!isNamePart(c) && !isSign) break;
      ++at_;
    }
    push(IrTokenKind::Number, std::string(text_.substr(start_, at_ - start_)));
  }

  void string() {
    std::string result;
    ++at_;
    while (at_ < text_.size() && peek() != '"' && peek() != '\n') {
      if (peek() == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        escape(result);
      } else {
        result += text_[at_++];
      }
    }
    if (peek() != '"') {
      push(IrTokenKind::Bad, "\"");
      return;
    }
    ++at_;
    push(IrTokenKind::String, std::move(result));
  }

  // After the backslash: the escapes that support/text.h's quoted() writes.
  void escape(std::string& result) {
    const char c = text_[at_++];
    if (c == 'n') {
      result += '\n';
    } else if (c == 't') {
      result += '\t';
    } else if (c == 'r') {
      result += '\r';
    } else if (c == 'u' && at_ + 4 <= text_.size()) {
      int code = 0;
      std::from_chars(text_.data() + at_, text_.data() + at_ + 4, code, 16);
      result += static_cast<char>(code);
      at_ += 4;
    } else {
      result += c;
    }
  }

  FileId file_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;
  std::vector<IrToken> tokens_;
};
}  // namespace

std::vector<IrToken> lexIr(FileId file, std::string_view text) {
  return Lexer(file, text).all();
}

std::string describeToken(const IrToken& token) {
  switch (token.kind) {
    case IrTokenKind::Name:
    case IrTokenKind::Number:
    case IrTokenKind::Mark:
    case IrTokenKind::Bad:
      return "`" + token.text + "`";
    case IrTokenKind::Value:
      return "`%" + token.text + "`";
    case IrTokenKind::String:
      return "\"" + token.text + "\"";
    case IrTokenKind::End:
      return "the end of the text";
  }
  return "";
}

}  // namespace gshard
