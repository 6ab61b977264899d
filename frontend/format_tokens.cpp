// Which comments belong to which token; see format_builder.h.
#include <algorithm>

#include "frontend/format_builder.h"

namespace gshard {

using grammar::GsdLexer;

bool isOpening(std::size_t type) {
  return type == GsdLexer::LPAREN || type == GsdLexer::LBRACK;
}

bool isClosing(std::size_t type) {
  return type == GsdLexer::RPAREN || type == GsdLexer::RBRACK || type == GsdLexer::RBRACE;
}

namespace {

std::string withoutCarriageReturns(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] == '\n')) continue;
    result += text[i];
  }
  return result;
}

}  // namespace

void DocBuilder::collectTokens() {
  std::vector<const antlr4::Token*> comments;
  visible_.resize(tree_.stream.size());
  for (std::size_t i = 0; i < tree_.stream.size(); ++i) {
    const antlr4::Token* token = tree_.stream.get(i);
    if (i == 0) file_ = tree_.offsets.range(*token).file;
    if (token->getChannel() != antlr4::Token::DEFAULT_CHANNEL) {
      comments.push_back(token);
      continue;
    }
    visible_[i] = tokens_.size();
    FormatToken format;
    const SourceRange range = tree_.offsets.range(*token);
    if (token->getType() != antlr4::Token::EOF) format.text = tree_.sources.text(range);
    format.line = lineOf(range.begin);
    tokens_.push_back(std::move(format));
    attach(i, comments);
    comments.clear();
  }
}

// Comments on the line of the token before stay with it, all others go with what follows.
void DocBuilder::attach(std::size_t next, const std::vector<const antlr4::Token*>& comments) {
  const antlr4::Token* token = tree_.stream.get(next);
  const std::size_t type = token->getType();
  const std::size_t own = visible_[next];
  const SourceRange range = tree_.offsets.range(*token);
  const bool sticks =
      own > 0 && (type == GsdLexer::COMMA || isClosing(type));  // a comment before it belongs to what it ends
  std::uint32_t lastLine = 0;
  if (own > 0) {
    // The end of the token before: strings and names stand on one line.
    lastLine = static_cast<std::uint32_t>(tokens_[own - 1].line);
  }
  std::vector<FormatComment> leading;
  for (std::size_t i = 0; i < comments.size(); ++i) {
    const SourceRange at = tree_.offsets.range(*comments[i]);
    FormatComment comment;
    comment.text = withoutCarriageReturns(tree_.sources.text(at));
    const bool isBlock = comment.text.starts_with("/*");
    if (!isBlock) {
      while (comment.text.ends_with(' ') || comment.text.ends_with('\t')) comment.text.pop_back();
    }
    const std::uint32_t begin = lineOf(at.begin), end = lineOf(at.end);
    const bool sameLine = own > 0 && begin == lastLine && leading.empty();
    comment.blankBefore = lastLine != 0 && begin > lastLine + 1;
    // Only block comments and the token after it on its line: it stands before the token.
    bool before = isBlock && begin == end && lineOf(range.begin) == end && type != antlr4::Token::EOF && !sticks;
    for (std::size_t k = i + 1; k < comments.size() && before; ++k) {
      const SourceRange other = tree_.offsets.range(*comments[k]);
      before = tree_.sources.text(other).starts_with("/*") && lineOf(other.end) == end;
    }
    lastLine = end;
    if (before) {
      if (!leading.empty() || !sameLine) comment.blankBefore = comment.blankBefore && leading.empty();
      leading.push_back(std::move(comment));
      continue;
    }
    if (sameLine) {
      tokens_[own - 1].trailing.push_back(std::move(comment));
      continue;
    }
    comment.ownLine = true;
    if (i > 0 && !leading.empty() && lineOf(tree_.offsets.range(*comments[i - 1]).end) == begin) {
      leading.back().text += (isBlock ? " " : "  ") + comment.text;  // of one line: kept together
      continue;
    }
    leading.push_back(std::move(comment));
  }
  tokens_[own].blankBefore = lastLine != 0 && static_cast<std::uint32_t>(tokens_[own].line) > lastLine + 1;
  // Comments on lines of their own before a comma go behind it.
  if (own > 0 && tokens_[own - 1].text == ",") {
    std::vector<FormatComment>& moved = tokens_[own - 1].leading;
    leading.insert(leading.begin(), moved.begin(), moved.end());
    moved.clear();
  }
  tokens_[own].leading = std::move(leading);
}

bool DocBuilder::breaksInside(std::size_t from, std::size_t to) const {
  const auto breaks = [](const FormatComment& comment) {
    return comment.ownLine || comment.text.starts_with("//") || comment.text.find('\n') != std::string::npos;
  };
  for (std::size_t i = from; i <= to; ++i) {
    const FormatToken& token = tokens_[i];
    if (i > from && std::any_of(token.leading.begin(), token.leading.end(), breaks)) return true;
    if (i < to && std::any_of(token.trailing.begin(), token.trailing.end(), breaks)) return true;
  }
  return false;
}

}  // namespace gshard
