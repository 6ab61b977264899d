// Checks of the token list; see tokens.h.
#include "frontend/tokens.h"

#include <algorithm>

#include "frontend/diagnostics.h"

namespace gshard {
namespace {

char closing(char open) {
  return open == '(' ? ')' : open == '[' ? ']' : '}';
}

class BracketCheck {
 public:
  BracketCheck(std::vector<Token>& tokens, const SourceManager& sources, DiagSink& sink)
      : tokens_(tokens), sources_(sources), sink_(sink) {}

  TokenCheck run() {
    for (Token& token : tokens_) {
      token.braceDepth = braces_;
      if (token.role == TokenRole::Open) open(token);
      if (token.role == TokenRole::Close) close(token);
      if (token.role == TokenRole::End) end(token);
      if (!result_.parse) break;
    }
    return result_;
  }

 private:
  char spelled(const Token& token) const { return sources_.text(token.range)[0]; }

  void open(const Token& token) {
    if (spelled(token) == '{') ++braces_;
    opened_.push_back(&token);
    if (static_cast<std::int64_t>(opened_.size()) <= kMaxNesting) return;
    sink_.emit(token.range, diag::NestedTooDeep, kMaxNesting).help("give an inner part a name with `let`");
    result_.parse = false;
  }

  void close(Token& token) {
    const char c = spelled(token);
    // A `}` ends everything up to its `{`: what stands open in between was forgotten. Other brackets do so only within
    // the innermost `{`, so that one wrong `)` does not eat the rest of the file.
    std::size_t depth = opened_.size();
    while (depth > 0 && closing(spelled(*opened_[depth - 1])) != c) {
      if (c != '}' && spelled(*opened_[depth - 1]) == '{') {
        depth = 0;
        break;
      }
      --depth;
    }
    if (depth == 0) {
      spoil(token.range.begin);
      auto report = sink_.emit(token.range, diag::UnopenedBracket, std::string(1, c));
      if (opened_.empty() || spelled(*opened_.back()) == '{') return;
      // A slip of the finger for the right one: taken as it, so that it is one mistake and not two.
      report.primaryLabel(std::string("where `") + closing(spelled(*opened_.back())) + "` would close it");
      report.label(opened_.back()->range, "open here");
      opened_.pop_back();
      return;
    }
    if (opened_.size() > depth) unclosed(*opened_[depth], token, "reached from it, still open");
    if (c == '}') token.braceDepth = --braces_;
    noteIndentation(*opened_[depth - 1], token);
    opened_.resize(depth - 1);
  }

  void end(const Token& token) {
    if (opened_.empty()) return;
    unclosed(*opened_.front(), token, "");
  }

  void unclosed(const Token& open, const Token& met, std::string label) {
    spoil(open.range.begin);
    auto report = sink_.emit(open.range, diag::UnclosedBracket, std::string(1, spelled(open)));
    if (!label.empty()) report.label(met.range, std::move(label));
    if (met.role == TokenRole::End && suspect_ && suspect_ != &open) {
      report.label(suspect_->range, "perhaps this one").label(suspectEnd_->range, "closes it at another indentation");
    }
  }

  // A `}` that starts its line stands under the line of its `{`; the first that does not hints at a forgotten one.
  void noteIndentation(const Token& open, const Token& close) {
    if (suspect_ || spelled(open) != '{' || !close.firstOnLine) return;
    if (indentation(open) == sources_.lineColumn(close.range.file, close.range.begin).column) return;
    suspect_ = &open;
    suspectEnd_ = &close;
  }

  std::uint32_t indentation(const Token& token) const {
    const std::uint32_t line = sources_.lineNumber(token.range.file, token.range.begin);
    const std::string_view text = sources_.lineText(token.range.file, line);
    const std::size_t first = text.find_first_not_of(" \t");
    return static_cast<std::uint32_t>(first == std::string_view::npos ? 0 : first) + 1;
  }

  void spoil(std::uint32_t from) { result_.unbalancedFrom = std::min(result_.unbalancedFrom, from); }

  std::vector<Token>& tokens_;
  const SourceManager& sources_;
  DiagSink& sink_;
  TokenCheck result_;
  std::vector<const Token*> opened_;
  std::int64_t braces_ = 0;
  const Token* suspect_ = nullptr;
  const Token* suspectEnd_ = nullptr;
};

void markLineStarts(std::vector<Token>& tokens, const SourceManager& sources) {
  std::uint32_t lastLine = 0;
  for (Token& token : tokens) {
    const std::uint32_t line = sources.lineNumber(token.range.file, token.range.begin);
    token.firstOnLine = line != lastLine;
    lastLine = sources.lineNumber(token.range.file, token.range.end);
  }
}

// The word in place of `range`, parted from letters beside it.
std::string asWord(const std::string& word, SourceRange range, const SourceManager& sources) {
  const std::string_view text = sources.text(range.file);
  const auto isSpace = [&](std::size_t at) { return at >= text.size() || text[at] == ' ' || text[at] == '\n'; };
  const bool before = range.begin == 0 || isSpace(range.begin - 1);
  return (before ? "" : " ") + word + (isSpace(range.end) ? "" : " ");
}

void reportStray(std::vector<Token>& tokens, std::size_t& i, const SourceManager& sources, DiagSink& sink) {
  SourceRange range = tokens[i].range;
  while (i + 1 < tokens.size() && tokens[i + 1].role == TokenRole::Stray && tokens[i + 1].range.begin == range.end) {
    range.end = tokens[++i].range.end;
  }
  const std::string text(sources.text(range));
  // Whatever it was to be, something is missing now; only a semicolon leaves no hole.
  if (text != ";" && i + 1 < tokens.size()) tokens[i + 1].afterHole = true;
  auto report = sink.emit(range, diag::StrayCharacter, text);
  if (text == ";") {
    report.note("line breaks and semicolons mean nothing; a statement ends where the next begins")
        .fix("remove it", true, {{range, ""}});
  } else if (text == "'") {
    report.help("strings are written with double quotes");
  } else if (text == "#") {
    report.fix("comments begin with `//`", true, {{range, "//"}});
  } else if (text == "&" || text == "&&") {
    report.fix("write `and`", true, {{range, asWord("and", range, sources)}});
  } else if (text == "|" || text == "||") {
    report.fix("write `or`", true, {{range, asWord("or", range, sources)}});
  } else if (text == "!") {
    // Not certain: `not` binds weaker than comparisons.
    report.fix("write `not`", false, {{range, asWord("not", range, sources)}});
  }
}

}  // namespace

TokenCheck checkTokens(std::vector<Token>& tokens, const SourceManager& sources, DiagSink& sink) {
  markLineStarts(tokens, sources);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    switch (tokens[i].role) {
      case TokenRole::Stray:
        reportStray(tokens, i, sources, sink);
        break;
      case TokenRole::OpenString:
        sink.emit(tokens[i].range, diag::UnclosedString)
            .help("close it with `\"`; `\\n` is a line break inside a string");
        break;
      case TokenRole::OpenComment:
        sink.emit({tokens[i].range.file, tokens[i].range.begin, tokens[i].range.begin + 2}, diag::UnclosedComment);
        break;
      case TokenRole::Ordinary:
      case TokenRole::Open:
      case TokenRole::Close:
      case TokenRole::End:
      case TokenRole::Comment:
      case TokenRole::Doc:
        break;
    }
  }
  return BracketCheck(tokens, sources, sink).run();
}

}  // namespace gshard
