// Programs of one op, made from the examples of the op table: text, module and input values. Used by every property.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/evaluator.h"
#include "ir/op_table.h"

namespace gshard::conformance {

struct Program {
  Module module;
  const Function& function() const { return module.functions.front(); }
  const Op& op() const { return module.functions.front().ops.back(); }
  OpView view() const { return {module, function(), op()}; }
};

// "mesh [a: 2, b: 2] func @f(ARGS) { IR return … }"
std::string programText(const Example& example, const std::string& mesh);
// The reason in `error` when the text does not parse.
std::optional<Program> parseProgram(const std::string& text, std::string& error);
Program exampleProgram(const Example& example, const std::string& mesh = "[a: 2, b: 2]");

// The example with tensors of another dtype, for every dtype that its op accepts: a rule that forgets one is found by
// the examples that are there. `tolerance` is the example's, or what results of few bits allow.
struct Retyped {
  std::string what;  // "f32 as bf16"
  Program program;
  double tolerance = 0;
};
std::vector<Retyped> inEveryDtype(const Example& example, const std::string& mesh);

// The given values, or values drawn from the example's range; the same for the same seed.
std::vector<Tensor> exampleInputs(const Example& example, const Function& function, std::uint64_t seed = 1);
Tensor drawTensor(const Type& type, ValueRange range, std::uint64_t seed);
// "[[1, 2], [3, 4]]; 7" as tensors of these types.
std::vector<Tensor> parseTensors(std::string_view text, const std::vector<Type>& types);

// The first difference in words; `tolerance` is relative to the largest magnitude, 0 asks for the same bits.
std::optional<std::string> difference(const Tensor& actual, const Tensor& expected, double tolerance);

}  // namespace gshard::conformance
