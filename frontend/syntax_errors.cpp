// Wording of syntax errors: "expected X after Y", with help for what other languages write; see syntax_errors.h.
#include "frontend/syntax_errors.h"

#include <algorithm>
#include <cctype>

#include "frontend/diagnostics.h"
#include "support/text.h"

namespace gshard {
namespace {

const std::vector<std::string> kReserved = {"fn",  "let", "return", "for",  "in",    "if",  "else",
                                            "and", "or",  "not",    "true", "false", "none"};
const std::vector<std::string> kDeclarations = {"import",    "const", "mesh",  "fn",    "model",
                                                "optimizer", "let",   "entry", "train", "shard"};
const std::vector<std::string> kMembers = {"param", "state", "let", "fn", "for", "if"};
const std::vector<std::string> kStatements = {"let", "state", "report", "return", "for", "loop", "if"};

bool isWord(std::string_view text) {
  return !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_');
}

bool contains(const std::vector<std::string>& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

std::string alternatives(const std::vector<std::string>& parts) {
  std::string result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += i + 1 == parts.size() ? " or " : ", ";
    result += parts[i];
  }
  return result;
}

// Sums up the allowed tokens by what they begin: whoever reads "an expression" is not helped by its 25 first tokens.
std::string describeExpected(const Unexpected& what) {
  switch (what.place) {
    case SyntaxPlace::Declaration:
      return "a declaration";
    case SyntaxPlace::Member:
      return "a member of the model or `}`";
    case SyntaxPlace::Statement:
      return "a statement or `}`";
    case SyntaxPlace::Assignment:
    case SyntaxPlace::List:
    case SyntaxPlace::Other:
      break;
  }
  std::vector<std::string> rest = what.expected;
  std::vector<std::string> parts;
  const bool name = contains(rest, "NAME");
  const auto remove = [&](auto predicate) { std::erase_if(rest, predicate); };
  if (name)
    remove(
        [](const std::string& s) { return isWord(s) && s != "END" && std::islower(s[0]) && !contains(kReserved, s); });
  if (name && contains(rest, "INT") && contains(rest, "(")) {
    parts.push_back("an expression");
    remove([](const std::string& s) {
      return s == "NAME" || s == "INT" || s == "FLOAT" || s == "STRING" || s == "(" || s == "[" || s == "-" ||
             s == "not" || s == "if" || s == "true" || s == "false" || s == "none";
    });
  } else if (name && contains(rest, "(") && contains(rest, "[")) {
    parts.push_back("a type");
    remove([](const std::string& s) { return s == "NAME" || s == "(" || s == "["; });
  } else if (name && contains(rest, "**")) {
    parts.push_back("a path such as `net.**.w`");
    rest.clear();
  } else if (name) {
    parts.push_back("a name");
    remove([](const std::string& s) { return s == "NAME"; });
  }
  // What could merely continue an expression is no help beside what would end it.
  if (parts.size() + rest.size() > 4) {
    remove([](const std::string& s) {
      return s != ")" && s != "]" && s != "}" && s != "{" && s != "," && s != "=" && s != ":";
    });
  }
  const bool list =
      what.place == SyntaxPlace::List && rest.size() == 1 && parts.empty() && (rest[0] == ")" || rest[0] == "]");
  if (list && what.foundText != ",") rest.insert(rest.begin(), ",");
  for (const std::string& token : rest) {
    parts.push_back(token == "END"      ? "the end of the file"
                    : token == "INT"    ? "an integer"
                    : token == "FLOAT"  ? "a float"
                    : token == "STRING" ? "a string"
                                        : "`" + token + "`");
    if (parts.size() == 4) break;
  }
  if (parts.empty()) parts.push_back("something else");
  return alternatives(parts);
}

class Reporter {
 public:
  Reporter(const Unexpected& what, const SourceManager& sources, DiagSink& sink)
      : what_(what),
        sources_(sources),
        sink_(sink),
        found_(what.tokens[what.at]),
        previous_(what.at > 0 ? &what.tokens[what.at - 1] : nullptr) {}

  void report() {
    std::string expected = describeExpected(what_);
    const bool listed =
        what_.place == SyntaxPlace::Other || what_.place == SyntaxPlace::Assignment || what_.place == SyntaxPlace::List;
    const bool opener = previous_ && previous_->role == TokenRole::Open;
    if (opener && what_.place == SyntaxPlace::List && expected.starts_with("`,` or ")) expected.erase(0, 7);
    if (previous_ && listed) expected += " after `" + spelled(*previous_) + "`";
    // When the line ended too early, the place to mend is its end, not the start of a later line.
    const bool lineEnded = previous_ && listed && (found_.firstOnLine || found_.role == TokenRole::End);
    const SourceRange range =
        lineEnded ? SourceRange{previous_->range.file, previous_->range.end, previous_->range.end} : found_.range;
    auto diagnostic = sink_.emit(range, diag::Expected, expected);
    if (!lineEnded) diagnostic.primaryLabel(found_.role == TokenRole::End ? "the file ends here" : "");
    help(diagnostic);
  }

 private:
  std::string spelled(const Token& token) const {
    std::string text(sources_.text(token.range));
    return text.size() > 40 ? text.substr(0, 37) + "..." : text;
  }

  std::string spelledAt(std::int64_t offset) const {
    const std::int64_t i = static_cast<std::int64_t>(what_.at) + offset;
    if (i < 0 || i >= static_cast<std::int64_t>(what_.tokens.size())) return "";
    return std::string(sources_.text(what_.tokens[static_cast<std::size_t>(i)].range));
  }

  void help(DiagBuilder& diagnostic) const {
    const std::string found = spelledAt(0);
    const std::string before = spelledAt(-1);
    if (helpNumber(diagnostic, found, before) || helpStatement(diagnostic, found, before)) return;
    if (contains(what_.expected, "NAME") && contains(kReserved, found)) {
      diagnostic.note("`" + found + "` is reserved and names nothing");
      return;
    }
    if (suggestKeyword(diagnostic, found_, found)) return;
    if (previous_ && what_.place == SyntaxPlace::Assignment) suggestKeyword(diagnostic, *previous_, before);
  }

  bool helpNumber(DiagBuilder& diagnostic, const std::string& found, const std::string& before) const {
    const bool digitAfter = found == "." && std::isdigit(static_cast<unsigned char>((spelledAt(1) + " ")[0]));
    const bool digitBefore = before == "." && std::isdigit(static_cast<unsigned char>((spelledAt(-2) + " ")[0]));
    if (!digitAfter && !digitBefore) return false;
    const SourceRange dot = digitAfter ? found_.range : previous_->range;
    diagnostic.note("floats have digits on both sides of the dot");
    if (digitAfter)
      diagnostic.fix("write the 0", true, {{{dot.file, dot.begin, dot.begin}, "0"}});
    else
      diagnostic.fix("write the 0", true, {{{dot.file, dot.end, dot.end}, "0"}});
    return true;
  }

  bool helpStatement(DiagBuilder& diagnostic, const std::string& found, const std::string& before) const {
    if (contains({"while", "break", "continue"}, found) || contains({"while", "break", "continue"}, before)) {
      diagnostic.help("`for` repeats at compile time, `loop t in a..b` at run time; nothing leaves either early");
      return true;
    }
    if (found == "=" && contains({"+", "-", "*", "/", "%", "**"}, before)) return compound(diagnostic, before, -2);
    if (what_.place != SyntaxPlace::Assignment) return false;
    if (contains({"+", "-", "*", "/", "%", "**"}, found) && spelledAt(1) == "=") return compound(diagnostic, found, -1);
    if (found == "[") {
      diagnostic.help("elements are not assigned: `x = dynamic_update(x, part, start)` makes a new tensor");
      return true;
    }
    if (found == "(" || found == ".") {
      diagnostic.note("an expression is no statement: give its value a name with `let`, assign, report or return it");
      return true;
    }
    return false;
  }

  bool compound(DiagBuilder& diagnostic, const std::string& op, std::int64_t name) const {
    const std::string target = spelledAt(name);
    diagnostic.help("`" + op + "=` is not offered: write `" + target + " = " + target + " " + op + " …`");
    return true;
  }

  bool suggestKeyword(DiagBuilder& diagnostic, const Token& token, const std::string& text) const {
    if (!isWord(text)) return false;
    std::vector<std::string> words;
    switch (what_.place) {
      case SyntaxPlace::Declaration:
        words = kDeclarations;
        break;
      case SyntaxPlace::Member:
        words = kMembers;
        break;
      case SyntaxPlace::Statement:
      case SyntaxPlace::Assignment:
        words = kStatements;
        break;
      case SyntaxPlace::Other:
      case SyntaxPlace::List:
        std::copy_if(what_.expected.begin(), what_.expected.end(), std::back_inserter(words),
                     [](const std::string& s) { return isWord(s) && std::islower(static_cast<unsigned char>(s[0])); });
        break;
    }
    if (contains({"def", "func", "function"}, text)) words = {"fn"};
    const std::optional<std::string> close =
        contains(words, "fn") && words.size() == 1 ? words[0] : suggest(text, words);
    if (close) {
      diagnostic.fix("did you mean `" + *close + "`?", false, {{token.range, *close}});
    } else if (what_.place == SyntaxPlace::Declaration) {
      diagnostic.note("declarations begin with " + join(kDeclarations, ", "));
    }
    return close.has_value();
  }

  const Unexpected& what_;
  const SourceManager& sources_;
  DiagSink& sink_;
  const Token& found_;
  const Token* previous_;
};

}  // namespace

void reportUnexpected(Unexpected what, const SourceManager& sources, DiagSink& sink) {
  what.foundText = sources.text(what.tokens[what.at].range);
  Reporter(what, sources, sink).report();
}

}  // namespace gshard
