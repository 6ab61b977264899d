// Properties of the unsplit program: inferred types, text, literal values, gradients; and the list of all properties.
#include <cmath>
#include <stdexcept>

#include "ir/autodiff.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "properties.h"

namespace gshard::conformance {

namespace {
bool isSpmdExample(const OpDef& def) {
  return std::holds_alternative<OwnTiles>(*def.localize);
}

std::vector<Type> resultTypes(const Function& function) {
  std::vector<Type> types;
  for (const Result& result : function.results) types.push_back(function.type(result.value));
  return types;
}
}  // namespace

Faults checkInfer(const Example& example, const std::string& mesh) {
  const Program program = exampleProgram(example, mesh);  // parsing compares inferred and written types
  Faults faults;
  const bool isSpmd = isSpmdExample(opDef(program.op().kind));
  // Operands and results of SPMD ops may be pending, which those of a whole function may not.
  if (const auto fault = isSpmd ? verifySpmdOp(program.view()) : verify(program.module, Form::Global))
    faults.push_back(*fault);
  const std::vector<Tensor> inputs = exampleInputs(example, program.function());
  const std::vector<Type> types = resultTypes(program.function());
  const EvalResult result = evaluate(program.module, program.function(), inputs);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (result.results[i].type != types[i])
      faults.push_back("the evaluator gives " + printType(result.results[i].type));
  }
  if (!result.faults.empty()) faults.push_back("run-time error: " + result.faults[0]);
  return faults;
}

Faults checkText(const Example& example, const std::string& mesh) {
  const Program program = exampleProgram(example, mesh);
  const std::string first = printModule(program.module);
  std::string error;
  const std::optional<Program> again = parseProgram(first, error);
  if (!again) return {first + error};
  const std::string second = printModule(again->module);
  if (first != second) return {"printed, parsed and printed again it differs:\n" + first + second};
  if (!(again->op().attributes == program.op().attributes)) return {"attributes differ after a round trip:\n" + first};
  return {};
}

Faults checkExpected(const Example& example, const std::string& mesh) {
  const Program program = exampleProgram(example, mesh);
  const std::vector<Tensor> inputs = exampleInputs(example, program.function());
  const EvalResult result = evaluate(program.module, program.function(), inputs);
  const std::vector<Tensor> expected = parseTensors(example.expected, resultTypes(program.function()));
  Faults faults;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (const auto fault = difference(result.results[i], expected[i], example.tolerance)) faults.push_back(*fault);
  }
  return faults;
}

// An SPMD op on other meshes, where its shardings are legal there at all.
Faults checkOtherMesh(const Example& example, const std::string& mesh) {
  std::string error;
  const std::optional<Program> program = parseProgram(programText(example, mesh), error);
  if (!program || verifySpmdOp(program->view())) return {};
  return checkExpected(example, mesh);
}

namespace {
// The example in f64, and a scalar from its results: sum of weight * result with fixed weights.
struct Weighted {
  Program program;
  std::vector<Tensor> inputs;
  std::vector<Tensor> weights;

  double value(std::span<const Tensor> at) const {
    const EvalResult result = evaluate(program.module, program.function(), at);
    double sum = 0;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      for (std::size_t i = 0; i < weights[r].floats.size(); ++i)
        sum += weights[r].floats[i] * result.results[r].floats[i];
    }
    return sum;
  }
};

Weighted weightedInF64(const Example& example, const std::string& mesh) {
  std::string text = programText(example, mesh);
  for (std::size_t at = text.find("f32"); at != std::string::npos; at = text.find("f32")) text.replace(at, 3, "f64");
  std::string error;
  std::optional<Program> program = parseProgram(text, error);
  if (!program) throw std::runtime_error(error);
  Weighted weighted{std::move(*program), {}, {}};
  weighted.inputs = exampleInputs(example, weighted.program.function());
  for (const Type& type : resultTypes(weighted.program.function()))
    weighted.weights.push_back(drawTensor(type, {0.5, 2}, 7));
  return weighted;
}

// Appends the scalar and its gradients to the function; results become the gradients of the float arguments.
Faults appendGradients(Weighted& weighted, std::vector<std::size_t>& arguments, Module& module) {
  module = weighted.program.module;
  Function& function = module.functions.front();
  CollectingSink sink;
  Builder builder(module, function, sink);
  ValueId total = builder.scalar(DType::F64, 0, {});
  for (std::size_t r = 0; r < weighted.weights.size(); ++r) {
    const ValueId y = function.results[r].value;
    const Type type = function.type(y);
    if (!isFloat(type.dtype)) continue;  // top_k's indices
    std::vector<std::int64_t> dims;
    for (std::int64_t dim = 0; dim < type.rank(); ++dim) dims.push_back(dim);
    const ValueId weight = builder.constant(type, Literal{{}, weighted.weights[r].floats}, {});
    total =
        builder.map("add", {total, builder.reduce(Reduction::Sum, builder.map("mul", {y, weight}, {}), dims, {})}, {});
  }
  std::vector<ValueId> xs;
  for (std::size_t i = 0; i < function.arguments.size(); ++i) {
    if (!isFloat(function.type(function.arguments[i].value).dtype)) continue;
    arguments.push_back(i);
    xs.push_back(function.arguments[i].value);
  }
  const std::vector<ValueId> gradientValues = gradients(builder, total, xs);
  if (sink.hasErrors()) return {"no gradient: " + sink.diagnostics().front().message};
  function.results.clear();
  for (const ValueId value : gradientValues)
    function.results.push_back({.kind = ResultKind::Output, .name = "g", .value = value});
  if (const auto fault = verify(module, Form::Global)) return {*fault};
  return {};
}
}  // namespace

Faults checkGradient(const Example& example, const std::string& mesh) {
  Weighted weighted = weightedInF64(example, mesh);
  std::vector<std::size_t> arguments;
  Module module;
  Faults faults = appendGradients(weighted, arguments, module);
  if (!faults.empty()) return faults;
  const EvalResult result = evaluate(module, module.functions.front(), weighted.inputs);
  constexpr double kStep = 1e-5;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    std::vector<Tensor> at = weighted.inputs;
    Tensor& x = at[arguments[k]];
    Tensor numeric = Tensor::zeros(x.type);
    for (std::size_t i = 0; i < x.floats.size(); ++i) {
      const double middle = x.floats[i];
      x.floats[i] = middle + kStep;
      const double above = weighted.value(at);
      x.floats[i] = middle - kStep;
      const double below = weighted.value(at);
      x.floats[i] = middle;
      numeric.floats[i] = (above - below) / (2 * kStep);
    }
    if (const auto fault = difference(result.results[k], numeric, 1e-6)) {
      bool isNothing = true;  // rounding noise around a gradient of zero
      for (std::size_t i = 0; i < numeric.floats.size(); ++i) {
        isNothing = isNothing && std::abs(numeric.floats[i] - result.results[k].floats[i]) < 1e-6;
      }
      if (!isNothing) faults.push_back("argument " + std::to_string(arguments[k]) + ": " + *fault);
    }
  }
  return faults;
}

const std::vector<Property>& allProperties() {
  static const auto always = [](const OpDef&, const Example&) { return true; };
  static const auto globalOnly = [](const OpDef& def, const Example&) { return !isSpmdExample(def); };
  static const std::vector<Property> properties = {
      {"infer", +always, &checkInfer, {"[a: 2, b: 2]"}},
      {"text", +always, &checkText, {"[a: 2, b: 2]"}},
      {"expected",
       [](const OpDef&, const Example& example) { return !example.expected.empty(); },
       &checkExpected,
       {"[a: 2, b: 2]"}},
      {"meshes",
       [](const OpDef& def, const Example&) { return isSpmdExample(def); },
       &checkOtherMesh,
       {"[a: 3, b: 2]", "[a: 4, b: 2]", "[a: 2, b: 3]", "[b: 2, a: 3]"}},
      {"gradient",
       [](const OpDef&, const Example& example) { return example.differentiable; },
       &checkGradient,
       {"[a: 1]"}},
      {"split", +globalOnly, &checkSplit, {"[a: 2]", "[a: 3]", "[a: 4]", "[a: 2, b: 2]"}},
      {"dtypes", +globalOnly, &checkDtypes, {"[a: 3]", "[a: 2, b: 2]"}},
      {"partitioned", +globalOnly, &checkPartitioned, {"[a: 2]", "[a: 3]", "[a: 4]", "[a: 2, b: 2]"}},
      {"partial", +globalOnly, &checkPartial, {"[a: 2]", "[a: 3]"}},
  };
  return properties;
}

}  // namespace gshard::conformance
