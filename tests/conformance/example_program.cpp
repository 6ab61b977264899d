// Programs of one op; see example_program.h.
#include "example_program.h"

#include <cmath>
#include <cstdlib>
#include <random>
#include <stdexcept>

#include "ir/text.h"

namespace gshard::conformance {

std::string programText(const Example& example, const std::string& mesh) {
  const std::string ir(example.ir);
  return "mesh " + mesh + "\nfunc @f(" + std::string(example.args) + ") {\n  " + ir + "\n  return " +
         ir.substr(0, ir.find('=')) + "\n}\n";
}

std::optional<Program> parseProgram(const std::string& text, std::string& error) {
  SourceManager sources;
  CollectingSink sink;
  std::optional<Module> module = parseModule(sources.addFile("example.ir", text), sources, sink);
  if (module) return Program{std::move(*module)};
  error = sink.diagnostics().empty() ? "no diagnostic" : sink.diagnostics().front().message;
  return std::nullopt;
}

Program exampleProgram(const Example& example, const std::string& mesh) {
  std::string error;
  std::optional<Program> program = parseProgram(programText(example, mesh), error);
  if (!program) throw std::runtime_error(std::string(example.ir) + ": " + error);
  return std::move(*program);
}

namespace {

// Arguments and attributes of dtype `from` become `to`; result types follow from the op's rule. Nothing when the rule
// refuses, or when nothing was `from`.
std::optional<Program> retyped(Program program, DType from, DType to) {
  Function& function = program.module.functions.front();
  bool changed = false;
  for (const Argument& argument : function.arguments) {
    DType& dtype = function.value(argument.value).type.dtype;
    if (dtype != from) continue;
    dtype = to;
    changed = true;
  }
  CollectingSink sink;
  for (Op& op : function.ops) {
    const Attribute* attribute = op.attributes.find("dtype");
    if (const DType* dtype = attribute == nullptr ? nullptr : std::get_if<DType>(attribute); dtype && *dtype == from) {
      op.attributes.set("dtype", to);
      changed = true;
    }
    const auto types = (*opDef(op.kind).infer)(OpView(program.module, function, op), sink);
    if (!types) return std::nullopt;
    for (std::size_t i = 0; i < op.results.size(); ++i) function.value(op.results[i]).type = (*types)[i];
  }
  return changed ? std::optional(std::move(program)) : std::nullopt;
}

double roundingOf(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return 0x1p-24;
    case DType::F64:
      return 0x1p-53;
    case DType::BF16:
      return 0x1p-8;
    case DType::F16:
      return 0x1p-11;
    case DType::I32:
    case DType::I64:
    case DType::U8:
    case DType::Bool:
      return 0;
  }
  return 0;
}

}  // namespace

std::vector<Retyped> inEveryDtype(const Example& example, const std::string& mesh) {
  constexpr DType kAll[] = {DType::F32, DType::F64, DType::BF16, DType::F16,
                            DType::I32, DType::I64, DType::U8,   DType::Bool};
  const Program program = exampleProgram(example, mesh);
  std::vector<Retyped> result;
  for (const DType from : {DType::F32, DType::I32}) {
    for (const DType to : kAll) {
      std::optional<Program> made = to == from ? std::nullopt : retyped(program, from, to);
      if (!made) continue;
      double tolerance = example.tolerance;
      for (const ValueId id : made->op().results) {
        // What rounds in floats, or is exact in integers alone.
        const bool rounds = tolerance > 0 || !isFloat(from);
        if (rounds) tolerance = std::max(tolerance, 4 * roundingOf(made->function().type(id).dtype));
      }
      result.push_back(
          {std::string(dtypeName(from)) + " as " + std::string(dtypeName(to)), *std::move(made), tolerance});
    }
  }
  return result;
}

Tensor drawTensor(const Type& type, ValueRange range, std::uint64_t seed) {
  Tensor tensor = Tensor::zeros(type);
  std::mt19937_64 engine(seed * 0x9E3779B97F4A7C15u + 12345);
  for (double& value : tensor.floats) {
    const double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
    value = roundTo(type.dtype, range.low + unit * (range.high - range.low));
  }
  for (std::int64_t& value : tensor.ints) {
    const std::uint64_t span = static_cast<std::uint64_t>(range.high - range.low) + 1;
    value = wrapTo(type.dtype, static_cast<std::int64_t>(range.low) + static_cast<std::int64_t>(engine() % span));
  }
  return tensor;
}

std::vector<Tensor> parseTensors(std::string_view text, const std::vector<Type>& types) {
  std::vector<Tensor> tensors;
  std::size_t at = 0;
  for (const Type& type : types) {
    Tensor tensor = Tensor::zeros(type);
    std::int64_t filled = 0;
    while (at < text.size() && text[at] != ';') {
      if (std::string_view("[], \n").find(text[at]) != std::string_view::npos) {
        ++at;
        continue;
      }
      const std::string token(text.substr(at, text.find_first_of("[], ;\n", at) - at));
      if (filled >= type.elements()) throw std::runtime_error("too many values for " + printType(type));
      const std::size_t place = static_cast<std::size_t>(filled++);
      if (tensor.isFloat()) {
        tensor.floats[place] = roundTo(type.dtype, std::strtod(token.c_str(), nullptr));
      } else {
        tensor.ints[place] = wrapTo(type.dtype, std::strtoll(token.c_str(), nullptr, 10));
      }
      at += token.size();
    }
    if (filled != type.elements()) throw std::runtime_error("too few values for " + printType(type));
    ++at;  // the semicolon
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<Tensor> exampleInputs(const Example& example, const Function& function, std::uint64_t seed) {
  std::vector<Type> types;
  for (const Argument& argument : function.arguments) types.push_back(function.type(argument.value));
  if (!example.given.empty()) return parseTensors(example.given, types);
  std::vector<Tensor> inputs;
  for (const Type& type : types) inputs.push_back(drawTensor(type, example.values, seed * 101 + inputs.size()));
  return inputs;
}

std::optional<std::string> difference(const Tensor& actual, const Tensor& expected, double tolerance) {
  if (actual.type != expected.type) return "type " + printType(actual.type) + " instead of " + printType(expected.type);
  if (sameBits(actual, expected)) return std::nullopt;
  double magnitude = 0;
  for (std::int64_t i = 0; i < expected.type.elements(); ++i) {
    if (std::isfinite(expected.number(i))) magnitude = std::max(magnitude, std::abs(expected.number(i)));
  }
  for (std::int64_t i = 0; i < expected.type.elements(); ++i) {
    const double a = actual.number(i), e = expected.number(i);
    const bool same =
        (std::isnan(a) && std::isnan(e)) || (a == e && (tolerance > 0 || std::signbit(a) == std::signbit(e)));
    if (same || std::abs(a - e) <= tolerance * magnitude) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a) + " instead of " + std::to_string(e);
  }
  return std::nullopt;
}

}  // namespace gshard::conformance
