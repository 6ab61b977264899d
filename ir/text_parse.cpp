// Reading modules: declarations, functions and ops. What an op may look like is said by its OpDef; types are inferred and
// compared with those written.
#include <map>

#include "ir/op_table.h"
#include "ir/scalar_functions.h"
#include "ir/text.h"
#include "ir/text_cursor.h"
#include "support/check.h"
#include "support/text.h"

namespace gshard {

std::string defaultOutputName(const Function& function, std::size_t result);   // text_print.cpp

namespace {
class ModuleReader {
 public:
  ModuleReader(std::vector<IrToken> tokens, DiagSink& diag) : in_(std::move(tokens), diag) {}

  std::optional<Module> read() {
    if (in_.acceptName("module")) module_.name = in_.takeName("a module name");
    if (in_.acceptName("mesh")) {
      module_.mesh = in_.takeMesh();
      module_.meshDeclared = in_.acceptName("declared");
    }
    while (!in_.atEnd()) {
      if (in_.acceptName("param")) {
        readParameter();
      } else if (in_.acceptName("state")) {
        readState();
      } else if (in_.acceptName("setting")) {
        readSetting();
      } else if (in_.acceptName("const")) {
        readConstant();
      } else if (in_.acceptName("func")) {
        readFunction();
      } else {
        in_.expected("`param`, `state`, `setting`, `const` or `func`");
      }
    }
    if (in_.failed()) return std::nullopt;
    return std::move(module_);
  }

 private:
  // ---- declarations
  std::string optionalString() { return in_.peek().kind == IrTokenKind::String ? in_.takeString() : ""; }

  std::optional<Annotation> optionalAnnotation() {
    if (!in_.acceptMark("@")) return std::nullopt;
    return in_.takeAnnotation(module_.mesh);
  }

  std::optional<Sharding> optionalSharding() {
    if (!in_.isMark("{")) return std::nullopt;
    return in_.takeSharding(module_.mesh);
  }

  void readParameter() {
    Parameter parameter;
    parameter.range = in_.peek().range;
    parameter.name = in_.takeName("the path of a parameter");
    in_.expectMark(":");
    parameter.type = in_.takeType();
    parameter.sharding = optionalSharding();
    parameter.trained = in_.acceptName("trained");
    parameter.annotation = optionalAnnotation();
    parameter.doc = optionalString();
    module_.parameters.push_back(std::move(parameter));
  }

  void readState() {
    State state;
    state.range = in_.peek().range;
    state.name = in_.takeName("the path of a state");
    in_.expectMark(":");
    state.type = in_.takeType();
    state.sharding = optionalSharding();
    if (in_.acceptName("of")) state.parameter = takeIndex("parameter", module_.parameters);
    state.annotation = optionalAnnotation();
    module_.states.push_back(std::move(state));
  }

  void readSetting() {
    Setting setting;
    setting.name = in_.takeName("the name of a setting");
    in_.expectMark(":");
    setting.dtype = in_.takeDType();
    in_.expectMark("=");
    setting.value = in_.takeReal();
    setting.doc = optionalString();
    module_.settings.push_back(std::move(setting));
  }

  void readConstant() {
    Constant constant;
    constant.name = in_.takeName("the name of a constant");
    in_.expectMark(":");
    constant.type = in_.takeString();
    in_.expectMark("=");
    constant.value = in_.takeString();
    constant.doc = optionalString();
    module_.constants.push_back(std::move(constant));
  }

  // The place of a name in a list of declarations; the name goes to lastName_.
  template <class Declarations>
  std::int64_t takeIndex(const char* what, const Declarations& list) {
    const SourceRange range = in_.peek().range;
    lastName_ = in_.takeName(what);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].name == lastName_) return static_cast<std::int64_t>(i);
    }
    in_.error(range, diag::IrUnknownName, what, lastName_);
    return -1;
  }

  // ---- functions
  void readFunction() {
    values_.clear();
    Function function;
    function.range = in_.peek().range;
    in_.expectMark("@");
    function.name = in_.takeName("the name of a function");
    in_.expectMark("(");
    if (!in_.acceptMark(")")) {
      do {
        readArgument(function);
      } while (in_.acceptMark(","));
      in_.expectMark(")");
    }
    std::vector<Type> types;
    const SourceRange typesRange = in_.peek().range;
    const bool hasTypes = in_.acceptMark("->");
    if (hasTypes) types = takeResultTypes();
    readModifiers(function);
    in_.expectMark("{");
    while (in_.peek().kind == IrTokenKind::Value) readOp(function);
    in_.expectName("return");
    if (in_.peek().kind == IrTokenKind::Value) {
      do {
        readResult(function);
      } while (in_.acceptMark(","));
    }
    in_.expectMark("}");
    if (in_.failed()) return;
    for (std::size_t i = 0; i < function.results.size(); ++i) {
      if (function.results[i].kind == ResultKind::Output && function.results[i].name.empty()) {
        function.results[i].name = defaultOutputName(function, i);
      }
    }
    if (hasTypes) checkResultTypes(function, types, typesRange);
    module_.functions.push_back(std::move(function));
  }

  std::vector<Type> takeResultTypes() {
    std::vector<Type> types;
    if (!in_.acceptMark("(")) {
      types.push_back(in_.takeType());
      return types;
    }
    if (in_.acceptMark(")")) return types;
    do {
      types.push_back(in_.takeType());
    } while (in_.acceptMark(","));
    in_.expectMark(")");
    return types;
  }

  void checkResultTypes(const Function& function, const std::vector<Type>& types, SourceRange range) {
    const auto print = [](const std::vector<Type>& list) {
      std::string text;
      for (const Type& type : list) text += (text.empty() ? "" : ", ") + printType(type);
      return text;
    };
    std::vector<Type> given;
    for (const Result& result : function.results) given.push_back(function.type(result.value));
    if (given != types) in_.error(range, diag::IrTypeDiffers, "return", print(given), print(types));
  }

  void readModifiers(Function& function) {
    while (!in_.isMark("{") && !in_.atEnd()) {
      if (in_.acceptName("init")) {
        function.kind = FunctionKind::Init;
      } else if (in_.acceptName("train")) {
        function.kind = FunctionKind::Train;
      } else if (in_.acceptName("eval")) {
        function.kind = FunctionKind::Eval;
      } else if (in_.acceptName("accumulate")) {
        function.stage = Stage::Accumulate;
      } else if (in_.acceptName("finish")) {
        function.stage = Stage::Finish;
      } else if (in_.acceptName("rows")) {
        function.rows = in_.takeInt();
      } else if (in_.acceptName("blocks")) {
        function.blocks = in_.takeInt();
      } else if (in_.acceptName("total")) {
        function.totalRows = in_.takeInt();
      } else if (in_.acceptName("doc")) {
        function.doc = in_.takeString();
      } else {
        in_.expected("`{`");
      }
    }
  }

  void readArgument(Function& function) {
    Argument argument;
    const SourceRange range = in_.peek().range;
    const std::string name = in_.takeValue();
    in_.expectMark(":");
    argument.value = define(function, name, takeValueType(name, range), range);
    argument.name = name;
    if (in_.acceptName("input")) {
      argument.name = in_.takeName("the name of an input");
    } else if (in_.acceptName("param")) {
      argument.kind = ArgumentKind::Parameter;
      argument.index = takeIndex("parameter", module_.parameters);
      argument.name = lastName_;
    } else if (in_.acceptName("state")) {
      argument.kind = ArgumentKind::State;
      argument.index = takeIndex("state", module_.states);
      argument.name = lastName_;
    } else if (in_.acceptName("step")) {
      argument.kind = ArgumentKind::Step;
    } else if (in_.acceptName("steps")) {
      argument.kind = ArgumentKind::Steps;
    } else if (in_.acceptName("setting")) {
      argument.kind = ArgumentKind::Setting;
      argument.index = takeIndex("setting", module_.settings);
      argument.name = lastName_;
    } else if (in_.acceptName("accumulator")) {
      argument.kind = ArgumentKind::Accumulator;
      argument.index = in_.takeInt();
    }
    argument.annotation = optionalAnnotation();
    function.arguments.push_back(std::move(argument));
  }

  void readResult(Function& function) {
    Result result;
    result.range = in_.peek().range;
    result.value = takeKnownValue();
    if (in_.acceptName("output")) {
      result.name = in_.takeName("the name of an output");
    } else if (in_.acceptName("report")) {
      result.kind = ResultKind::Report;
      result.name = in_.takeName("the name of a report");
    } else if (in_.acceptName("param")) {
      result.kind = ResultKind::Parameter;
      result.index = takeIndex("parameter", module_.parameters);
      result.name = lastName_;
    } else if (in_.acceptName("state")) {
      result.kind = ResultKind::State;
      result.index = takeIndex("state", module_.states);
      result.name = lastName_;
    } else if (in_.acceptName("accumulator")) {
      result.kind = ResultKind::Accumulator;
      result.index = in_.takeInt();
      result.reduction = in_.takeReduction();
    }
    if (!in_.failed()) function.results.push_back(std::move(result));
  }

  // ---- values
  Value takeValueType(const std::string& name, SourceRange range) {
    Value value;
    value.type = in_.takeType();
    value.sharding = optionalSharding();
    if (in_.acceptName("row")) value.rowDim = in_.takeInt();
    value.name = isNumber(name) ? "" : name;
    value.range = range;
    return value;
  }

  static bool isNumber(const std::string& name) { return name.find_first_not_of("0123456789") == std::string::npos; }

  ValueId define(Function& function, const std::string& name, Value value, SourceRange range) {
    const ValueId id = function.addValue(std::move(value));
    if (!values_.emplace(name, id).second) in_.error(range, diag::IrSyntax, "a new name", "`%" + name + "` again");
    return id;
  }

  ValueId takeKnownValue() {
    const SourceRange range = in_.peek().range;
    const std::string name = in_.takeValue();
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    in_.error(range, diag::IrUnknownName, "value", "%" + name);
    return {};
  }

  // ---- ops
  void readOp(Function& function) {
    std::vector<std::pair<std::string, SourceRange>> names;
    do {
      const SourceRange range = in_.peek().range;
      names.emplace_back(in_.takeValue(), range);
    } while (in_.acceptMark(","));
    in_.expectMark("=");
    Op op{.kind = OpKind::Map, .operands = {}, .results = {}, .attributes = {}, .range = in_.peek().range};
    const SourceRange headRange = in_.peek().range;
    const std::string head = in_.takeName("the name of an op");
    if (!chooseKind(head, headRange, op)) return;
    readWords(op);
    if (in_.peek().kind == IrTokenKind::Value) {
      do {
        op.operands.push_back(takeKnownValue());
      } while (in_.acceptMark(","));
    }
    if (in_.isMark("{")) readAttributes(op);
    in_.expectMark(":");
    std::vector<Value> results;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i > 0) in_.expectMark(",");
      results.push_back(takeValueType(names[i].first, names[i].second));
    }
    if (in_.acceptName("backward")) {
      op.phase = Phase::Backward;
    } else if (in_.acceptName("update")) {
      op.phase = Phase::Update;
    }
    op.range = join(names[0].second, in_.previous().range);
    if (in_.failed() || !finishAttributes(op, head, results) || !checkTypes(function, op, head, results)) return;
    for (std::size_t i = 0; i < names.size(); ++i) {
      op.results.push_back(define(function, names[i].first, std::move(results[i]), names[i].second));
    }
    function.ops.push_back(std::move(op));
  }

  bool chooseKind(const std::string& head, SourceRange range, Op& op) {
    if (in_.failed()) return false;
    if (scalarFromName(head)) {
      op.attributes.set("fn", head);
      return true;
    }
    const std::optional<OpKind> kind = opFromName(head);
    if (!kind || *kind == OpKind::Map) {
      in_.error(range, diag::IrUnknownName, "op", head);
      return false;
    }
    op.kind = *kind;
    return true;
  }

  void readWords(Op& op) {
    for (const AttrSpec& spec : *opDef(op.kind).attributes) {
      if (spec.place == AttrPlace::Word) op.attributes.set(std::string(spec.name), in_.takeName("a word"));
      if (spec.place == AttrPlace::Text) op.attributes.set(std::string(spec.name), in_.takeString());
    }
  }

  void readAttributes(Op& op) {
    in_.expectMark("{");
    if (in_.acceptMark("}")) return;
    do {
      const SourceRange range = in_.peek().range;
      const std::string name = in_.takeName("the name of an attribute");
      in_.expectMark("=");
      const AttrSpec* spec = nullptr;
      for (const AttrSpec& each : *opDef(op.kind).attributes) {
        if (each.name == name) spec = &each;
      }
      if (spec == nullptr) {
        in_.error(range, diag::IrUnknownName, "attribute", name);
        return;
      }
      op.attributes.set(name, takeAttribute(spec->kind));
    } while (in_.acceptMark(","));
    in_.expectMark("}");
  }

  Attribute takeAttribute(AttrKind kind) {
    switch (kind) {
      case AttrKind::Int: return in_.takeInt();
      case AttrKind::Float: return in_.takeReal();
      case AttrKind::Bool: return takeBool();
      case AttrKind::String: return in_.takeString();
      case AttrKind::Ints: return in_.takeInts();
      case AttrKind::DTypeName: return in_.takeDType();
      case AttrKind::Axes: return in_.takeAxes(module_.mesh);
      case AttrKind::AnnotationText: return in_.takeAnnotation(module_.mesh);
      case AttrKind::Numbers: return takeNumbers();
    }
    GSHARD_UNREACHABLE("AttrKind");
  }

  bool takeBool() {
    if (in_.acceptName("true")) return true;
    in_.expectName("false");
    return false;
  }

  // Numbers of a literal; as floats until the dtype is known.
  Literal takeNumbers() {
    Literal literal;
    const auto one = [&]() {
      const bool isWhole = in_.peek().kind == IrTokenKind::Number && in_.peek().text.find_first_not_of("-0123456789") == std::string::npos;
      if (isWhole) {
        literal.ints.push_back(in_.takeInt());
        literal.floats.push_back(static_cast<double>(literal.ints.back()));
      } else if (in_.isName("true") || in_.isName("false")) {
        literal.ints.push_back(takeBool() ? 1 : 0);
        literal.floats.push_back(static_cast<double>(literal.ints.back()));
      } else {
        literal.floats.push_back(in_.takeReal());
      }
    };
    if (!in_.acceptMark("[")) {
      one();
      return literal;
    }
    if (in_.acceptMark("]")) return literal;
    do {
      one();
    } while (in_.acceptMark(","));
    in_.expectMark("]");
    return literal;
  }

  // What the result type says, literals by its dtype, and that nothing is missing.
  bool finishAttributes(Op& op, const std::string& head, const std::vector<Value>& results) {
    const Type& type = results[0].type;
    for (const AttrSpec& spec : *opDef(op.kind).attributes) {
      const std::string name(spec.name);
      const Attribute* found = op.attributes.find(name);
      if (found == nullptr && spec.place == AttrPlace::ResultShape) op.attributes.set(name, type.shape);
      const bool takesDType = op.kind != OpKind::Map || scalarInfo(*scalarFromName(head)).result == ScalarResult::Attribute;
      if (found == nullptr && spec.place == AttrPlace::ResultDType && takesDType) op.attributes.set(name, type.dtype);
      if (found != nullptr && spec.kind == AttrKind::Numbers) {
        Literal literal = std::get<Literal>(*found);
        const bool exact = isFloat(type.dtype) || literal.ints.size() == literal.floats.size();
        if (!exact) {
          in_.error(op.range, diag::IrAttribute, name, head, "has a fraction, but the result is `" + printType(type) + "`");
          return false;
        }
        if (isFloat(type.dtype)) {
          literal.ints.clear();
        } else {
          literal.floats.clear();
        }
        op.attributes.set(name, literal);
      }
      if (op.attributes.find(name) == nullptr && !spec.optional) {
        in_.error(op.range, diag::IrAttribute, name, head, "is missing");
        return false;
      }
    }
    return true;
  }

  bool checkTypes(const Function& function, const Op& op, const std::string& head, const std::vector<Value>& results) {
    const OperandSpec& spec = *opDef(op.kind).operands;
    const int count = static_cast<int>(op.operands.size());
    if (count < spec.least || (spec.most >= 0 && count > spec.most)) {
      const std::string wanted = spec.most < 0 ? "at least " + std::to_string(spec.least)
                                               : std::to_string(spec.least) + (spec.most > spec.least ? " to " + std::to_string(spec.most) : "");
      in_.error(op.range, diag::OperandCount, head, wanted, count);
      return false;
    }
    const std::optional<ResultTypes> types = (*opDef(op.kind).infer)(OpView(module_, function, op), in_.diag());
    if (!types) {
      in_.stopQuietly();
      return false;
    }
    std::string inferred, written;
    for (const Type& type : *types) inferred += (inferred.empty() ? "" : ", ") + printType(type);
    for (const Value& value : results) written += (written.empty() ? "" : ", ") + printType(value.type);
    if (inferred == written) return true;
    in_.error(op.range, diag::IrTypeDiffers, head, inferred, written);
    return false;
  }

  IrCursor in_;
  Module module_;
  std::map<std::string, ValueId> values_;
  std::string lastName_;
};
}  // namespace

std::optional<Module> parseModule(FileId file, const SourceManager& sources, DiagSink& diag) {
  return ModuleReader(lexIr(file, sources.text(file)), diag).read();
}

}  // namespace gshard
