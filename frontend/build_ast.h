// The builder that build_ast.cpp and build_expr.cpp share. Private to frontend/.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/ast.h"
#include "frontend/tree.h"

namespace gshard {

class AstBuilder {
 public:
  AstBuilder(const TreeContext& tree, FileId file) : tree_(tree), file_(file) {}

  void file(grammar::GsdParser::FileContext& tree, ast::File& file);

 private:
  using Parser = grammar::GsdParser;

  // positions and names
  SourceRange range(const antlr4::Token* token) const { return tree_.offsets.range(*token); }
  SourceRange range(const antlr4::ParserRuleContext* context) const;
  std::uint32_t lineOf(std::uint32_t offset) const;
  ast::Name name(Parser::NameContext* context) const;
  ast::DottedName dottedName(Parser::DottedNameContext* context) const;
  std::string doc(const antlr4::ParserRuleContext* context) const;

  // declarations
  ast::ConstDecl constant(Parser::ConstDeclContext* context);
  ast::MeshDecl mesh(Parser::MeshDeclContext* context);
  ast::FnDecl function(Parser::FnDeclContext* context);
  ast::Generic generic(Parser::GenericContext* context);
  std::vector<ast::Parameter> parameters(Parser::ParametersContext* context);
  ast::ModelDecl model(Parser::ModelDeclContext* context);
  ast::OptimizerDecl optimizer(Parser::OptimizerDeclContext* context);
  ast::TrainDecl train(Parser::TrainDeclContext* context);
  ast::ShardDecl shard(Parser::ShardDeclContext* context);
  ast::PathPattern pattern(Parser::PatternContext* context);
  void indices(const std::string& text, SourceRange where, ast::PathPattern& pattern);
  ast::Let let(Parser::LetDeclContext* context);

  // members and statements
  ast::Block memberBlock(Parser::MemberBlockContext* context);
  ast::Block block(Parser::BlockContext* context);
  ast::ExprPtr initialiser(const ast::Name& name, Parser::ExpressionContext* context, const char* example);
  ast::ParamDecl param(Parser::ParamMemberContext* context);
  ast::StateDecl state(Parser::StateDeclContext* context);
  ast::Loop loop(Parser::LoopStatementContext* context);
  template <class Blocks, class Build>
  ast::If ifChain(const std::vector<Parser::ExprContext*>& conditions, const Blocks& blocks, Build build);

  // types
  ast::TypePtr optionalType(Parser::AnnotatedTypeContext* context);
  ast::TypePtr type(Parser::AnnotatedTypeContext* context);
  ast::TypePtr plainType(Parser::TypeContext* context);

  // expressions and annotations (build_expr.cpp)
  template <class Node>
  ast::ExprPtr make(SourceRange range, Node node) const {
    auto result = std::make_unique<ast::Expr>();
    result->range = range;
    result->node = std::move(node);
    return result;
  }
  ast::ExprPtr expression(Parser::ExpressionContext* context);
  /// An expression where no annotation may follow.
  ast::ExprPtr condition(Parser::ExprContext* context) { return expr(context); }
  ast::ExprPtr expr(Parser::ExprContext* context);
  ast::ExprPtr operation(Parser::ExprContext* context);
  ast::ExprPtr postfix(Parser::ExprContext* context);
  ast::ExprPtr primary(Parser::PrimaryContext* context);
  ast::ExprPtr parenthesised(Parser::PrimaryContext* context);
  ast::ExprPtr list(Parser::PrimaryContext* context);
  ast::ExprPtr choice(Parser::PrimaryContext* context);
  ast::ExprPtr integer(SourceRange where);
  ast::ExprPtr floating(SourceRange where);
  ast::ExprPtr string(SourceRange where);
  ast::IndexItem indexItem(Parser::IndexItemContext* context);
  std::vector<ast::Argument> arguments(Parser::ArgumentsContext* context);
  void checkUnchained(Parser::ExprContext* context);
  std::vector<ast::Annotation> annotations(const std::vector<Parser::AnnotationContext*>& contexts);
  /// False if its form is wrong, which has been reported.
  bool annotation(Parser::AnnotationContext* context, ast::Annotation& result);
  bool splitAnnotation(std::vector<ast::Argument>& arguments, ast::Annotation& result);
  bool shardAnnotation(std::vector<ast::Argument>& arguments, ast::Annotation& result);
  bool deviceList(std::vector<ast::Argument>& arguments, ast::Annotation& result);
  bool shardDims(const ast::Expr& list, ast::ShardAnnotation& result);

  const TreeContext& tree_;
  FileId file_;
  std::int64_t depth_ = 0;  // of expressions inside each other
  bool tooDeepReported_ = false;
};

}  // namespace gshard
