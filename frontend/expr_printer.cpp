// Expressions, types and annotations as one would write them: single spaces, parentheses only where needed. For
// messages and for the annotations in the tree of ast_printer.cpp.
#include "frontend/ast_printer.h"
#include "support/overloaded.h"
#include "support/text.h"

namespace gshard {

using namespace ast;

namespace {

// Binding strengths of design.md section 2, tightest highest.
enum Strength { kAnnotation, kRange, kOr, kAnd, kNot, kCompare, kAdd, kMul, kNegate, kPow, kPostfix };

Strength strength(BinaryOp op) {
  switch (op) {
    case BinaryOp::Pow:
      return kPow;
    case BinaryOp::Mul:
    case BinaryOp::Div:
    case BinaryOp::Mod:
      return kMul;
    case BinaryOp::Add:
    case BinaryOp::Sub:
      return kAdd;
    case BinaryOp::Equal:
    case BinaryOp::NotEqual:
    case BinaryOp::Less:
    case BinaryOp::LessEqual:
    case BinaryOp::Greater:
    case BinaryOp::GreaterEqual:
      return kCompare;
    case BinaryOp::And:
      return kAnd;
    case BinaryOp::Or:
      return kOr;
  }
  return kPostfix;
}

std::string written(const Expr& expr, int outer);

std::string listed(const std::vector<ExprPtr>& elements) {
  std::vector<std::string> parts;
  for (const ExprPtr& element : elements) parts.push_back(written(*element, kAnnotation));
  return gshard::join(parts, ", ");
}

std::string indexText(const IndexItem& item) {
  if (!item.isSlice) return written(*item.index, kRange);
  std::string text =
      (item.low ? written(*item.low, kRange) : "") + ":" + (item.high ? written(*item.high, kRange) : "");
  if (item.step) text += ":" + written(*item.step, kRange);
  return text;
}

std::string argumentText(const Argument& argument) {
  return (argument.name.present() ? argument.name.text + ": " : "") + written(*argument.value, kAnnotation);
}

std::string binary(const Binary& e) {
  const int own = strength(e.op);
  const bool chainable = !isComparison(e.op);
  const int left = e.op == BinaryOp::Pow || !chainable ? own + 1 : own;
  const int right = e.op == BinaryOp::Pow ? static_cast<int>(kNegate) : own + 1;
  return written(*e.left, left) + " " + spelling(e.op) + " " + written(*e.right, right);
}

int strengthOf(const Expr& expr) {
  if (const Binary* e = as<Binary>(expr)) return strength(e->op);
  if (const Unary* e = as<Unary>(expr)) return e->op == UnaryOp::Not ? kNot : kNegate;
  if (is<RangeExpr>(expr)) return kRange;
  if (is<AnnotatedExpr>(expr)) return kAnnotation;
  return kPostfix;
}

std::string bare(const Expr& expr) {
  return std::visit(
      Overloaded{
          [](const ErrorExpr&) -> std::string { return "…"; },
          [](const IntLiteral& e) { return std::to_string(e.value); },
          [](const FloatLiteral& e) { return formatNumber(e.value); },
          [](const BoolLiteral& e) -> std::string { return e.value ? "true" : "false"; },
          [](const StringLiteral& e) { return gshard::quoted(e.value); },
          [](const NoneLiteral&) -> std::string { return "none"; },
          [](const NameRef& e) { return e.name; },
          [](const Member& e) { return written(*e.object, kPostfix) + "." + e.name.text; },
          [](const Call& e) {
            std::vector<std::string> parts;
            for (const Argument& argument : e.arguments) parts.push_back(argumentText(argument));
            return written(*e.callee, kPostfix) + "(" + gshard::join(parts, ", ") + ")";
          },
          [](const Index& e) {
            std::vector<std::string> parts;
            for (const IndexItem& one : e.items) parts.push_back(indexText(one));
            return written(*e.object, kPostfix) + "[" + gshard::join(parts, ", ") + "]";
          },
          [](const Unary& e) {
            return e.op == UnaryOp::Not ? "not " + written(*e.operand, kNot) : "-" + written(*e.operand, kNegate);
          },
          [](const Binary& e) { return binary(e); },
          [](const RangeExpr& e) { return written(*e.low, kOr) + ".." + written(*e.high, kOr); },
          [](const ListExpr& e) { return "[" + listed(e.elements) + "]"; },
          [](const Comprehension& e) {
            return "[" + written(*e.element, kAnnotation) + " for " + e.variable.text + " in " +
                   written(*e.source, kAnnotation) + "]";
          },
          [](const TupleExpr& e) { return "(" + listed(e.elements) + ")"; },
          [](const IfExpr& e) {
            std::string text;
            for (const IfExpr::Arm& arm : e.arms) {
              text += "if " + written(*arm.condition, kRange) + " { " + written(*arm.value, kAnnotation) + " } else ";
            }
            return text + "{ " + written(*e.otherwise, kAnnotation) + " }";
          },
          [](const AnnotatedExpr& e) {
            std::string text = written(*e.operand, kRange);
            for (const Annotation& annotation : e.annotations) text += " " + printAnnotation(annotation);
            return text;
          },
      },
      expr.node);
}

std::string written(const Expr& expr, int outer) {
  const std::string text = bare(expr);
  return strengthOf(expr) < outer ? "(" + text + ")" : text;
}

std::string shardDim(const ShardAnnotation::Dim& dim) {
  if (dim.axes.empty()) return "_";
  std::vector<std::string> axes;
  for (const Name& axis : dim.axes) axes.push_back(axis.text);
  return axes.size() == 1 ? axes[0] : "(" + gshard::join(axes, ", ") + ")";
}

}  // namespace

std::string printExpr(const Expr& expr) {
  return written(expr, kAnnotation);
}

std::string printType(const Type& type) {
  return std::visit(Overloaded{
                        [](const NamedType& t) {
                          if (!t.hasShape) return t.name.text;
                          std::vector<std::string> dims;
                          for (const Dim& dim : t.dims)
                            dims.push_back(dim.size ? printExpr(*dim.size) : "..." + dim.spread.text);
                          return t.name.text + "[" + gshard::join(dims, ", ") + "]";
                        },
                        [](const TupleType& t) {
                          std::vector<std::string> parts;
                          for (const TypePtr& element : t.elements) {
                            std::string text = printType(*element);
                            for (const Annotation& annotation : element->annotations)
                              text += " " + printAnnotation(annotation);
                            parts.push_back(text);
                          }
                          return "(" + gshard::join(parts, ", ") + ")";
                        },
                        [](const ListType& t) { return "[" + printType(*t.element) + "]"; },
                        [](const ErrorType&) -> std::string { return "…"; },
                    },
                    type.node);
}

std::string printAnnotation(const Annotation& annotation) {
  return std::visit(Overloaded{
                        [](const SplitAnnotation& a) {
                          std::string text = "@split(" + printExpr(*a.dim);
                          for (const ExprPtr& part : a.parts) text += ", " + printExpr(*part);
                          return text + ")";
                        },
                        [](const ReplicateAnnotation&) -> std::string { return "@replicate"; },
                        [](const ShardAnnotation& a) {
                          std::vector<std::string> dims;
                          for (const ShardAnnotation::Dim& dim : a.dims) dims.push_back(shardDim(dim));
                          return "@shard([" + gshard::join(dims, ", ") + "])";
                        },
                        [](const DeviceListAnnotation& a) {
                          std::string text =
                              "@shard(tiles: " + printExpr(*a.tiles) + ", devices: " + printExpr(*a.devices);
                          if (a.copies) text += ", copies: " + printExpr(*a.copies);
                          return text + ")";
                        },
                        [](const OpenAnnotation&) -> std::string { return "@open"; },
                        [](const StoredAnnotation&) -> std::string { return "@stored"; },
                        [](const PartialAnnotation& a) {
                          std::vector<std::string> axes;
                          for (const Name& axis : a.axes) axes.push_back(axis.text);
                          return "@partial(" + gshard::join(axes, ", ") + ")";
                        },
                        [](const RematAnnotation&) -> std::string { return "@remat"; },
                    },
                    annotation.node);
}

}  // namespace gshard
