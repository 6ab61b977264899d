// ANTLR's tree to our AST: expressions and annotations. Checks what the grammar leaves open: the line of a call's
// bracket, unchained comparisons and ranges, literals that fit, the form of each annotation. Over 400 lines so that no
// further file has to include ANTLR.
#include <charconv>
#include <set>

#include "frontend/build_ast.h"
#include "frontend/diagnostics.h"
#include "frontend/tokens.h"
#include "support/text.h"

namespace gshard {

using namespace ast;
using grammar::GsdLexer;
using grammar::GsdParser;

static BinaryOp binaryOp(std::size_t token) {
  switch (token) {
    case GsdLexer::POW:
      return BinaryOp::Pow;
    case GsdLexer::STAR:
      return BinaryOp::Mul;
    case GsdLexer::SLASH:
      return BinaryOp::Div;
    case GsdLexer::PERCENT:
      return BinaryOp::Mod;
    case GsdLexer::PLUS:
      return BinaryOp::Add;
    case GsdLexer::MINUS:
      return BinaryOp::Sub;
    case GsdLexer::EQUAL:
      return BinaryOp::Equal;
    case GsdLexer::NOT_EQUAL:
      return BinaryOp::NotEqual;
    case GsdLexer::LESS:
      return BinaryOp::Less;
    case GsdLexer::LESS_EQUAL:
      return BinaryOp::LessEqual;
    case GsdLexer::GREATER:
      return BinaryOp::Greater;
    case GsdLexer::GREATER_EQUAL:
      return BinaryOp::GreaterEqual;
    case GsdLexer::AND:
      return BinaryOp::And;
    default:
      return BinaryOp::Or;  // token types are numbers of the grammar, not an enum of ours
  }
}

static bool isComparison(std::size_t token) {
  return token >= GsdLexer::EQUAL && token <= GsdLexer::GREATER;
}

ExprPtr AstBuilder::expression(GsdParser::ExpressionContext* context) {
  ExprPtr operand = expr(context->expr());
  std::vector<Annotation> written = annotations(context->annotation());
  if (written.empty()) return operand;
  return make(range(context), AnnotatedExpr{std::move(operand), std::move(written)});
}

ExprPtr AstBuilder::expr(GsdParser::ExprContext* context) {
  if (++depth_ > kMaxNesting) {
    if (!tooDeepReported_) {
      tree_.sink.emit(range(context), diag::NestedTooDeep, kMaxNesting).help("give an inner part a name with `let`");
    }
    tooDeepReported_ = true;
    --depth_;
    return make(range(context), ErrorExpr{});
  }
  ExprPtr result = context->op ? operation(context) : primary(context->primary());
  --depth_;
  return result;
}

ExprPtr AstBuilder::operation(GsdParser::ExprContext* context) {
  const std::size_t op = context->op->getType();
  if (op == GsdLexer::DOT || op == GsdLexer::LPAREN || op == GsdLexer::LBRACK) return postfix(context);
  const SourceRange opRange = range(context->op);
  if (!context->left) {
    const UnaryOp unary = op == GsdLexer::NOT ? UnaryOp::Not : UnaryOp::Negate;
    return make(range(context), Unary{unary, opRange, expr(context->right)});
  }
  checkUnchained(context);
  ExprPtr left = expr(context->left);
  ExprPtr right = expr(context->right);
  const SourceRange where = join(left->range, right->range);
  if (op == GsdLexer::RANGE) return make(where, RangeExpr{std::move(left), std::move(right)});
  return make(where, Binary{binaryOp(op), opRange, std::move(left), std::move(right)});
}

void AstBuilder::checkUnchained(GsdParser::ExprContext* context) {
  const antlr4::Token* inner = context->left->op;
  if (!inner) return;
  const bool comparisons = isComparison(context->op->getType()) && isComparison(inner->getType());
  const bool ranges = context->op->getType() == GsdLexer::RANGE && inner->getType() == GsdLexer::RANGE;
  if (!comparisons && !ranges) return;
  auto report = tree_.sink.emit(range(context->op), diag::ChainedOperator, context->op->getText(), inner->getText());
  report.label(range(inner), "first one here");
  if (comparisons)
    report.help("join two comparisons with `and`");
  else
    report.help("a range has two ends; steps are made by multiplying the variable");
}

ExprPtr AstBuilder::postfix(GsdParser::ExprContext* context) {
  ExprPtr object = expr(context->left);
  const SourceRange where = join(object->range, range(context));
  const std::size_t op = context->op->getType();
  if (op == GsdLexer::DOT) return make(where, Member{std::move(object), name(context->name())});

  const SourceRange bracket = range(context->op);
  if (lineOf(bracket.begin) != lineOf(range(context->left->stop).end)) {
    tree_.sink.emit(bracket, diag::BracketOnLaterLine, context->op->getText())
        .label(object->range, "continues this")
        .note("line breaks mean nothing but here: a call or an index begins on the line of what it follows");
  }
  if (op == GsdLexer::LPAREN) return make(where, Call{std::move(object), arguments(context->arguments())});
  Index index{std::move(object), {}};
  for (GsdParser::IndexItemContext* item : context->indexItem()) index.items.push_back(indexItem(item));
  return make(where, std::move(index));
}

IndexItem AstBuilder::indexItem(GsdParser::IndexItemContext* context) {
  IndexItem result;
  result.range = range(context);
  result.isSlice = context->slice() != nullptr;
  ExprPtr first = context->expr() ? expr(context->expr()) : nullptr;
  if (!result.isSlice) {
    result.index = std::move(first);
    return result;
  }
  result.low = std::move(first);
  if (context->slice()->high) result.high = expr(context->slice()->high);
  if (context->slice()->step) result.step = expr(context->slice()->step);
  return result;
}

std::vector<Argument> AstBuilder::arguments(GsdParser::ArgumentsContext* context) {
  std::vector<Argument> result;
  if (!context) return result;
  std::set<std::string> seen;
  bool named = false;
  for (GsdParser::ArgumentContext* one : context->argument()) {
    Argument argument;
    argument.range = range(one);
    if (one->name()) {
      argument.name = name(one->name());
      named = true;
      if (!seen.insert(argument.name.text).second) {
        tree_.sink.emit(argument.name.range, diag::RepeatedArgument, argument.name.text);
      }
    } else if (named) {
      tree_.sink.emit(argument.range, diag::PositionalAfterNamed).help("move it before the named ones, or name it");
    }
    argument.value = expression(one->expression());
    result.push_back(std::move(argument));
  }
  return result;
}

// ---- primaries

ExprPtr AstBuilder::primary(GsdParser::PrimaryContext* context) {
  const SourceRange where = range(context);
  switch (context->start->getType()) {
    case GsdLexer::INT:
      return integer(where);
    case GsdLexer::FLOAT:
      return floating(where);
    case GsdLexer::STRING:
      return string(where);
    case GsdLexer::TRUE:
      return make(where, BoolLiteral{true});
    case GsdLexer::FALSE:
      return make(where, BoolLiteral{false});
    case GsdLexer::NONE:
      return make(where, NoneLiteral{});
    case GsdLexer::LPAREN:
      return parenthesised(context);
    case GsdLexer::LBRACK:
      return list(context);
    case GsdLexer::IF:
      return choice(context);
    default:
      return make(where, NameRef{name(context->name()).text});
  }
}

ExprPtr AstBuilder::parenthesised(GsdParser::PrimaryContext* context) {
  const SourceRange where = range(context);
  if (context->expression().size() == 1) {
    if (!context->COMMA().empty()) {
      const SourceRange comma = tree_.offsets.range(*context->COMMA(0)->getSymbol());
      tree_.sink.emit(where, diag::TupleOfOne).fix("leave the comma out", true, {{comma, ""}});
    }
    ExprPtr inner = expression(context->expression(0));
    inner->range = where;
    return inner;
  }
  TupleExpr tuple;
  for (GsdParser::ExpressionContext* element : context->expression()) tuple.elements.push_back(expression(element));
  return make(where, std::move(tuple));
}

ExprPtr AstBuilder::list(GsdParser::PrimaryContext* context) {
  const SourceRange where = range(context);
  if (context->FOR()) {
    ExprPtr element = expression(context->expression(0));
    return make(where, Comprehension{std::move(element), name(context->name()), expression(context->expression(1))});
  }
  ListExpr result;
  for (GsdParser::ExpressionContext* element : context->expression()) result.elements.push_back(expression(element));
  return make(where, std::move(result));
}

ExprPtr AstBuilder::choice(GsdParser::PrimaryContext* context) {
  IfExpr result;
  const std::vector<GsdParser::ExprContext*> conditions = context->expr();
  const std::vector<GsdParser::ExpressionContext*> values = context->expression();
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    result.arms.push_back({condition(conditions[i]), expression(values.at(i))});
  }
  result.otherwise = expression(values.back());
  return make(range(context), std::move(result));
}

static std::string withoutUnderscores(std::string_view text) {
  std::string result(text);
  std::erase(result, '_');
  return result;
}

ExprPtr AstBuilder::integer(SourceRange where) {
  const std::string text = withoutUnderscores(tree_.sources.text(where));
  IntLiteral literal;
  const std::from_chars_result end = std::from_chars(text.data(), text.data() + text.size(), literal.value);
  if (end.ec != std::errc()) {
    tree_.sink.emit(where, diag::NumberTooLarge, text);
    return make(where, ErrorExpr{});
  }
  return make(where, literal);
}

ExprPtr AstBuilder::floating(SourceRange where) {
  const std::string text = withoutUnderscores(tree_.sources.text(where));
  FloatLiteral literal;
  const std::from_chars_result end = std::from_chars(text.data(), text.data() + text.size(), literal.value);
  // Too small is 0, as everywhere; too large is a mistake, since infinity is written `inf`.
  const bool tooSmall = end.ec == std::errc::result_out_of_range && text.find('-') != std::string::npos;
  if (end.ec != std::errc() && !tooSmall) {
    tree_.sink.emit(where, diag::NumberTooLarge, text).help("infinity is written `inf`");
    return make(where, ErrorExpr{});
  }
  if (tooSmall) literal.value = 0;
  return make(where, literal);
}

ExprPtr AstBuilder::string(SourceRange where) {
  const std::string_view text = tree_.sources.text(where);
  StringLiteral literal;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      literal.value += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'n':
        literal.value += '\n';
        break;
      case 't':
        literal.value += '\t';
        break;
      case 'r':
        literal.value += '\r';
        break;
      case '"':
        literal.value += '"';
        break;
      case '\\':
        literal.value += '\\';
        break;
      default: {
        std::size_t length = 1;  // of the escaped code point
        while (i + length + 1 < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xC0u) == 0x80u)
          ++length;
        const std::uint32_t at = where.begin + static_cast<std::uint32_t>(i) - 1;
        tree_.sink
            .emit({where.file, at, at + 1 + static_cast<std::uint32_t>(length)}, diag::UnknownEscape,
                  std::string(text.substr(i, length)))
            .note("the escapes are `\\n`, `\\t`, `\\r`, `\\\"` and `\\\\`");
      }
    }
  }
  return make(where, std::move(literal));
}

// ---- annotations

std::vector<Annotation> AstBuilder::annotations(const std::vector<GsdParser::AnnotationContext*>& contexts) {
  std::vector<Annotation> result;
  for (GsdParser::AnnotationContext* context : contexts) {
    Annotation one;
    one.range = range(context);
    if (annotation(context, one)) result.push_back(std::move(one));
  }
  return result;
}

static bool namesOf(std::vector<Argument>& arguments, std::vector<Name>& names) {
  for (const Argument& argument : arguments) {
    const NameRef* name = as<NameRef>(*argument.value);
    if (argument.name.present() || !name) return false;
    names.push_back({name->name, argument.value->range});
  }
  return !names.empty();
}

bool AstBuilder::annotation(GsdParser::AnnotationContext* context, Annotation& result) {
  const Name word = name(context->name());
  std::vector<Argument> given = arguments(context->arguments());
  const auto wrong = [&](const char* form) {
    tree_.sink.emit(result.range, diag::AnnotationForm, word.text, form);
    return false;
  };
  const auto bare = [&](auto node) {
    if (!given.empty() || context->LPAREN()) return wrong("nothing in parentheses");
    result.node = node;
    return true;
  };
  if (word.text == "split") {
    return splitAnnotation(given, result) ||
           wrong("a dim and what to split it by: `@split(0, 4)`, `@split(0, data)` or `@split(0, data, model)`");
  }
  if (word.text == "shard") {
    return shardAnnotation(given, result) ||
           wrong("a list with an axis, a tuple of axes or `_` per dim, or `tiles: […], devices: […]`");
  }
  if (word.text == "replicate") return bare(ReplicateAnnotation{});
  if (word.text == "open") return bare(OpenAnnotation{});
  if (word.text == "stored") return bare(StoredAnnotation{});
  if (word.text == "remat") return bare(RematAnnotation{});
  if (word.text == "partial") {
    PartialAnnotation partial;
    if (!namesOf(given, partial.axes)) return wrong("one or more mesh axes");
    result.node = std::move(partial);
    return true;
  }
  const std::vector<std::string> known = {"open", "partial", "remat", "replicate", "shard", "split", "stored"};
  auto report = tree_.sink.emit(result.range, diag::UnknownAnnotation, word.text);
  const std::optional<std::string> close = suggest(word.text, known);
  if (close) {
    report.fix("did you mean `@" + *close + "`?", false, {{word.range, *close}});
    return false;
  }
  report.note("annotations are @" + gshard::join(known, ", @"));
  // In other languages `a @ b` is a product.
  if (dynamic_cast<GsdParser::ExpressionContext*>(context->parent) != nullptr && given.empty())
    report.help("the product of matrices is `matmul(a, b)`");
  return false;
}

bool AstBuilder::splitAnnotation(std::vector<Argument>& arguments, Annotation& result) {
  SplitAnnotation split;
  if (arguments.size() < 2) return false;
  for (Argument& argument : arguments) {
    if (argument.name.present()) return false;
    if (!split.dim)
      split.dim = std::move(argument.value);
    else
      split.parts.push_back(std::move(argument.value));
  }
  result.node = std::move(split);
  return true;
}

bool AstBuilder::shardAnnotation(std::vector<Argument>& arguments, Annotation& result) {
  if (arguments.size() != 1 || arguments[0].name.present()) return deviceList(arguments, result);
  ShardAnnotation shard;
  if (!shardDims(*arguments[0].value, shard)) return false;
  result.node = std::move(shard);
  return true;
}

bool AstBuilder::deviceList(std::vector<Argument>& arguments, Annotation& result) {
  DeviceListAnnotation list;
  for (Argument& argument : arguments) {
    if (argument.name.text == "tiles")
      list.tiles = std::move(argument.value);
    else if (argument.name.text == "devices")
      list.devices = std::move(argument.value);
    else if (argument.name.text == "copies")
      list.copies = std::move(argument.value);
    else
      return false;
  }
  if (!list.tiles || !list.devices) return false;
  result.node = std::move(list);
  return true;
}

bool AstBuilder::shardDims(const Expr& list, ShardAnnotation& result) {
  const ListExpr* dims = as<ListExpr>(list);
  if (!dims) return false;
  for (const ExprPtr& element : dims->elements) {
    ShardAnnotation::Dim dim;
    dim.range = element->range;
    if (const NameRef* axis = as<NameRef>(*element)) {
      if (axis->name != "_") dim.axes.push_back({axis->name, element->range});
    } else if (const TupleExpr* axes = as<TupleExpr>(*element)) {
      for (const ExprPtr& part : axes->elements) {
        const NameRef* name = as<NameRef>(*part);
        if (!name) return false;
        dim.axes.push_back({name->name, part->range});
      }
    } else {
      return false;
    }
    result.dims.push_back(std::move(dim));
  }
  return true;
}

}  // namespace gshard
