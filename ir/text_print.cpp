// Printing modules. Names are made unique in order of appearance, so that equal modules print alike.
#include <algorithm>
#include <map>
#include <set>

#include "ir/op_table.h"
#include "ir/text.h"
#include "support/check.h"
#include "support/text.h"

namespace gshard {

namespace {
bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isPlainNamePart(char c) {
  return isNameStart(c) || (c >= '0' && c <= '9') || c == '.';
}

std::string printName(const std::string& name) {
  const bool plain = !name.empty() && isNameStart(name[0]) && std::all_of(name.begin(), name.end(), isPlainNamePart);
  return plain ? name : quoted(name);
}

class Names {
 public:
  explicit Names(const Function& function) : names_(function.values.size()) {
    for (const Argument& argument : function.arguments) define(function, argument.value);
    for (const Op& op : function.ops) {
      for (const ValueId result : op.results) define(function, result);
    }
  }

  std::string of(ValueId id) const {
    const bool isDefined = id.index < names_.size() && !names_[id.index].empty();
    return isDefined ? "%" + names_[id.index] : "%undefined_" + std::to_string(id.index);
  }

 private:
  void define(const Function& function, ValueId id) {
    if (id.index >= names_.size()) return;
    std::string base;
    for (const char c : function.value(id).name) base += isPlainNamePart(c) ? c : '_';
    if (base.empty()) {
      names_[id.index] = std::to_string(unnamed_++);
      return;
    }
    if (!isNameStart(base[0])) base = "_" + base;
    std::string name = base;
    while (!used_.insert(name).second) name = base + "." + std::to_string(++next_[base]);
    names_[id.index] = name;
  }

  std::vector<std::string> names_;  // by value index; empty: not defined
  std::set<std::string> used_;
  std::map<std::string, std::int64_t> next_;  // last suffix tried
  std::int64_t unnamed_ = 0;
};

template <class T, class Print>
std::string printList(const std::vector<T>& items, Print&& print) {
  std::string text = "[";
  for (std::size_t i = 0; i < items.size(); ++i) text += (i > 0 ? ", " : "") + print(items[i]);
  return text + "]";
}

std::string printAnnotation(const Mesh& mesh, const Annotation& annotation) {
  std::string text = printSharding(mesh, annotation.sharding);
  if (annotation.open) text += " open";
  if (annotation.stored) text += " stored";
  return text;
}

std::string printLiteral(const Literal& literal) {
  const auto real = [](double value) { return formatNumber(value); };
  const auto integer = [](std::int64_t value) { return std::to_string(value); };
  if (literal.floats.size() == 1) return real(literal.floats[0]);
  if (literal.ints.size() == 1) return integer(literal.ints[0]);
  return literal.floats.empty() ? printList(literal.ints, integer) : printList(literal.floats, real);
}

struct AttributePrinter {
  const Mesh& mesh;
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return formatNumber(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<std::int64_t>& value) const { return printShape(value); }
  std::string operator()(DType value) const { return std::string(dtypeName(value)); }
  std::string operator()(const std::vector<AxisRef>& value) const {
    return printList(value, [&](const AxisRef& ref) { return printAxisRef(mesh, ref); });
  }
  std::string operator()(const Annotation& value) const { return printAnnotation(mesh, value); }
  std::string operator()(const Literal& value) const { return printLiteral(value); }
};

AttrPlace placeOf(const OpDef& def, std::string_view name) {
  for (const AttrSpec& spec : *def.attributes) {
    if (spec.name == name) return spec.place;
  }
  return AttrPlace::Braces;
}

std::string printValueType(const Module& module, const Value& value) {
  std::string text = printType(value.type);
  if (value.sharding) text += " " + printSharding(module.mesh, *value.sharding);
  if (value.rowDim >= 0) text += " row " + std::to_string(value.rowDim);
  return text;
}

std::string printOpWith(const Module& module, const Function& function, const Op& op, const Names& names) {
  const OpDef& def = opDef(op.kind);
  std::string head(*def.name), words, braces;
  for (const auto& [name, value] : op.attributes.items()) {
    const std::string* text = std::get_if<std::string>(&value);
    switch (placeOf(def, name)) {
      case AttrPlace::OpName:
        head = text != nullptr ? *text : head;
        break;
      case AttrPlace::Word:
        words += " " + (text != nullptr ? *text : "");
        break;
      case AttrPlace::Text:
        words += " " + (text != nullptr ? quoted(*text) : "");
        break;
      case AttrPlace::ResultShape:
      case AttrPlace::ResultDType:
        break;
      case AttrPlace::Braces:
        braces += (braces.empty() ? "" : ", ") + name + " = " + std::visit(AttributePrinter{module.mesh}, value);
        break;
    }
  }
  std::string line;
  for (std::size_t i = 0; i < op.results.size(); ++i) line += (i > 0 ? ", " : "") + names.of(op.results[i]);
  line += " = " + head + words;
  for (std::size_t i = 0; i < op.operands.size(); ++i) line += (i > 0 ? ", " : " ") + names.of(op.operands[i]);
  if (!braces.empty()) line += " {" + braces + "}";
  line += " : ";
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    line += (i > 0 ? ", " : "") + printValueType(module, function.value(op.results[i]));
  }
  if (op.phase != Phase::Forward) line += " " + std::string(phaseName(op.phase));
  return line;
}

std::string printArgument(const Module& module, const Function& function, const Argument& argument,
                          const Names& names) {
  const std::string name = names.of(argument.value);
  std::string text = name + ": " + printValueType(module, function.value(argument.value));
  switch (argument.kind) {
    case ArgumentKind::Input:
      if (name != "%" + argument.name) text += " input " + printName(argument.name);
      break;
    case ArgumentKind::Parameter:
      text += " param " + printName(argument.name);
      break;
    case ArgumentKind::State:
      text += " state " + printName(argument.name);
      break;
    case ArgumentKind::Step:
      text += " step";
      break;
    case ArgumentKind::Steps:
      text += " steps";
      break;
    case ArgumentKind::Setting:
      text += " setting " + printName(argument.name);
      break;
    case ArgumentKind::Accumulator:
      text += " accumulator " + std::to_string(argument.index);
      break;
  }
  if (argument.annotation) text += " @" + printAnnotation(module.mesh, *argument.annotation);
  return text;
}

std::string printResult(const Result& result, const Names& names, const std::string& defaultName) {
  const std::string text = names.of(result.value);
  switch (result.kind) {
    case ResultKind::Output:
      return result.name == defaultName ? text : text + " output " + printName(result.name);
    case ResultKind::Report:
      return text + " report " + printName(result.name);
    case ResultKind::Parameter:
      return text + " param " + printName(result.name);
    case ResultKind::State:
      return text + " state " + printName(result.name);
    case ResultKind::Accumulator:
      return text + " accumulator " + std::to_string(result.index) + " " + std::string(reductionName(result.reduction));
  }
  GSHARD_UNREACHABLE("ResultKind");
}

std::string printModifiers(const Function& function) {
  std::string text;
  switch (function.kind) {
    case FunctionKind::Init:
      text += " init";
      break;
    case FunctionKind::Train:
      text += " train";
      break;
    case FunctionKind::Eval:
      text += " eval";
      break;
    case FunctionKind::Entry:
      break;
  }
  switch (function.stage) {
    case Stage::Whole:
      break;
    case Stage::Accumulate:
      text += " accumulate";
      break;
    case Stage::Finish:
      text += " finish";
      break;
  }
  if (function.rows != 0) text += " rows " + std::to_string(function.rows);
  if (function.blocks != 1) text += " blocks " + std::to_string(function.blocks);
  if (function.totalRows != 0) text += " total " + std::to_string(function.totalRows);
  if (!function.doc.empty()) text += " doc " + quoted(function.doc);
  return text;
}
}  // namespace

std::string defaultOutputName(const Function& function, std::size_t result) {
  std::size_t outputs = 0, before = 0;
  for (std::size_t i = 0; i < function.results.size(); ++i) {
    if (function.results[i].kind != ResultKind::Output) continue;
    ++outputs;
    if (i < result) ++before;
  }
  return outputs == 1 ? "result" : "result." + std::to_string(before);
}

std::string printFunction(const Module& module, const Function& function) {
  const Names names(function);
  std::string text = "func @" + printName(function.name) + "(";
  for (std::size_t i = 0; i < function.arguments.size(); ++i) {
    text += (i > 0 ? ", " : "") + printArgument(module, function, function.arguments[i], names);
  }
  text += ") -> ";
  if (function.results.size() != 1) text += "(";
  for (std::size_t i = 0; i < function.results.size(); ++i) {
    text += (i > 0 ? ", " : "") + printType(function.type(function.results[i].value));
  }
  if (function.results.size() != 1) text += ")";
  text += printModifiers(function) + " {\n";
  for (const Op& op : function.ops) text += "  " + printOpWith(module, function, op, names) + "\n";
  text += "  return";
  for (std::size_t i = 0; i < function.results.size(); ++i) {
    text += (i > 0 ? ", " : " ") + printResult(function.results[i], names, defaultOutputName(function, i));
  }
  return text + "\n}\n";
}

std::string printOp(const Module& module, const Function& function, const Op& op) {
  return printOpWith(module, function, op, Names(function));
}

std::string printModule(const Module& module) {
  std::string text;
  if (!module.name.empty()) text += "module " + printName(module.name) + "\n";
  if (!module.mesh.axes.empty() || module.meshDeclared) {
    text += "mesh " + printMesh(module.mesh) + (module.meshDeclared ? " declared" : "") + "\n";
  }
  for (const Parameter& each : module.parameters) {
    text += "param " + printName(each.name) + ": " + printType(each.type);
    if (each.sharding) text += " " + printSharding(module.mesh, *each.sharding);
    if (each.trained) text += " trained";
    if (each.annotation) text += " @" + printAnnotation(module.mesh, *each.annotation);
    if (!each.doc.empty()) text += " " + quoted(each.doc);
    text += "\n";
  }
  for (const State& each : module.states) {
    text += "state " + printName(each.name) + ": " + printType(each.type);
    if (each.sharding) text += " " + printSharding(module.mesh, *each.sharding);
    if (each.parameter >= 0)
      text += " of " + printName(module.parameters[static_cast<std::size_t>(each.parameter)].name);
    if (each.annotation) text += " @" + printAnnotation(module.mesh, *each.annotation);
    text += "\n";
  }
  for (const Setting& each : module.settings) {
    text += "setting " + printName(each.name) + ": " + std::string(dtypeName(each.dtype)) + " = " +
            formatNumber(each.value);
    if (!each.doc.empty()) text += " " + quoted(each.doc);
    text += "\n";
  }
  for (const Constant& each : module.constants) {
    text += "const " + printName(each.name) + ": " + quoted(each.type) + " = " + quoted(each.value);
    if (!each.doc.empty()) text += " " + quoted(each.doc);
    text += "\n";
  }
  for (const Function& function : module.functions)
    text += (text.empty() ? "" : "\n") + printFunction(module, function);
  return text;
}

}  // namespace gshard
