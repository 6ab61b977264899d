// The formatter: ANTLR's tree to a document (format_doc.h), rule by rule. It works on the tree and not on the AST
// because the AST has no parentheses and no spellings. Only white space, the order of imports and trailing commas of
// broken lists may change; formatFile checks that on its own result. Over 400 lines, since every form has its rule
// here.
#include "frontend/format.h"

#include <algorithm>

#include "frontend/ast_printer.h"
#include "frontend/format_builder.h"
#include "frontend/parse.h"
#include "support/check.h"
#include "support/text.h"

namespace gshard {

using antlr4::ParserRuleContext;
using antlr4::tree::ParseTree;
using grammar::GsdLexer;
using grammar::GsdParser;
using Docs = std::vector<Doc>;

namespace {

// Binding of the operators that may be chained on several lines; 0 for others.
int chainLevel(std::size_t type) {
  switch (type) {
    case GsdLexer::STAR:
    case GsdLexer::SLASH:
    case GsdLexer::PERCENT:
      return 5;
    case GsdLexer::PLUS:
    case GsdLexer::MINUS:
      return 4;
    case GsdLexer::AND:
      return 2;
    case GsdLexer::OR:
      return 1;
    default:
      return 0;  // token types are numbers of the grammar, not an enum of ours
  }
}

}  // namespace

Doc DocBuilder::any(ParseTree* child) {
  if (ParserRuleContext* context = ruleOf(child)) return rule(context);
  return Doc::tokenAt(tokenOf(child));
}

Doc DocBuilder::tight(ParserRuleContext* context) {
  Docs docs;
  for (ParseTree* child : context->children) docs.push_back(any(child));
  return Doc::concat(std::move(docs));
}

// Children side by side; brackets with their contents become lists.
void DocBuilder::append(const std::vector<ParseTree*>& children, Docs& docs) {
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::size_t type = typeOf(children[i]);
    const std::size_t rule = ruleIndex(children[i]);
    const bool opensList = isOpening(type) && i > 0 && ruleOf(children[i - 1]) != nullptr;  // not `mesh [`, `for (`
    const bool attached = i == 0 || opensList || type == GsdLexer::COLON || type == GsdLexer::COMMA ||
                          rule == GsdParser::RuleGenerics || rule == GsdParser::RuleDims;
    if (!attached) docs.push_back(Doc::of(Doc::Kind::Space));
    if (!isOpening(type)) {
      docs.push_back(any(children[i]));
      continue;
    }
    std::size_t close = i + 1;
    while (!isClosing(typeOf(children[close]))) ++close;
    if (opensList || i == 0 || typeOf(children[i - 1]) != GsdLexer::FOR) {
      docs.push_back(bracketed(children, i, close, true, false));
    } else {
      // `for (w, g)` of an optimizer: two names, nothing to break.
      for (; i <= close; ++i) {
        if (i > 0 && typeOf(children[i - 1]) == GsdLexer::COMMA) docs.push_back(Doc::of(Doc::Kind::Space));
        docs.push_back(any(children[i]));
      }
    }
    i = close;
  }
}

Doc DocBuilder::spaced(ParserRuleContext* context) {
  Docs docs;
  append(context->children, docs);
  return Doc::concat(std::move(docs));
}

// Comments before a closing bracket stand with what is inside.
void DocBuilder::closer(std::size_t token, bool hadEntries, Docs& inside) const {
  const std::vector<FormatComment>& comments = tokens_[token].leading;
  const auto own = std::find_if(comments.begin(), comments.end(), [](const FormatComment& c) { return c.ownLine; });
  if (own == comments.end()) return;
  inside.push_back(Doc::hardLine(hadEntries && own->blankBefore));
  inside.push_back(Doc::leading(token, false));
}

// A list in brackets: on one line, or one item a line with a comma after the last.
Doc DocBuilder::bracketed(const std::vector<ParseTree*>& children, std::size_t open, std::size_t close, bool mayTrail,
                          bool spaces) {
  std::vector<ParseTree*> items;
  for (std::size_t i = open + 1; i < close; ++i) {
    const std::size_t rule = ruleIndex(children[i]);
    if (rule == GsdParser::RuleArguments || rule == GsdParser::RuleParameters) {
      const std::vector<ParseTree*>& inner = ruleOf(children[i])->children;
      items.insert(items.end(), inner.begin(), inner.end());
    } else {
      items.push_back(children[i]);
    }
  }
  const std::size_t from = tokenOf(children[open]), to = tokenOf(children[close]);
  if (items.empty() && !breaksInside(from, to)) return Doc::concat({Doc::tokenAt(from), Doc::tokenAt(to)});
  const Doc::Kind edge = spaces ? Doc::Kind::Line : Doc::Kind::SoftLine;
  Docs inside;
  bool trailingComma = false;
  if (!items.empty()) inside.push_back(Doc::of(edge));
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (typeOf(items[i]) == GsdLexer::COMMA) {
      trailingComma = i + 1 == items.size();
      inside.push_back(Doc::tokenAt(tokenOf(items[i])));
      if (!trailingComma) inside.push_back(Doc::of(Doc::Kind::Line));
      continue;
    }
    // `a: 1` and `...S` of the rules whose items are not rules of their own.
    const bool attached = i == 0 || typeOf(items[i - 1]) == GsdLexer::COMMA || typeOf(items[i]) == GsdLexer::COLON ||
                          typeOf(items[i - 1]) == GsdLexer::ELLIPSIS;
    if (!attached) inside.push_back(Doc::of(Doc::Kind::Space));
    inside.push_back(any(items[i]));
  }
  if (mayTrail && !trailingComma && !items.empty()) inside.push_back(Doc::ifBroken(","));
  const bool hadItems = !items.empty();
  closer(to, false, inside);
  Docs docs;
  docs.push_back(Doc::tokenAt(from));
  docs.push_back(Doc::indent(std::move(inside)));
  docs.push_back(Doc::of(hadItems ? edge : Doc::Kind::SoftLine));
  docs.push_back(Doc::tokenAt(to));
  // A `{` goes before the comments that end its line.
  return Doc::group(std::move(docs), trailingComma || breaksInside(spaces ? from - 1 : from, to));
}

// Behind what they describe, or on lines below it.
Doc DocBuilder::annotations(const Docs& all, bool forced) const {
  if (all.empty()) return Doc::concat({});
  Docs lines;
  for (const Doc& doc : all) {
    lines.push_back(Doc::of(Doc::Kind::Line));
    lines.push_back(doc);
  }
  Docs docs;
  docs.push_back(Doc::indent(std::move(lines)));
  return Doc::group(std::move(docs), forced);
}

// `type annotation*` and `expr annotation*`.
Doc DocBuilder::annotated(ParserRuleContext* context) {
  Docs docs, all;
  const std::size_t described = last(ruleOf(context->children[0]));
  for (ParseTree* child : context->children) {
    if (ruleIndex(child) == GsdParser::RuleAnnotation)
      all.push_back(any(child));
    else
      docs.push_back(any(child));
  }
  docs.push_back(annotations(all, !all.empty() && breaksInside(described, last(context))));
  Doc whole = Doc::concat(std::move(docs));
  // The result of a function stays whole where it can: the parameters before it break first.
  if (ruleIndex(context->parent) != GsdParser::RuleFnDecl || whole.forced ||
      breaksInside(first(context) - 1, last(context) + 1))
    return whole;
  std::string flat = printFlat(whole, tokens_);
  return displayWidth(flat) <= kFormatWidth - 10 ? Doc::literal(std::move(flat)) : std::move(whole);
}

// `a + b - c`: one group, so that it breaks after all of its operators or after none.
void DocBuilder::chain(GsdParser::ExprContext* context, int level, Docs& operands) {
  if (context->op && context->left && context->right && chainLevel(context->op->getType()) == level) {
    chain(context->left, level, operands);
    operands.back() =
        Doc::concat({std::move(operands.back()), Doc::of(Doc::Kind::Space), Doc::tokenAt(indexOf(context->op))});
    operands.push_back(any(context->right));
    return;
  }
  operands.push_back(any(context));
}

Doc DocBuilder::operation(GsdParser::ExprContext* context) {
  if (context->op == nullptr) return tight(context);  // primary
  const std::size_t op = context->op->getType();
  if (op == GsdLexer::LPAREN || op == GsdLexer::LBRACK) {
    const std::vector<ParseTree*>& children = context->children;
    Docs docs;
    docs.push_back(any(children[0]));
    docs.push_back(bracketed(children, 1, children.size() - 1, true, false));
    return Doc::concat(std::move(docs));
  }
  if (op == GsdLexer::DOT || op == GsdLexer::RANGE || (op == GsdLexer::MINUS && !context->left)) return tight(context);
  if (const int level = chainLevel(op)) {
    Docs operands, rest;
    chain(context, level, operands);
    for (std::size_t i = 1; i < operands.size(); ++i) {
      rest.push_back(Doc::of(Doc::Kind::Line));
      rest.push_back(std::move(operands[i]));
    }
    Docs docs;
    docs.push_back(std::move(operands[0]));
    docs.push_back(Doc::indent(std::move(rest)));
    return Doc::group(std::move(docs), breaksInside(first(context), last(context)));
  }
  return spaced(context);  // `**`, comparisons, `not`
}

Doc DocBuilder::primary(GsdParser::PrimaryContext* context) {
  const std::vector<ParseTree*>& children = context->children;
  const std::size_t type = typeOf(children[0]);
  if (type == GsdLexer::IF) return choice(context);
  if (!isOpening(type)) return tight(context);
  const bool list = type == GsdLexer::LBRACK ? context->FOR() == nullptr : !context->COMMA().empty();
  return bracketed(children, 0, children.size() - 1, list, false);
}

// `if c { a } else { b }` of expressions.
Doc DocBuilder::choice(ParserRuleContext* context) {
  Docs docs;
  const std::vector<ParseTree*>& children = context->children;
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (i > 0) docs.push_back(Doc::of(Doc::Kind::Space));
    if (typeOf(children[i]) != GsdLexer::LBRACE) {
      docs.push_back(any(children[i]));
      continue;
    }
    const std::size_t close = tokenOf(children[i + 2]);
    Docs inside;
    inside.push_back(Doc::of(Doc::Kind::Line));
    inside.push_back(any(children[i + 1]));
    closer(close, false, inside);
    docs.push_back(Doc::tokenAt(tokenOf(children[i])));
    docs.push_back(Doc::indent(std::move(inside)));
    docs.push_back(Doc::of(Doc::Kind::Line));
    docs.push_back(Doc::tokenAt(close));
    i += 2;
  }
  return Doc::group(std::move(docs), breaksInside(first(context), last(context)));
}

// A statement with blocks: on one line if they stood on one, and each has one statement at most.
bool DocBuilder::mayStandOnOneLine(ParserRuleContext* context) const {
  std::size_t open = 0;
  for (ParseTree* child : context->children) {
    const std::size_t index = ruleIndex(child);
    if (index != GsdParser::RuleBlock && index != GsdParser::RuleMemberBlock) continue;
    if (ruleOf(child)->children.size() > 3) return false;
    if (open == 0) open = first(ruleOf(child));
  }
  const std::size_t close = last(context);
  return tokens_[open].line == tokens_[close].line && !breaksInside(open - 1, close);
}

Doc DocBuilder::braced(ParserRuleContext* context, bool oneLine) {
  const std::vector<ParseTree*>& children = context->children;
  const std::size_t open = tokenOf(children.front()), close = tokenOf(children.back());
  Docs docs, inside;
  docs.push_back(Doc::tokenAt(open));
  if (oneLine && children.size() == 3) {
    inside.push_back(Doc::of(Doc::Kind::Line));
    ++depth_;
    inside.push_back(entry(ruleOf(children[1])).doc);
    --depth_;
    docs.push_back(Doc::indent(std::move(inside)));
    docs.push_back(Doc::of(Doc::Kind::Line));
  } else {
    inside = statements(context);
    closer(close, children.size() > 2, inside);
    const bool empty = inside.empty() && !breaksInside(open, close);
    docs.push_back(Doc::indent(std::move(inside)));
    if (!empty) docs.push_back(Doc::hardLine());
  }
  docs.push_back(Doc::tokenAt(close));
  return Doc::concat(std::move(docs));
}

// What has blocks: `fn`, `model`, `optimizer`, `for`, `loop`, `if`. Words and lists, then the blocks.
Doc DocBuilder::broken(ParserRuleContext* context) {
  const bool oneLine = mayStandOnOneLine(context);
  Docs docs, blocks;
  std::vector<ParseTree*> words;
  const auto flush = [&](Docs& into) {
    append(words, into);
    words.clear();
  };
  for (ParseTree* child : context->children) {
    const std::size_t index = ruleIndex(child);
    if (index != GsdParser::RuleBlock && index != GsdParser::RuleMemberBlock) {
      words.push_back(child);
      continue;
    }
    // The words before the first block break by themselves, all after it with the blocks.
    Docs& into = blocks.empty() ? docs : blocks;
    if (!blocks.empty()) blocks.push_back(Doc::of(Doc::Kind::Space));
    flush(into);
    blocks.push_back(Doc::of(Doc::Kind::Space));
    blocks.push_back(braced(ruleOf(child), oneLine));
  }
  docs.push_back(Doc::group(std::move(blocks)));
  return Doc::concat(std::move(docs));
}

Doc DocBuilder::train(GsdParser::TrainDeclContext* context) {
  const std::vector<GsdParser::TrainOptimizerContext*> optimizers = context->trainOptimizer();
  const bool breaks = breaksInside(first(context), last(optimizers.back()));
  Docs docs, lines;
  docs.push_back(Doc::tokenAt(indexOf(context->TRAIN()->getSymbol())));
  docs.push_back(Doc::of(Doc::Kind::Space));
  docs.push_back(any(context->dottedName()));
  // One optimizer stays on the line and breaks inside its arguments.
  const bool one = optimizers.size() == 1 && !breaks;
  for (GsdParser::TrainOptimizerContext* optimizer : optimizers) {
    lines.push_back(Doc::of(one ? Doc::Kind::Space : Doc::Kind::Line));
    lines.push_back(any(optimizer));
  }
  Docs inner;
  inner.push_back(one ? Doc::concat(std::move(lines)) : Doc::indent(std::move(lines)));
  docs.push_back(one ? Doc::concat(std::move(inner)) : Doc::group(std::move(inner), breaks));
  if (context->trainOptions()) {
    docs.push_back(Doc::of(Doc::Kind::Space));
    docs.push_back(any(context->trainOptions()));
  }
  return Doc::concat(std::move(docs));
}

Doc DocBuilder::shard(GsdParser::ShardDeclContext* context) {
  Docs docs, patterns, all;
  docs.push_back(Doc::tokenAt(indexOf(context->SHARD()->getSymbol())));
  docs.push_back(Doc::of(Doc::Kind::Space));
  for (ParseTree* child : context->children) {
    if (ruleIndex(child) == GsdParser::RuleAnnotation) all.push_back(any(child));
    if (ruleIndex(child) == GsdParser::RulePattern) patterns.push_back(any(child));
    if (typeOf(child) != GsdLexer::COMMA) continue;
    patterns.push_back(Doc::tokenAt(tokenOf(child)));
    patterns.push_back(Doc::of(Doc::Kind::Line));
  }
  Docs inner;
  inner.push_back(Doc::indent(std::move(patterns)));
  docs.push_back(Doc::group(std::move(inner), breaksInside(first(context), last(context->pattern().back()))));
  docs.push_back(annotations(all, breaksInside(last(context->pattern().back()), last(context))));
  return Doc::concat(std::move(docs));
}

Doc DocBuilder::rule(ParserRuleContext* context) {
  switch (context->getRuleIndex()) {
    case GsdParser::RuleExpr:
      return operation(static_cast<GsdParser::ExprContext*>(context));
    case GsdParser::RulePrimary:
      return primary(static_cast<GsdParser::PrimaryContext*>(context));
    case GsdParser::RuleExpression:
    case GsdParser::RuleAnnotatedType:
      return annotated(context);
    case GsdParser::RuleType:
      if (typeOf(context->children[0]) == GsdLexer::LBRACK)  // `[int]` takes one type and no comma
        return bracketed(context->children, 0, context->children.size() - 1, false, false);
      return spaced(context);
    case GsdParser::RuleLetNames:
    case GsdParser::RuleDims:
    case GsdParser::RuleGenerics:
    case GsdParser::RuleMeshDecl:
    case GsdParser::RuleTrainOptimizer:
    case GsdParser::RuleMeshAxis:
    case GsdParser::RuleArgument:
    case GsdParser::RuleParameter:
    case GsdParser::RuleTrainOption:
    case GsdParser::RuleImportDecl:
    case GsdParser::RuleAssignment:
    case GsdParser::RuleReport:
    case GsdParser::RuleReturnStatement:
      return spaced(context);
    case GsdParser::RuleGeneric:
      return context->children.size() == 2 ? tight(context) : spaced(context);
    case GsdParser::RuleTrainOptions:
      return bracketed(context->children, 0, context->children.size() - 1, true, true);
    case GsdParser::RuleAnnotation: {
      Docs docs;
      docs.push_back(any(context->children[0]));
      docs.push_back(any(context->children[1]));
      if (context->children.size() > 2)
        docs.push_back(bracketed(context->children, 2, context->children.size() - 1, true, false));
      return Doc::concat(std::move(docs));
    }
    case GsdParser::RuleFnDecl:
    case GsdParser::RuleModelDecl:
    case GsdParser::RuleOptimizerDecl:
    case GsdParser::RuleMemberFor:
    case GsdParser::RuleMemberIf:
    case GsdParser::RuleForStatement:
    case GsdParser::RuleLoopStatement:
    case GsdParser::RuleIfStatement:
      return broken(context);
    case GsdParser::RuleLetDecl:
    case GsdParser::RuleConstDecl:
    case GsdParser::RuleParamMember:
    case GsdParser::RuleStateDecl:
      return entry(context).doc;
    case GsdParser::RuleTrainDecl:
      return train(static_cast<GsdParser::TrainDeclContext*>(context));
    case GsdParser::RuleShardDecl:
      return shard(static_cast<GsdParser::ShardDeclContext*>(context));
    default:
      return tight(context);  // names, patterns, index items, and rules that only wrap another
  }
}

namespace {

// Everything that must stay: the tree without the order of imports.
std::string meaning(const std::string& text, const std::string& name) {
  SourceManager sources;
  CollectingSink sink;
  const auto file = parseFile(sources.addFile(name, text), sources, sink);
  if (sink.hasErrors()) return sink.diagnostics()[0].message + " at " + sources.describe(sink.diagnostics()[0].range);
  std::stable_sort(file->decls.begin(), file->decls.end(), [](const ast::Decl& a, const ast::Decl& b) {
    const auto path = [](const ast::Decl& decl) {
      std::string result;
      if (const auto* import = ast::as<ast::ImportDecl>(decl))
        for (const ast::Name& part : import->path.parts) result += part.text + ".";
      return result;
    };
    const bool first = ast::is<ast::ImportDecl>(a), second = ast::is<ast::ImportDecl>(b);
    return first != second ? first : path(a) < path(b);
  });
  return printAst(*file);
}

}  // namespace

static std::string formattedOnce(FileId file, const SourceManager& sources) {
  std::string text;
  CollectingSink silent;
  withTree(file, sources, silent, [&](GsdParser::FileContext& tree, const TreeContext& context) {
    DocBuilder builder(context);
    const Doc doc = builder.file(tree);
    text = printDoc(doc, builder.tokens());
  });
  return text;
}

std::optional<std::string> formatFile(FileId file, const SourceManager& sources, DiagSink& sink) {
  CollectingSink found;
  parseFile(file, sources, found);
  const bool broken = found.hasErrors();
  for (const Diagnostic& diagnostic : found.diagnostics()) sink.report(diagnostic);
  if (broken) return std::nullopt;
  std::string text = formattedOnce(file, sources);
  // A comment in an odd place may be the end of a line only once its line is laid out, and then its neighbours move:
  // twice has been seen, the limit is for what has not.
  constexpr int kMostTimes = 6;
  for (int times = 1; times < kMostTimes; ++times) {
    SourceManager again;
    std::string next = formattedOnce(again.addFile("formatted.gsd", text), again);
    if (next == text) break;
    text = std::move(next);
  }
  const std::string before(sources.text(file));
  const std::string meant = meaning(before, "before"), means = meaning(text, "before");
  const auto differs = std::mismatch(meant.begin(), meant.end(), means.begin(), means.end());
  GSHARD_CHECK(meant == means, "formatting would change the program from `" +
                                   std::string(differs.first, std::find(differs.first, meant.end(), '\n')) + "` to `" +
                                   std::string(differs.second, std::find(differs.second, means.end(), '\n')) + "`");
  return text;
}

}  // namespace gshard
