// ANTLR's tree to our AST: declarations, statements and types. Expressions and annotations are in build_expr.cpp.
// Also checks what the grammar leaves open here (initialisers, path segments, kinds of generics).
#include "frontend/build_ast.h"

#include <charconv>

#include "frontend/diagnostics.h"
#include "support/text.h"

namespace gshard {

using namespace ast;
using grammar::GsdLexer;
using grammar::GsdParser;

SourceRange AstBuilder::range(const antlr4::ParserRuleContext* context) const {
  if (!context->stop) return range(context->start);
  return join(range(context->start), range(context->stop));
}

Name AstBuilder::name(GsdParser::NameContext* context) const {
  const SourceRange where = range(context);
  return {std::string(tree_.sources.text(where)), where};
}

DottedName AstBuilder::dottedName(GsdParser::DottedNameContext* context) const {
  DottedName result;
  for (GsdParser::NameContext* part : context->name()) result.parts.push_back(name(part));
  result.range = range(context);
  return result;
}

std::uint32_t AstBuilder::lineOf(std::uint32_t offset) const {
  return tree_.sources.lineNumber(file_, offset);
}

// The `///` lines that end on the line before `context` without a gap, and one behind its last token.
std::string AstBuilder::doc(const antlr4::ParserRuleContext* context) const {
  std::vector<std::string> lines;
  const auto add = [&](const antlr4::Token* token) {
    std::string_view text = tree_.sources.text(range(token)).substr(3);
    if (text.starts_with(' ')) text.remove_prefix(1);
    lines.emplace_back(text.substr(0, text.find_last_not_of(" \t") + 1));
  };
  const std::vector<antlr4::Token*> before = tree_.stream.getHiddenTokensToLeft(context->start->getTokenIndex());
  std::uint32_t next = lineOf(range(context->start).begin);
  std::size_t from = before.size();
  while (from > 0 && before[from - 1]->getType() == GsdLexer::DOC_COMMENT && before[from - 1]->getLine() + 1 == next) {
    next = static_cast<std::uint32_t>(before[--from]->getLine());
  }
  const std::size_t start = context->start->getTokenIndex();
  const std::size_t previous = start - before.size();  // of the visible token before, plus one
  for (std::size_t i = from; i < before.size(); ++i) {
    const bool trailing = previous > 0 && tree_.stream.get(previous - 1)->getLine() == before[i]->getLine();
    if (!trailing) add(before[i]);
  }
  for (const antlr4::Token* token : tree_.stream.getHiddenTokensToRight(context->stop->getTokenIndex())) {
    if (token->getType() == GsdLexer::DOC_COMMENT && token->getLine() == context->stop->getLine()) add(token);
  }
  return gshard::join(lines, "\n");
}

// ---- declarations

void AstBuilder::file(GsdParser::FileContext& tree, File& file) {
  for (GsdParser::DeclContext* context : tree.decl()) {
    if (context->exception) continue;
    Decl decl;
    decl.range = range(context);
    antlr4::tree::ParseTree* child = context->children.at(0);
    if (auto* c = dynamic_cast<GsdParser::ImportDeclContext*>(child))
      decl.node = ImportDecl{dottedName(c->dottedName())};
    else if (auto* c = dynamic_cast<GsdParser::ConstDeclContext*>(child))
      decl.node = constant(c);
    else if (auto* c = dynamic_cast<GsdParser::MeshDeclContext*>(child))
      decl.node = mesh(c);
    else if (auto* c = dynamic_cast<GsdParser::FnDeclContext*>(child))
      decl.node = function(c);
    else if (auto* c = dynamic_cast<GsdParser::ModelDeclContext*>(child))
      decl.node = model(c);
    else if (auto* c = dynamic_cast<GsdParser::OptimizerDeclContext*>(child))
      decl.node = optimizer(c);
    else if (auto* c = dynamic_cast<GsdParser::LetDeclContext*>(child))
      decl.node = let(c);
    else if (auto* c = dynamic_cast<GsdParser::TrainDeclContext*>(child))
      decl.node = train(c);
    else if (auto* c = dynamic_cast<GsdParser::ShardDeclContext*>(child))
      decl.node = shard(c);
    else
      continue;
    file.decls.push_back(std::move(decl));
  }
}

ConstDecl AstBuilder::constant(GsdParser::ConstDeclContext* context) {
  return {name(context->name()), optionalType(context->annotatedType()), expression(context->expression()),
          doc(context)};
}

MeshDecl AstBuilder::mesh(GsdParser::MeshDeclContext* context) {
  MeshDecl result;
  for (GsdParser::MeshAxisContext* axis : context->meshAxis()) {
    result.axes.push_back({name(axis->name()), expression(axis->expression())});
  }
  return result;
}

FnDecl AstBuilder::function(GsdParser::FnDeclContext* context) {
  FnDecl result;
  result.isEntry = context->ENTRY() != nullptr;
  const std::vector<GsdParser::NameContext*> names = context->name();  // its own, then those of `manual over`
  result.name = name(names.at(0));
  for (std::size_t i = 1; i < names.size(); ++i) result.manualOver.push_back(name(names[i]));
  if (context->generics()) {
    for (GsdParser::GenericContext* generic : context->generics()->generic())
      result.generics.push_back(this->generic(generic));
  }
  result.parameters = parameters(context->parameters());
  result.result = optionalType(context->annotatedType());
  result.body = block(context->block());
  result.doc = doc(context);
  return result;
}

Generic AstBuilder::generic(GsdParser::GenericContext* context) {
  Generic result;
  result.name = name(context->name(0));
  result.range = range(context);
  if (context->ELLIPSIS()) {
    result.kind = Generic::Kind::Dims;
  } else if (context->name().size() > 1) {
    result.kind = Generic::Kind::Dtype;
    const Name kind = name(context->name(1));
    if (kind.text != "dtype") {
      tree_.sink.emit(kind.range, diag::GenericKind, result.name.text, kind.text)
          .note("a generic is a dim `B`, any number of dims `...S`, or a dtype `T: dtype`");
    }
  }
  return result;
}

std::vector<Parameter> AstBuilder::parameters(GsdParser::ParametersContext* context) {
  std::vector<Parameter> result;
  if (!context) return result;
  for (GsdParser::ParameterContext* parameter : context->parameter()) {
    ExprPtr value = parameter->expression() ? expression(parameter->expression()) : nullptr;
    result.push_back({name(parameter->name()), type(parameter->annotatedType()), std::move(value), range(parameter)});
  }
  return result;
}

ModelDecl AstBuilder::model(GsdParser::ModelDeclContext* context) {
  return {name(context->name()), parameters(context->parameters()), memberBlock(context->memberBlock()), doc(context)};
}

OptimizerDecl AstBuilder::optimizer(GsdParser::OptimizerDeclContext* context) {
  return {name(context->name(0)), parameters(context->parameters()), name(context->name(1)),
          name(context->name(2)), block(context->block()),           doc(context)};
}

TrainDecl AstBuilder::train(GsdParser::TrainDeclContext* context) {
  TrainDecl result;
  result.function = dottedName(context->dottedName());
  for (GsdParser::TrainOptimizerContext* optimizer : context->trainOptimizer()) {
    TrainDecl::Optimizer one;
    one.name = dottedName(optimizer->dottedName());
    one.arguments = arguments(optimizer->arguments());
    for (GsdParser::PatternContext* p : optimizer->pattern()) one.patterns.push_back(pattern(p));
    one.range = range(optimizer);
    result.optimizers.push_back(std::move(one));
  }
  if (context->trainOptions()) {
    for (GsdParser::TrainOptionContext* option : context->trainOptions()->trainOption()) {
      result.options.push_back({name(option->name()), expression(option->expression())});
    }
  }
  return result;
}

ShardDecl AstBuilder::shard(GsdParser::ShardDeclContext* context) {
  ShardDecl result;
  for (GsdParser::PatternContext* p : context->pattern()) result.patterns.push_back(pattern(p));
  result.annotations = annotations(context->annotation());
  return result;
}

PathPattern AstBuilder::pattern(GsdParser::PatternContext* context) {
  PathPattern result;
  result.range = range(context);
  for (GsdParser::SegmentContext* segment : context->segment()) {
    const SourceRange where = range(segment);
    const std::string text(tree_.sources.text(where));
    if (segment->name())
      result.segments.push_back({PatternSegment::Kind::Name, text, 0, where});
    else if (segment->STAR())
      result.segments.push_back({PatternSegment::Kind::Star, "", 0, where});
    else if (segment->POW())
      result.segments.push_back({PatternSegment::Kind::DoubleStar, "", 0, where});
    else
      indices(text, where, result);
  }
  return result;
}

// `0`, or `0.1`: the lexer takes two indices with a dot between for a float.
void AstBuilder::indices(const std::string& text, SourceRange where, PathPattern& pattern) {
  std::uint32_t begin = where.begin;
  for (const std::string& digits : splitText(text, '.')) {
    const SourceRange part{where.file, begin, begin + static_cast<std::uint32_t>(digits.size())};
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      tree_.sink.emit(part, diag::PathSegment, digits);
    }
    pattern.segments.push_back({PatternSegment::Kind::Index, "", index, part});
    begin = part.end + 1;
  }
}

Let AstBuilder::let(GsdParser::LetDeclContext* context) {
  Let result;
  GsdParser::LetNamesContext* names = context->letNames();
  for (GsdParser::NameContext* one : names->name()) result.names.push_back(name(one));
  result.isTuple = names->LPAREN() != nullptr;
  if (result.isTuple && result.names.size() == 1) {
    const SourceRange all = range(names), name = result.names[0].range;
    tree_.sink.emit(all, diag::TupleOfOne)
        .fix("without parentheses the name is the whole value", true,
             {{{all.file, all.begin, name.begin}, ""}, {{all.file, name.end, all.end}, ""}});
  }
  result.type = optionalType(context->annotatedType());
  result.value = expression(context->expression());
  result.doc = doc(context);
  return result;
}

// ---- members and statements

Block AstBuilder::memberBlock(GsdParser::MemberBlockContext* context) {
  Block result;
  result.range = range(context);
  for (GsdParser::MemberContext* member : context->member()) {
    if (member->exception) continue;
    auto stmt = std::make_unique<Stmt>();
    stmt->range = range(member);
    antlr4::tree::ParseTree* child = member->children.at(0);
    if (auto* c = dynamic_cast<GsdParser::ParamMemberContext*>(child))
      stmt->node = param(c);
    else if (auto* c = dynamic_cast<GsdParser::StateDeclContext*>(child))
      stmt->node = state(c);
    else if (auto* c = dynamic_cast<GsdParser::LetDeclContext*>(child))
      stmt->node = let(c);
    else if (auto* c = dynamic_cast<GsdParser::FnDeclContext*>(child))
      stmt->node = function(c);
    else if (auto* c = dynamic_cast<GsdParser::MemberForContext*>(child)) {
      stmt->node = For{name(c->name()), condition(c->expr()), memberBlock(c->memberBlock())};
    } else if (auto* c = dynamic_cast<GsdParser::MemberIfContext*>(child)) {
      stmt->node =
          ifChain(c->expr(), c->memberBlock(), [this](GsdParser::MemberBlockContext* b) { return memberBlock(b); });
    } else {
      continue;
    }
    result.statements.push_back(std::move(stmt));
  }
  return result;
}

ExprPtr AstBuilder::initialiser(const Name& name, GsdParser::ExpressionContext* context, const char* example) {
  if (context) return expression(context);
  tree_.sink.emit(name.range, diag::NoInitialiser, name.text).help(std::string("add one, as `= ") + example + "`");
  return make(name.range, ErrorExpr{});
}

ParamDecl AstBuilder::param(GsdParser::ParamMemberContext* context) {
  ParamDecl result;
  result.name = name(context->name());
  result.type = type(context->annotatedType());
  result.init = initialiser(result.name, context->expression(), "zeros()");
  result.doc = doc(context);
  return result;
}

StateDecl AstBuilder::state(GsdParser::StateDeclContext* context) {
  StateDecl result;
  result.name = name(context->name());
  result.type = optionalType(context->annotatedType());
  result.init = initialiser(result.name, context->expression(), result.type ? "zeros()" : "zeros_like(w)");
  result.doc = doc(context);
  return result;
}

template <class Blocks, class Build>
If AstBuilder::ifChain(const std::vector<GsdParser::ExprContext*>& conditions, const Blocks& blocks, Build build) {
  If result;
  for (std::size_t i = 0; i < conditions.size(); ++i)
    result.arms.push_back({condition(conditions[i]), build(blocks.at(i))});
  if (blocks.size() > conditions.size()) result.otherwise = build(blocks.back());
  return result;
}

Block AstBuilder::block(GsdParser::BlockContext* context) {
  Block result;
  result.range = range(context);
  for (GsdParser::StatementContext* statement : context->statement()) {
    if (statement->exception) continue;
    auto stmt = std::make_unique<Stmt>();
    stmt->range = range(statement);
    antlr4::tree::ParseTree* child = statement->children.at(0);
    if (auto* c = dynamic_cast<GsdParser::LetDeclContext*>(child))
      stmt->node = let(c);
    else if (auto* c = dynamic_cast<GsdParser::StateDeclContext*>(child))
      stmt->node = state(c);
    else if (auto* c = dynamic_cast<GsdParser::AssignmentContext*>(child)) {
      stmt->node = Assign{name(c->name()), expression(c->expression())};
    } else if (auto* c = dynamic_cast<GsdParser::ReportContext*>(child)) {
      stmt->node = Report{name(c->name()), expression(c->expression())};
    } else if (auto* c = dynamic_cast<GsdParser::ReturnStatementContext*>(child)) {
      stmt->node = Return{expression(c->expression())};
    } else if (auto* c = dynamic_cast<GsdParser::ForStatementContext*>(child)) {
      stmt->node = For{name(c->name()), condition(c->expr()), block(c->block())};
    } else if (auto* c = dynamic_cast<GsdParser::LoopStatementContext*>(child)) {
      stmt->node = loop(c);
    } else if (auto* c = dynamic_cast<GsdParser::IfStatementContext*>(child)) {
      stmt->node = ifChain(c->expr(), c->block(), [this](GsdParser::BlockContext* b) { return block(b); });
    } else {
      continue;
    }
    result.statements.push_back(std::move(stmt));
  }
  return result;
}

Loop AstBuilder::loop(GsdParser::LoopStatementContext* context) {
  Loop result;
  result.variable = name(context->name());
  ExprPtr bounds = condition(context->expr());
  if (auto* range = std::get_if<RangeExpr>(&bounds->node)) {
    result.low = std::move(range->low);
    result.high = std::move(range->high);
  } else {
    if (!is<ErrorExpr>(*bounds)) tree_.sink.emit(bounds->range, diag::LoopOverNoRange).help("write `loop t in 0..n`");
    result.low = make(bounds->range, ErrorExpr{});
    result.high = make(bounds->range, ErrorExpr{});
  }
  result.body = block(context->block());
  return result;
}

// ---- types

TypePtr AstBuilder::optionalType(GsdParser::AnnotatedTypeContext* context) {
  return context ? type(context) : nullptr;
}

TypePtr AstBuilder::type(GsdParser::AnnotatedTypeContext* context) {
  TypePtr result = plainType(context->type());
  result->annotations = annotations(context->annotation());
  return result;
}

TypePtr AstBuilder::plainType(GsdParser::TypeContext* context) {
  auto result = std::make_unique<Type>();
  result->range = range(context);
  if (context->LBRACK()) {
    result->node = ListType{plainType(context->type())};
  } else if (context->LPAREN()) {
    TupleType tuple;
    for (GsdParser::AnnotatedTypeContext* element : context->annotatedType()) tuple.elements.push_back(type(element));
    if (tuple.elements.size() == 1) {
      const SourceRange all = result->range, one = range(context->annotatedType(0));
      tree_.sink.emit(all, diag::TupleOfOne)
          .fix("leave the parentheses out", true,
               {{{all.file, all.begin, one.begin}, ""}, {{all.file, one.end, all.end}, ""}});
    }
    result->node = std::move(tuple);
  } else {
    NamedType named;
    named.name = name(context->name());
    if (context->dims()) {
      named.hasShape = true;
      for (GsdParser::DimContext* dim : context->dims()->dim()) {
        Dim one;
        one.range = range(dim);
        if (dim->ELLIPSIS())
          one.spread = name(dim->name());
        else
          one.size = condition(dim->expr());
        named.dims.push_back(std::move(one));
      }
    }
    result->node = std::move(named);
  }
  return result;
}

void buildAst(GsdParser::FileContext& tree, const TreeContext& context, File& file) {
  AstBuilder(context, file.id).file(tree, file);
}

}  // namespace gshard
