// Layout of formatted text, free of ANTLR and of the language: a document says where lines may break, print() decides
// which do so that lines fit (after Wadler, "A prettier printer"). Comments belong to tokens and are placed here, so
// that no rule of the formatter can lose one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gshard {

struct FormatComment {
  std::string text;
  bool ownLine = false;      // stands on lines of its own
  bool endsLine = false;     // `//`, or a block comment that the source ended the line after
  bool blankBefore = false;  // an empty line stood before it
};

struct FormatToken {
  std::string text;
  std::vector<FormatComment> leading, trailing;
  bool blankBefore = false;  // an empty line stood before it (after its leading comments)
  std::int64_t line = 0;     // of its start, in the source
};

struct Doc {
  enum class Kind {
    Concat,
    Token,     // with its comments
    Literal,   // text that is laid out already
    Space,     // one, never at the end of a line
    Line,      // a space, or a line break in a broken group
    SoftLine,  // nothing, or a line break in a broken group
    HardLine,  // always a line break
    Indent,
    Group,         // on one line if it fits
    IfBroken,      // text that only a broken group has
    Leading,       // the comments before a token, each on a line
    LineComments,  // the comments after a token that end its line
  };
  Kind kind = Kind::Concat;
  std::vector<Doc> parts;
  std::string text;
  std::size_t token = 0;
  bool blank = false;   // HardLine: an empty line before; Leading: keep the one between comments and token
  bool forced = false;  // holds a break that cannot be avoided

  static Doc concat(std::vector<Doc> parts);
  static Doc indent(std::vector<Doc> parts);
  static Doc group(std::vector<Doc> parts, bool forced = false);
  static Doc of(Kind kind) {
    Doc doc;
    doc.kind = kind;
    return doc;
  }
  static Doc tokenAt(std::size_t index);
  static Doc literal(std::string text);
  static Doc ifBroken(std::string text);
  static Doc hardLine(bool blank = false);
  static Doc leading(std::size_t token, bool keepBlank);
  static Doc lineComments(std::size_t token);
};

constexpr std::int64_t kFormatWidth = 120;

/// The whole file, ending in a line break (empty when there is nothing).
std::string printDoc(const Doc& doc, const std::vector<FormatToken>& tokens);
/// The document on one line, without the comments that end it and those before it.
std::string printFlat(const Doc& doc, const std::vector<FormatToken>& tokens);
/// In code points.
std::int64_t displayWidth(const std::string& text);

}  // namespace gshard
