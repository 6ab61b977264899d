// The formatter's walk over ANTLR's tree, which makes a document (format_doc.h). Private to format*.cpp: comments and
// tokens in format_tokens.cpp, expressions, types and blocks in format.cpp, statements and columns in
// format_statements.cpp.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "frontend/format_doc.h"
#include "frontend/tree.h"

namespace gshard {

bool isOpening(std::size_t type);
bool isClosing(std::size_t type);

class DocBuilder {
  using GsdParser = grammar::GsdParser;
  using ParserRuleContext = antlr4::ParserRuleContext;
  using ParseTree = antlr4::tree::ParseTree;
  using Docs = std::vector<Doc>;

 public:
  explicit DocBuilder(const TreeContext& tree) : tree_(tree) { collectTokens(); }

  const std::vector<FormatToken>& tokens() const { return tokens_; }
  Doc file(GsdParser::FileContext& file);

 private:
  using Row = std::array<std::string, 4>;  // what stands before the annotations, these, the value, its annotations
  // A statement, member or declaration in the making.
  struct Entry {
    std::size_t first = 0, last = 0;
    Doc doc;
    std::size_t keyword = 0;  // of the rows that are laid out in columns; 0: none of them
    Row row;
  };

  void collectTokens();
  void attach(std::size_t next, const std::vector<const antlr4::Token*>& comments);
  std::uint32_t lineOf(std::uint32_t offset) const { return tree_.sources.lineNumber(file_, offset); }

  // ---- tokens of the tree
  std::size_t indexOf(const antlr4::Token* token) const { return visible_.at(token->getTokenIndex()); }
  std::size_t first(const ParserRuleContext* context) const { return indexOf(context->start); }
  std::size_t last(const ParserRuleContext* context) const { return indexOf(context->stop); }
  static std::size_t typeOf(ParseTree* child) {
    auto* terminal = dynamic_cast<antlr4::tree::TerminalNode*>(child);
    return terminal ? terminal->getSymbol()->getType() : 0;
  }
  static ParserRuleContext* ruleOf(ParseTree* child) { return dynamic_cast<ParserRuleContext*>(child); }
  static std::size_t ruleIndex(ParseTree* child) {
    const ParserRuleContext* rule = ruleOf(child);
    return rule ? rule->getRuleIndex() : static_cast<std::size_t>(-1);
  }
  std::size_t tokenOf(ParseTree* child) const {
    return indexOf(dynamic_cast<antlr4::tree::TerminalNode*>(child)->getSymbol());
  }
  // Whether a comment between two tokens of [from, to] needs a line break.
  bool breaksInside(std::size_t from, std::size_t to) const;

  // ---- documents
  Doc any(ParseTree* child);
  Doc rule(ParserRuleContext* context);
  Doc tight(ParserRuleContext* context);
  Doc spaced(ParserRuleContext* context);
  void append(const std::vector<ParseTree*>& children, Docs& docs);
  Doc bracketed(const std::vector<ParseTree*>& children, std::size_t open, std::size_t close, bool mayTrail,
                bool spaces);
  void closer(std::size_t token, bool hadEntries, Docs& inside) const;
  Doc annotated(ParserRuleContext* context);
  Doc annotations(const Docs& all, bool forced) const;
  Doc operation(GsdParser::ExprContext* context);
  void chain(GsdParser::ExprContext* context, int level, Docs& operands);
  Doc primary(GsdParser::PrimaryContext* context);
  Doc choice(ParserRuleContext* context);
  Doc braced(ParserRuleContext* context, bool oneLine);
  Doc broken(ParserRuleContext* context);
  bool mayStandOnOneLine(ParserRuleContext* context) const;
  Doc train(GsdParser::TrainDeclContext* context);
  Doc shard(GsdParser::ShardDeclContext* context);
  Doc pattern(ParserRuleContext* context) { return tight(context); }

  // ---- statements
  Entry entry(ParserRuleContext* context);
  void layOut(std::vector<Entry>& entries, std::int64_t indent, bool started, Docs& docs);
  std::size_t alignRun(std::vector<Entry>& entries, std::size_t begin, std::int64_t indent) const;
  bool blankBefore(const Entry& entry) const;
  bool commentBefore(const Entry& entry) const;
  Docs statements(ParserRuleContext* block);

  const TreeContext& tree_;
  FileId file_;
  std::vector<FormatToken> tokens_;
  std::vector<std::size_t> visible_;  // of ANTLR's token index
  std::int64_t depth_ = 0;            // of braces, for the margin of rows
};

}  // namespace gshard
