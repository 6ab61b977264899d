// Writing random programs as text, and dropping what is unused; the generator itself is in gsd_generator.cpp.
#include "tests/fuzz/gsd_program.h"

#include <algorithm>
#include <random>

namespace gshard::fuzz {

std::int64_t GsdProgram::devices() const {
  std::int64_t devices = 1;
  for (const GsdAxis& axis : mesh) devices *= axis.size;
  return devices;
}

std::string inputName(const std::vector<const GsdProgram*>& programs, std::size_t program, std::size_t input) {
  const std::string name = "x" + std::to_string(input);
  return programs.size() == 1 ? name : "p" + std::to_string(program) + name;
}

Tensor inputTensor(const GsdInput& input) {
  Tensor tensor = Tensor::zeros(input.type);
  std::mt19937_64 random(input.seed);
  const auto span = static_cast<std::uint64_t>(input.high - input.low + 1);
  for (std::int64_t i = 0; i < input.type.elements(); ++i)
    tensor.setNumber(i, static_cast<double>(input.low + static_cast<std::int64_t>(random() % span)));
  return tensor;
}

namespace {

constexpr std::string_view kStored = " @stored";  // of parameters alone
constexpr std::int64_t kSquared = 300;            // magnitudes up to this may be squared and summed

struct Body {
  std::string lets;
  std::vector<std::string> results;
};

class Writer {
 public:
  Writer(const std::vector<const GsdProgram*>& programs, std::size_t index)
      : programs_(programs), program_(*programs[index]), index_(index) {}

  std::string name(std::size_t value) const {
    if (value < program_.inputs.size()) {
      const std::string input = inputName(programs_, index_, value);
      return isParameter(value) ? "net." + input : input;
    }
    return (programs_.size() == 1 ? "v" : "p" + std::to_string(index_) + "v") + std::to_string(value);
  }

  std::int64_t boundOf(std::size_t value) const {
    const std::size_t inputs = program_.inputs.size();
    return value < inputs ? program_.inputs[value].high : program_.statements[value - inputs].bound;
  }

  bool isParameter(std::size_t input) const {
    return program_.kind == GsdKind::Training && program_.inputs[input].parameter;
  }

  Body body() const {
    Body body;
    for (std::size_t s = 0; s < program_.statements.size(); ++s) {
      const GsdStatement& statement = program_.statements[s];
      body.lets += "    let " + name(program_.inputs.size() + s) + " = ";
      const std::string text = filled(statement);
      body.lets += statement.annotation.empty() ? text : "(" + text + ")" + statement.annotation;
      body.lets += "   // " + printType(statement.type) + "\n";
    }
    if (program_.kind == GsdKind::Forward) {
      for (const std::size_t output : program_.outputs) body.results.push_back(name(output));
      return body;
    }
    const std::string loss = programs_.size() == 1 ? "loss" : "p" + std::to_string(index_) + "loss";
    std::string sum;
    for (const std::size_t output : program_.outputs) {
      // Squares give every element a gradient of its own, so that elements that change places are noticed.
      const std::string value = boundOf(output) <= kSquared ? name(output) + " * " + name(output) : name(output);
      const std::string term = program_.typeOf(output).isScalar() ? value : "sum(" + value + ")";
      sum += (sum.empty() ? "" : " + ") + term;
    }
    body.lets += "    let " + loss + " = " + sum + "\n";
    body.results.push_back(loss);
    if (program_.kind == GsdKind::Training) return body;
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      if (isFloat(program_.inputs[i].type.dtype)) body.results.push_back("grad(" + loss + ", " + name(i) + ")");
    }
    return body;
  }

 private:
  std::string filled(const GsdStatement& statement) const {
    std::string text;
    for (std::size_t i = 0; i < statement.text.size(); ++i) {
      if (statement.text[i] != '$') {
        text += statement.text[i];
        continue;
      }
      text += name(statement.operands[static_cast<std::size_t>(statement.text[++i] - '0')]);
    }
    return text;
  }

  const std::vector<const GsdProgram*>& programs_;
  const GsdProgram& program_;
  std::size_t index_;
};

// The optimizer of training programs: integers stay integers.
constexpr const char* kOptimizer =
    "optimizer opt() for (w, g) {\n    state m = zeros_like(w)\n    m = m + g\n    w = w - 2 * m\n}\n";

// One of top_k's results, for statements that are one expression.
constexpr const char* kTopFunctions =
    "fn top_values[T: dtype, ...S](x: T[...S], k: int, axis: int) {\n"
    "    let (values, places) = top_k(x, k, axis: axis)\n    return values\n}\n"
    "fn top_places[T: dtype, ...S](x: T[...S], k: int, axis: int) {\n"
    "    let (values, places) = top_k(x, k, axis: axis)\n    return places\n}\n\n";

}  // namespace

std::string gsdText(const std::vector<const GsdProgram*>& programs) {
  const GsdProgram& first = *programs.front();
  std::string mesh;
  for (const GsdAxis& axis : first.mesh)
    mesh += (mesh.empty() ? "" : ", ") + axis.name + ": " + std::to_string(axis.size);
  std::string arguments, parameters, states, lets;
  std::vector<std::string> results;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const Writer writer(programs, p);
    for (std::size_t i = 0; i < programs[p]->inputs.size(); ++i) {
      const GsdInput& input = programs[p]->inputs[i];
      std::string annotation = input.annotation;
      if (!writer.isParameter(i) && annotation.ends_with(kStored))
        annotation.resize(annotation.size() - kStored.size());
      const std::string declared = inputName(programs, p, i) + ": " + printType(input.type) + annotation;
      if (writer.isParameter(i)) {
        parameters += "    param " + declared + " = zeros()\n";
        if (!input.stateAnnotation.empty())
          states += "shard net." + inputName(programs, p, i) + ".opt.m" + input.stateAnnotation + "\n";
      } else {
        arguments += (arguments.empty() ? "" : ", ") + declared;
      }
    }
    Body body = writer.body();
    lets += body.lets;
    results.insert(results.end(), body.results.begin(), body.results.end());
  }
  std::string returned;
  for (const std::string& result : results) returned += (returned.empty() ? "" : ", ") + result;
  if (results.size() > 1) returned = "(" + returned + ")";
  std::string types;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const GsdProgram& program = *programs[p];
    const auto add = [&](const std::string& type) { types += (types.empty() ? "" : ", ") + type; };
    if (program.kind == GsdKind::Forward) {
      for (const std::size_t output : program.outputs) add(printType(program.typeOf(output)));
      continue;
    }
    add(printType({program.typeOf(program.outputs.front()).dtype, {}}));
    for (const GsdInput& input : program.inputs) {
      if (program.kind == GsdKind::Gradient && isFloat(input.type.dtype)) add(printType(input.type));
    }
  }
  if (results.size() > 1) types = "(" + types + ")";
  std::string text;
  if (!mesh.empty()) text += "mesh [" + mesh + "]\n\n";
  if (lets.find(" top_") != std::string::npos || lets.find("(top_") != std::string::npos) text += kTopFunctions;
  if (!parameters.empty()) text += "model Net() {\n" + parameters + "}\nlet net = Net()\n\n";
  text += "entry fn t(" + arguments + ") -> " + types + " {\n" + lets + "    return " + returned + "\n}\n";
  if (first.kind == GsdKind::Training) text += "\n" + std::string(kOptimizer) + "\ntrain t with opt()\n" + states;
  return text;
}

std::string gsdText(const GsdProgram& program) {
  return gsdText(std::vector<const GsdProgram*>{&program});
}

GsdProgram withoutUnused(const GsdProgram& program) {
  const std::size_t inputs = program.inputs.size();
  std::vector<bool> used(inputs + program.statements.size(), false);
  for (const std::size_t output : program.outputs) used[output] = true;
  for (std::size_t s = program.statements.size(); s-- > 0;) {
    if (!used[inputs + s]) continue;
    for (const std::size_t operand : program.statements[s].operands) used[operand] = true;
  }
  GsdProgram result = program;
  result.inputs.clear();
  result.statements.clear();
  std::vector<std::size_t> place(used.size(), 0);
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!used[i]) continue;
    place[i] = result.inputs.size();
    result.inputs.push_back(program.inputs[i]);
  }
  for (std::size_t s = 0; s < program.statements.size(); ++s) {
    if (!used[inputs + s]) continue;
    place[inputs + s] = result.inputs.size() + result.statements.size();
    GsdStatement statement = program.statements[s];
    for (std::size_t& operand : statement.operands) operand = place[operand];
    result.statements.push_back(std::move(statement));
  }
  for (std::size_t& output : result.outputs) output = place[output];
  const bool trains =
      std::any_of(result.inputs.begin(), result.inputs.end(), [](const GsdInput& each) { return each.parameter; });
  if (result.kind == GsdKind::Training && !trains) result.kind = GsdKind::Gradient;
  return result;
}

}  // namespace gshard::fuzz
