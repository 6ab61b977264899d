// Reading modules: declarations, functions, arguments and results. Lines of ops are read by text_parse_op.cpp.
#include "ir/text.h"
#include "ir/text_parse_op.h"

namespace gshard {

std::string defaultOutputName(const Function& function, std::size_t result);  // text_print.cpp

namespace {
class ModuleReader {
 public:
  ModuleReader(std::vector<IrToken> tokens, DiagSink& diag) : in_(std::move(tokens), diag), values_(in_) {}

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

  void readParameter() {
    Parameter parameter;
    parameter.range = in_.peek().range;
    parameter.name = in_.takeName("the path of a parameter");
    in_.expectMark(":");
    parameter.type = in_.takeType();
    parameter.sharding = in_.takeOptionalSharding(module_.mesh);
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
    state.sharding = in_.takeOptionalSharding(module_.mesh);
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
    while (in_.peek().kind == IrTokenKind::Value) readIrOp(in_, module_, function, values_);
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
    argument.value = values_.define(function, name, values_.takeType(module_.mesh, name, range), range);
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
    result.value = values_.takeKnown();
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

  IrCursor in_;
  Module module_;
  IrValues values_;
  std::string lastName_;
};
}  // namespace

std::optional<Module> parseModule(FileId file, const SourceManager& sources, DiagSink& diag) {
  return ModuleReader(lexIr(file, sources.text(file)), diag).read();
}

}  // namespace gshard
