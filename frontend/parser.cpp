// parseFile: runs lexer and parser, fast mode first, and turns ANTLR's error events into ours. Recovery is by
// statement, member and declaration: an error unwinds to the innermost of them, which skips to where the next one
// begins. Over 400 lines so that no further file has to include ANTLR.
#include <algorithm>
#include <map>
#include <set>

#include "frontend/diagnostics.h"
#include "frontend/parse.h"
#include "frontend/syntax_errors.h"
#include "frontend/tokens.h"
#include "frontend/tree.h"
#include "support/text.h"

namespace gshard {

using grammar::GsdLexer;
using grammar::GsdParser;

OffsetMap::OffsetMap(FileId file, std::string_view text) : file_(file), size_(static_cast<std::uint32_t>(text.size())) {
  if (text.starts_with("\xEF\xBB\xBF")) base_ = 3;
  const bool ascii =
      std::none_of(text.begin() + base_, text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (ascii) return;
  for (std::uint32_t i = base_; i < size_; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0u) != 0x80u) bytes_.push_back(i);
  }
}

std::uint32_t OffsetMap::byteOf(std::size_t codePoint) const {
  if (bytes_.empty()) return std::min(size_, base_ + static_cast<std::uint32_t>(codePoint));
  return codePoint < bytes_.size() ? bytes_[codePoint] : size_;
}

SourceRange OffsetMap::range(const antlr4::Token& token) const {
  if (token.getType() == antlr4::Token::EOF) return {file_, size_, size_};
  return {file_, byteOf(token.getStartIndex()), byteOf(token.getStopIndex() + 1)};
}

namespace {

// Thrown through the generated code, which catches only ANTLR's own exceptions.
struct TooDeep {
  antlr4::Token* at;
};
struct FastModeFailed {};

bool isDeclarationStart(std::size_t type) {
  switch (type) {
    case GsdLexer::IMPORT:
    case GsdLexer::CONST:
    case GsdLexer::MESH:
    case GsdLexer::FN:
    case GsdLexer::MODEL:
    case GsdLexer::OPTIMIZER:
    case GsdLexer::LET:
    case GsdLexer::ENTRY:
    case GsdLexer::TRAIN:
    case GsdLexer::SHARD:
      return true;
    default:
      return false;  // token types are numbers of the grammar, not an enum of ours
  }
}

bool isMemberStart(std::size_t type) {
  return type == GsdLexer::PARAM || type == GsdLexer::STATE || type == GsdLexer::LET || type == GsdLexer::FN ||
         type == GsdLexer::FOR || type == GsdLexer::IF;
}

bool isName(std::size_t type) {
  return type == GsdLexer::ID || (type >= GsdLexer::IMPORT && type <= GsdLexer::OVER);
}

bool isStatementStart(std::size_t type) {
  return type == GsdLexer::LET || type == GsdLexer::RETURN || type == GsdLexer::FOR || type == GsdLexer::IF ||
         isName(type);
}

// Stops the parser before it overflows the stack. Chains as `a + b + …` count, too: their trees are as deep.
class DepthLimit : public antlr4::tree::ParseTreeListener {
 public:
  void enterEveryRule(antlr4::ParserRuleContext* context) override {
    // One level of parentheses is four rules; brackets were counted exactly before (checkTokens).
    constexpr std::int64_t kRulesPerLevel = 6;
    if (++depth_ > kMaxNesting * kRulesPerLevel) throw TooDeep{context->start};
  }
  void exitEveryRule(antlr4::ParserRuleContext*) override { --depth_; }
  void visitTerminal(antlr4::tree::TerminalNode*) override {}
  void visitErrorNode(antlr4::tree::ErrorNode*) override {}

 private:
  std::int64_t depth_ = 0;
};

// The tokens that the grammar allows after having read those from `first` to just before `last`, starting in `state`
// inside `context`. ANTLR's own answer is for where its decision began, which for two tokens of lookahead is too early.
class ExpectedTokens {
 public:
  ExpectedTokens(const antlr4::Parser& parser, const antlr4::atn::ATN& atn) : parser_(parser), atn_(atn) {}

  std::vector<std::string> at(std::size_t state, antlr4::RuleContext* context, const std::vector<std::size_t>& read) {
    std::set<Config> configs = closure({{atn_.states[state], stackOf(context)}});
    for (const std::size_t type : read) {
      std::vector<Config> next;
      for (const Config& config : configs) {
        for (const antlr4::atn::Transition* t : config.first->transitions) {
          if (!t->isEpsilon() && t->matches(type, 1, atn_.maxTokenType)) next.push_back({t->target, config.second});
        }
      }
      configs = closure(std::move(next));
    }
    std::set<std::size_t> types;
    for (const Config& config : configs) {
      for (antlr4::atn::Transition* t : config.first->transitions) {
        if (t->isEpsilon()) continue;
        for (const ssize_t type : t->label().toList()) types.insert(static_cast<std::size_t>(type));
      }
      if (!config.second && config.first->getStateType() == antlr4::atn::ATNState::RULE_STOP)
        types.insert(antlr4::Token::EOF);
    }
    std::vector<std::string> result;
    for (const std::size_t type : types) result.push_back(spelled(type));
    return result;
  }

 private:
  // Return addresses, shared: equal stacks are the same pointer, which bounds the closure.
  struct Frame {
    antlr4::atn::ATNState* follow;
    const Frame* parent;
  };
  using Config = std::pair<antlr4::atn::ATNState*, const Frame*>;

  const Frame* push(antlr4::atn::ATNState* follow, const Frame* parent) {
    std::unique_ptr<Frame>& frame = frames_[{follow->stateNumber, parent}];
    if (!frame) frame = std::make_unique<Frame>(Frame{follow, parent});
    return frame.get();
  }

  const Frame* stackOf(antlr4::RuleContext* context) {
    std::vector<antlr4::RuleContext*> chain;
    for (; context && context->invokingState != static_cast<std::size_t>(-1) && context->parent;
         context = static_cast<antlr4::RuleContext*>(context->parent)) {
      chain.push_back(context);
    }
    const Frame* stack = nullptr;
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      const auto* call = static_cast<antlr4::atn::RuleTransition*>(atn_.states[(*it)->invokingState]->transitions[0]);
      stack = push(call->followState, stack);
    }
    return stack;
  }

  std::set<Config> closure(std::vector<Config> work) {
    std::set<Config> seen;
    while (!work.empty()) {
      const Config config = work.back();
      work.pop_back();
      if (!seen.insert(config).second) continue;
      if (config.first->getStateType() == antlr4::atn::ATNState::RULE_STOP) {
        if (config.second) work.push_back({config.second->follow, config.second->parent});
        continue;
      }
      for (antlr4::atn::Transition* t : config.first->transitions) {
        if (!t->isEpsilon()) continue;
        const auto* call = dynamic_cast<antlr4::atn::RuleTransition*>(t);
        work.push_back({t->target, call ? push(call->followState, config.second) : config.second});
      }
    }
    return seen;
  }

  std::string spelled(std::size_t type) const {
    switch (type) {
      case antlr4::Token::EOF:
        return "END";
      case GsdLexer::ID:
        return "NAME";
      case GsdLexer::INT:
        return "INT";
      case GsdLexer::FLOAT:
        return "FLOAT";
      case GsdLexer::STRING:
        return "STRING";
      default:
        break;
    }
    const std::string literal = parser_.getVocabulary().getLiteralName(type);
    return literal.size() > 2 ? literal.substr(1, literal.size() - 2) : literal;
  }

  const antlr4::Parser& parser_;
  const antlr4::atn::ATN& atn_;
  std::map<std::pair<std::size_t, const Frame*>, std::unique_ptr<Frame>> frames_;
};

// Never repairs by a guessed token. In fast mode (SLL prediction) the first error ends the attempt.
class Strategy : public antlr4::DefaultErrorStrategy {
 public:
  Strategy(bool fast, const std::vector<Token>& visible, const TokenCheck& check, const SourceManager& sources,
           DiagSink& sink)
      : fast_(fast), visible_(visible), check_(check), sources_(sources), sink_(sink) {}

  void setOffsets(const OffsetMap& offsets) { offsets_ = &offsets; }

  void reportError(antlr4::Parser* parser, const antlr4::RecognitionException& error) override {
    if (fast_) throw FastModeFailed{};
    if (panicking_) return;
    panicking_ = true;
    antlr4::Token* found = error.getOffendingToken();
    antlr4::Token* first = found;
    if (const auto* choice = dynamic_cast<const antlr4::NoViableAltException*>(&error)) first = choice->getStartToken();
    report(parser, error.getOffendingState(), static_cast<antlr4::RuleContext*>(error.getCtx()), first, found,
           placeOf(parser, found));
  }

  void recover(antlr4::Parser* parser, std::exception_ptr error) override {
    const antlr4::ParserRuleContext* context = parser->getContext();
    switch (context->getRuleIndex()) {
      case GsdParser::RuleStatement:
        skip(parser, &isStatementStart, depthAt(context->start), context->start);
        break;
      case GsdParser::RuleMember:
        skip(parser, &isMemberStart, depthAt(context->start), context->start);
        break;
      case GsdParser::RuleDecl:
        skip(parser, &isDeclarationStart, 0, context->start);
        break;
      case GsdParser::RuleFile:
        break;
      default:
        std::rethrow_exception(error);
    }
    panicking_ = false;
  }

  antlr4::Token* recoverInline(antlr4::Parser* parser) override { throw antlr4::InputMismatchException(parser); }

  // Called before each round of a loop: what cannot begin a statement is reported as such, and the loop goes on after
  // it.
  void sync(antlr4::Parser* parser) override {
    if (fast_) return;
    antlr4::Token* next = parser->getCurrentToken();
    const std::size_t type = next->getType();
    switch (parser->getContext()->getRuleIndex()) {
      case GsdParser::RuleFile:
        if (type == antlr4::Token::EOF || isDeclarationStart(type)) return;
        reportAndSkip(parser, SyntaxPlace::Declaration, &isDeclarationStart, 0);
        return;
      case GsdParser::RuleMemberBlock:
        if (type == antlr4::Token::EOF || type == GsdLexer::RBRACE || isMemberStart(type)) return;
        reportAndSkip(parser, SyntaxPlace::Member, &isMemberStart, depthAt(next));
        return;
      case GsdParser::RuleBlock:
        if (type == antlr4::Token::EOF || type == GsdLexer::RBRACE || isStatementStart(type)) return;
        reportAndSkip(parser, SyntaxPlace::Statement, &isStatementStart, depthAt(next));
        return;
      default:
        return;
    }
  }

 private:
  SyntaxPlace placeOf(antlr4::Parser* parser, antlr4::Token* found) const {
    const antlr4::ParserRuleContext* context = parser->getContext();
    switch (context->getRuleIndex()) {
      case GsdParser::RuleAssignment:
        return context->children.size() <= 1 ? SyntaxPlace::Assignment : SyntaxPlace::Other;
      case GsdParser::RuleStatement:
        return context->start == found ? SyntaxPlace::Statement : SyntaxPlace::Other;
      case GsdParser::RuleMember:
        return context->start == found ? SyntaxPlace::Member : SyntaxPlace::Other;
      case GsdParser::RuleDecl:
        return context->start == found ? SyntaxPlace::Declaration : SyntaxPlace::Other;
      case GsdParser::RuleExpr:
      case GsdParser::RulePrimary:
      case GsdParser::RuleFnDecl:
      case GsdParser::RuleModelDecl:
      case GsdParser::RuleMeshDecl:
      case GsdParser::RuleGenerics:
      case GsdParser::RuleDims:
      case GsdParser::RuleAnnotation:
      case GsdParser::RuleTrainOptimizer:
      case GsdParser::RuleLetNames:
        return SyntaxPlace::List;
      default:
        return SyntaxPlace::Other;
    }
  }

  void report(antlr4::Parser* parser, std::size_t state, antlr4::RuleContext* context, antlr4::Token* first,
              antlr4::Token* found, SyntaxPlace place) {
    const std::size_t at = index(found);
    // An open string or an unbalanced bracket has been reported; what follows from it stays silent.
    const Token& token = visible_[at];
    if (token.range.begin >= check_.unbalancedFrom || token.role == TokenRole::OpenString || token.afterHole) return;
    std::vector<std::size_t> read;
    for (std::size_t i = index(first); i < at; ++i) read.push_back(visible_[i].type);
    const bool allowed =
        place != SyntaxPlace::Declaration && place != SyntaxPlace::Member && place != SyntaxPlace::Statement;
    std::vector<std::string> expected;
    if (allowed) expected = ExpectedTokens(*parser, parser->getATN()).at(state, context, read);
    reportUnexpected({visible_, at, place, std::move(expected), {}}, sources_, sink_);
  }

  void reportAndSkip(antlr4::Parser* parser, SyntaxPlace place, bool (*starts)(std::size_t), std::int64_t depth) {
    antlr4::Token* found = parser->getCurrentToken();
    const std::size_t at = index(found);
    // In `1 +` before a line `const b = 2`, the expression took `const` for a name: it is the `+` that lacks something.
    const bool swallowed = at >= 2 && !visible_[at].firstOnLine && visible_[at - 1].firstOnLine &&
                           (visible_[at - 1].type != GsdLexer::ID || visible_[at].type == GsdLexer::ASSIGN) &&
                           starts(visible_[at - 1].type) && isName(visible_[at - 1].type);
    if (swallowed) {
      if (visible_[at - 1].range.begin < check_.unbalancedFrom) {
        reportUnexpected({visible_, at - 1, SyntaxPlace::Other, {"NAME", "INT", "("}, {}}, sources_, sink_);
      }
      antlr4::TokenStream* stream = parser->getTokenStream();
      stream->seek(stream->LT(-1)->getTokenIndex());
      return;
    }
    report(parser, 0, nullptr, found, found, place);
    skip(parser, starts, depth, found);
  }

  // To the next token that starts its line, stands in the same braces and may begin another of the kind; or to the `}`
  // that ends the braces. Moves at least past `from`.
  void skip(antlr4::Parser* parser, bool (*starts)(std::size_t), std::int64_t depth, antlr4::Token* from) {
    for (;;) {
      antlr4::Token* token = parser->getCurrentToken();
      if (token->getType() == antlr4::Token::EOF) return;
      const Token& seen = visible_[index(token)];
      const bool closes = token->getType() == GsdLexer::RBRACE && seen.braceDepth < depth;
      if (closes) return;
      const bool moved = token->getTokenIndex() > from->getTokenIndex();
      if (moved && seen.firstOnLine && seen.braceDepth <= depth && starts(token->getType())) return;
      parser->consume();
    }
  }

  std::int64_t depthAt(antlr4::Token* token) const { return visible_[index(token)].braceDepth; }
  std::size_t index(antlr4::Token* token) const {
    const std::uint32_t begin = offsets_->range(*token).begin;
    const auto found = std::lower_bound(visible_.begin(), visible_.end(), begin,
                                        [](const Token& t, std::uint32_t b) { return t.range.begin < b; });
    return static_cast<std::size_t>(std::min(found, visible_.end() - 1) - visible_.begin());
  }

  bool fast_;
  const std::vector<Token>& visible_;
  const TokenCheck& check_;
  const SourceManager& sources_;
  DiagSink& sink_;
  const OffsetMap* offsets_ = nullptr;
  bool panicking_ = false;
};

TokenRole roleOf(std::size_t type) {
  switch (type) {
    case antlr4::Token::EOF:
      return TokenRole::End;
    case GsdLexer::LPAREN:
    case GsdLexer::LBRACK:
    case GsdLexer::LBRACE:
      return TokenRole::Open;
    case GsdLexer::RPAREN:
    case GsdLexer::RBRACK:
    case GsdLexer::RBRACE:
      return TokenRole::Close;
    case GsdLexer::STRAY:
      return TokenRole::Stray;
    case GsdLexer::OPEN_STRING:
      return TokenRole::OpenString;
    case GsdLexer::OPEN_COMMENT:
      return TokenRole::OpenComment;
    case GsdLexer::DOC_COMMENT:
      return TokenRole::Doc;
    case GsdLexer::LINE_COMMENT:
    case GsdLexer::BLOCK_COMMENT:
      return TokenRole::Comment;
    default:
      return TokenRole::Ordinary;
  }
}

std::vector<Token> plainTokens(antlr4::CommonTokenStream& stream, const OffsetMap& offsets) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    const antlr4::Token& token = *stream.get(i);
    tokens.push_back({roleOf(token.getType()), token.getType(), offsets.range(token), false, 0});
  }
  return tokens;
}

bool isVisible(const Token& token) {
  return token.role != TokenRole::Stray && token.role != TokenRole::Comment && token.role != TokenRole::Doc &&
         token.role != TokenRole::OpenComment;
}

GsdParser::FileContext* runParser(GsdParser& parser, bool fast, const std::shared_ptr<Strategy>& strategy) {
  parser.reset();
  parser.removeErrorListeners();
  DepthLimit limit;
  parser.removeParseListeners();
  parser.addParseListener(&limit);
  parser.setErrorHandler(strategy);
  parser.getInterpreter<antlr4::atn::ParserATNSimulator>()->setPredictionMode(fast ? antlr4::atn::PredictionMode::SLL
                                                                                   : antlr4::atn::PredictionMode::LL);
  GsdParser::FileContext* tree = parser.file();
  parser.removeParseListeners();
  return tree;
}

}  // namespace

void withTree(FileId id, const SourceManager& sources, DiagSink& sink,
              const std::function<void(GsdParser::FileContext&, const TreeContext&)>& use) {
  const std::string_view text = sources.text(id);
  antlr4::ANTLRInputStream input{std::string(text)};
  GsdLexer lexer(&input);
  lexer.removeErrorListeners();
  antlr4::CommonTokenStream stream(&lexer);
  stream.fill();
  const OffsetMap offsets(id, text);

  std::vector<Token> tokens = plainTokens(stream, offsets);
  const TokenCheck check = checkTokens(tokens, sources, sink);
  if (!check.parse) return;
  std::vector<Token> visible;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(visible), &isVisible);

  GsdParser parser(&stream);
  GsdParser::FileContext* tree = nullptr;
  try {
    for (const bool fast : {true, false}) {
      const auto strategy = std::make_shared<Strategy>(fast, visible, check, sources, sink);
      strategy->setOffsets(offsets);
      try {
        tree = runParser(parser, fast, strategy);
        break;
      } catch (const FastModeFailed&) {
        stream.seek(0);
      }
    }
  } catch (const TooDeep& deep) {
    sink.emit(offsets.range(*deep.at), diag::NestedTooDeep, kMaxNesting).help("give an inner part a name with `let`");
    return;
  }
  use(*tree, {sources, stream, offsets, sink});
}

std::unique_ptr<ast::File> parseFile(FileId id, const SourceManager& sources, DiagSink& sink) {
  auto file = std::make_unique<ast::File>();
  file->id = id;
  // A token takes a hundred times its text; what a person or a generator writes stays far below.
  constexpr std::int64_t kMaxBytes = std::int64_t{2} << 20;
  if (const auto size = static_cast<std::int64_t>(sources.text(id).size()); size > kMaxBytes) {
    sink.emit({id, 0, 0}, diag::FileTooLarge, size, kMaxBytes);
    return file;
  }
  const std::optional<std::size_t> broken = findInvalidUtf8(sources.text(id));
  if (broken) {
    const std::uint32_t at = static_cast<std::uint32_t>(*broken);
    auto report = sink.emit({id, at, at + 1}, diag::BrokenText, static_cast<std::int64_t>(at));
    if (sources.text(id)[at] == '\0') report.note("it is a NUL, which text files do not hold");
    return file;
  }
  // Tokens, grammar and literals are checked one after the other; readers want the order of the file.
  CollectingSink found;
  withTree(id, sources, found,
           [&](GsdParser::FileContext& tree, const TreeContext& context) { buildAst(tree, context, *file); });
  std::vector<Diagnostic> sorted = found.diagnostics();
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.range.begin < b.range.begin; });
  for (Diagnostic& diagnostic : sorted) sink.report(std::move(diagnostic));
  return file;
}

}  // namespace gshard
