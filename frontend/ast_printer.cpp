// The AST as text: declarations and statements as an indented tree, expressions fully parenthesised (operator first),
// so that a test sees precedence; see ast_printer.h. The forms as written, for messages, are in expr_printer.cpp.
#include "frontend/ast_printer.h"

#include "support/overloaded.h"
#include "support/text.h"

namespace gshard {

using namespace ast;

namespace {

std::string dotted(const DottedName& name) {
  std::vector<std::string> parts;
  for (const Name& part : name.parts) parts.push_back(part.text);
  return gshard::join(parts, ".");
}

std::string pattern(const PathPattern& pattern) {
  std::vector<std::string> parts;
  for (const PatternSegment& segment : pattern.segments) {
    switch (segment.kind) {
      case PatternSegment::Kind::Name:
        parts.push_back(segment.name);
        break;
      case PatternSegment::Kind::Index:
        parts.push_back(std::to_string(segment.index));
        break;
      case PatternSegment::Kind::Star:
        parts.push_back("*");
        break;
      case PatternSegment::Kind::DoubleStar:
        parts.push_back("**");
        break;
    }
  }
  return gshard::join(parts, ".");
}

std::string sexpr(const Expr& expr);

std::string optional(const ExprPtr& expr) {
  return expr ? sexpr(*expr) : "";
}

std::string item(const IndexItem& item) {
  if (!item.isSlice) return sexpr(*item.index);
  std::string text = optional(item.low) + ":" + optional(item.high);
  if (item.step) text += ":" + sexpr(*item.step);
  return text;
}

std::string sequence(const char* head, const std::vector<ExprPtr>& elements) {
  std::string text = std::string("(") + head;
  for (const ExprPtr& element : elements) text += " " + sexpr(*element);
  return text + ")";
}

std::string suffix(const std::vector<Annotation>& annotations) {
  std::string text;
  for (const Annotation& annotation : annotations) text += " " + printAnnotation(annotation);
  return text;
}

std::string argumentList(const std::vector<Argument>& arguments) {
  std::string text;
  for (const Argument& argument : arguments) {
    text += " ";
    if (argument.name.present()) text += argument.name.text + ": ";
    text += sexpr(*argument.value);
  }
  return text;
}

std::string sexpr(const Expr& expr) {
  return std::visit(
      Overloaded{
          [](const ErrorExpr&) -> std::string { return "<error>"; },
          [](const IntLiteral& e) { return std::to_string(e.value); },
          [](const FloatLiteral& e) { return formatNumber(e.value); },
          [](const BoolLiteral& e) -> std::string { return e.value ? "true" : "false"; },
          [](const StringLiteral& e) { return gshard::quoted(e.value); },
          [](const NoneLiteral&) -> std::string { return "none"; },
          [](const NameRef& e) { return e.name; },
          [](const Member& e) { return sexpr(*e.object) + "." + e.name.text; },
          [](const Call& e) { return "(call " + sexpr(*e.callee) + argumentList(e.arguments) + ")"; },
          [](const Index& e) {
            std::string text = "(index " + sexpr(*e.object);
            for (const IndexItem& one : e.items) text += " " + item(one);
            return text + ")";
          },
          [](const Unary& e) { return std::string("(") + spelling(e.op) + " " + sexpr(*e.operand) + ")"; },
          [](const Binary& e) {
            return std::string("(") + spelling(e.op) + " " + sexpr(*e.left) + " " + sexpr(*e.right) + ")";
          },
          [](const RangeExpr& e) { return "(.. " + sexpr(*e.low) + " " + sexpr(*e.high) + ")"; },
          [](const ListExpr& e) { return sequence("list", e.elements); },
          [](const Comprehension& e) {
            return "(list-for " + e.variable.text + " " + sexpr(*e.source) + " " + sexpr(*e.element) + ")";
          },
          [](const TupleExpr& e) { return sequence("tuple", e.elements); },
          [](const IfExpr& e) {
            std::string text = "(if";
            for (const IfExpr::Arm& arm : e.arms) text += " " + sexpr(*arm.condition) + " " + sexpr(*arm.value);
            return text + " else " + sexpr(*e.otherwise) + ")";
          },
          [](const AnnotatedExpr& e) { return "(annotated " + sexpr(*e.operand) + suffix(e.annotations) + ")"; },
      },
      expr.node);
}

class TreePrinter {
 public:
  std::string file(const File& file) {
    for (const Decl& decl : file.decls) std::visit([this](const auto& node) { print(node); }, decl.node);
    return std::move(out_);
  }

 private:
  void line(const std::string& text) {
    out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }

  void doc(const std::string& text) {
    if (text.empty()) return;
    for (const std::string& one : splitText(text, '\n')) line(one.empty() ? "///" : "/// " + one);
  }

  static std::string typed(const TypePtr& type) {
    return type ? ": " + printType(*type) + suffix(type->annotations) : "";
  }

  void block(const Block& block) {
    ++depth_;
    for (const StmtPtr& stmt : block.statements) std::visit([this](const auto& node) { print(node); }, stmt->node);
    --depth_;
  }

  void parameters(const std::vector<Parameter>& parameters) {
    for (const Parameter& parameter : parameters) {
      std::string text = "parameter " + parameter.name.text + typed(parameter.type);
      if (parameter.defaultValue) text += " = " + sexpr(*parameter.defaultValue);
      line(text);
    }
  }

  void print(const ImportDecl& d) { line("import " + dotted(d.path)); }

  void print(const ConstDecl& d) {
    doc(d.doc);
    line("const " + d.name.text + typed(d.type) + " = " + sexpr(*d.value));
  }

  void print(const MeshDecl& d) {
    std::vector<std::string> axes;
    for (const MeshDecl::Axis& axis : d.axes) axes.push_back(axis.name.text + ": " + sexpr(*axis.size));
    line("mesh [" + gshard::join(axes, ", ") + "]");
  }

  void print(const FnDecl& d) {
    doc(d.doc);
    std::vector<std::string> generics;
    for (const Generic& generic : d.generics) {
      switch (generic.kind) {
        case Generic::Kind::Dim:
          generics.push_back(generic.name.text);
          break;
        case Generic::Kind::Dims:
          generics.push_back("..." + generic.name.text);
          break;
        case Generic::Kind::Dtype:
          generics.push_back(generic.name.text + ": dtype");
          break;
      }
    }
    line((d.isEntry ? "entry fn " : "fn ") + d.name.text +
         (generics.empty() ? "" : "[" + gshard::join(generics, ", ") + "]"));
    ++depth_;
    parameters(d.parameters);
    if (d.result) line("result" + typed(d.result));
    std::vector<std::string> axes;
    for (const Name& axis : d.manualOver) axes.push_back(axis.text);
    if (!axes.empty()) line("manual over " + gshard::join(axes, ", "));
    line("body");
    block(d.body);
    --depth_;
  }

  void print(const ModelDecl& d) {
    doc(d.doc);
    line("model " + d.name.text);
    ++depth_;
    parameters(d.parameters);
    --depth_;
    block(d.body);
  }

  void print(const OptimizerDecl& d) {
    doc(d.doc);
    line("optimizer " + d.name.text + " for " + d.weight.text + ", " + d.gradient.text);
    ++depth_;
    parameters(d.parameters);
    line("body");
    block(d.body);
    --depth_;
  }

  void print(const TrainDecl& d) {
    line("train " + dotted(d.function));
    ++depth_;
    for (const TrainDecl::Optimizer& optimizer : d.optimizers) {
      std::vector<std::string> patterns;
      for (const PathPattern& one : optimizer.patterns) patterns.push_back(pattern(one));
      line("with (" + dotted(optimizer.name) + argumentList(optimizer.arguments) + ")" +
           (patterns.empty() ? "" : " for " + gshard::join(patterns, ", ")));
    }
    for (const TrainDecl::Option& option : d.options) line("option " + option.name.text + ": " + sexpr(*option.value));
    --depth_;
  }

  void print(const ShardDecl& d) {
    std::vector<std::string> patterns;
    for (const PathPattern& one : d.patterns) patterns.push_back(pattern(one));
    line("shard " + gshard::join(patterns, ", ") + suffix(d.annotations));
  }

  void print(const Let& s) {
    doc(s.doc);
    std::vector<std::string> names;
    for (const Name& name : s.names) names.push_back(name.text);
    const std::string list = gshard::join(names, ", ");
    line("let " + (s.isTuple ? "(" + list + ")" : list) + typed(s.type) + " = " + sexpr(*s.value));
  }

  void print(const ParamDecl& s) {
    doc(s.doc);
    line("param " + s.name.text + typed(s.type) + " = " + sexpr(*s.init));
  }

  void print(const StateDecl& s) {
    doc(s.doc);
    line("state " + s.name.text + typed(s.type) + " = " + sexpr(*s.init));
  }

  void print(const Assign& s) { line(s.name.text + " = " + sexpr(*s.value)); }
  void print(const Report& s) { line("report " + s.name.text + " = " + sexpr(*s.value)); }
  void print(const Return& s) { line("return " + sexpr(*s.value)); }

  void print(const For& s) {
    line("for " + s.variable.text + " in " + sexpr(*s.source));
    block(s.body);
  }

  void print(const Loop& s) {
    line("loop " + s.variable.text + " in (.. " + sexpr(*s.low) + " " + sexpr(*s.high) + ")");
    block(s.body);
  }

  void print(const If& s) {
    for (std::size_t i = 0; i < s.arms.size(); ++i) {
      line((i == 0 ? "if " : "else if ") + sexpr(*s.arms[i].condition));
      block(s.arms[i].body);
    }
    if (!s.otherwise) return;
    line("else");
    block(*s.otherwise);
  }

  std::string out_;
  std::int64_t depth_ = 0;
};

}  // namespace

std::string printAst(const File& file) {
  return TreePrinter().file(file);
}

}  // namespace gshard
