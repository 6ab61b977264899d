// Reverse mode against finite differences in f64: every scalar function, broadcasting, several uses, and the ends of
// paths.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/autodiff.h"
#include "ir/evaluator.h"
#include "ir/scalar_functions.h"
#include "ir/verifier.h"

namespace gshard {
namespace {

// A function under construction with f64 inputs.
class Program {
 public:
  Program() { module_.functions.push_back(Function{.name = "f"}); }

  ValueId input(std::vector<std::int64_t> shape, std::vector<double> values) {
    const Type type{DType::F64, std::move(shape)};
    const ValueId id = function().addValue({.type = type, .name = "x" + std::to_string(inputs_.size())});
    function().arguments.push_back({.kind = ArgumentKind::Input, .name = function().value(id).name, .value = id});
    inputs_.push_back({.type = type, .floats = std::move(values), .ints = {}});
    return id;
  }
  Builder builder() { return Builder(module_, function(), sink_); }
  Function& function() { return module_.functions[0]; }
  CollectingSink& sink() { return sink_; }

  std::vector<Tensor> evaluateAt(std::span<const Tensor> inputs) const {
    return evaluate(module_, module_.functions[0], inputs).results;
  }
  void addResult(ValueId value) {
    function().results.push_back(
        {.kind = ResultKind::Output, .name = "r" + std::to_string(function().results.size()), .value = value});
  }

  // Differentiates the sum of `y` (with uneven weights) by all inputs and compares.
  void expectGradients(ValueId y, double tolerance = 1e-6) {
    Builder b = builder();
    const Type type = b.type(y);
    std::vector<double> weights;
    for (std::int64_t i = 0; i < type.elements(); ++i) weights.push_back(0.5 + 0.25 * static_cast<double>(i));
    const ValueId weight = b.constant(type, weights.size() == 1 ? floatLiteral(weights[0]) : Literal{{}, weights}, {});
    std::vector<std::int64_t> dims;
    for (std::int64_t i = 0; i < type.rank(); ++i) dims.push_back(i);
    const ValueId loss = b.reduce(Reduction::Sum, b.map("mul", {y, weight}, {}), dims, {});
    std::vector<ValueId> xs;
    for (const Argument& argument : function().arguments) xs.push_back(argument.value);
    const std::vector<ValueId> gradient = gradients(b, loss, xs);
    ASSERT_FALSE(sink_.hasErrors()) << sink_.diagnostics()[0].message;
    addResult(loss);
    for (const ValueId each : gradient) addResult(each);
    ASSERT_EQ(verify(module_, Form::Global), std::nullopt);
    const std::vector<Tensor> results = evaluateAt(inputs_);
    for (std::size_t x = 0; x < inputs_.size(); ++x) {
      for (std::size_t i = 0; i < inputs_[x].floats.size(); ++i) {
        const double step = 1e-5 * std::max(1.0, std::fabs(inputs_[x].floats[i]));
        std::vector<Tensor> moved = inputs_;
        moved[x].floats[i] += step;
        const double above = evaluateAt(moved)[0].floats[0];
        moved[x].floats[i] -= 2 * step;
        const double below = evaluateAt(moved)[0].floats[0];
        const double expected = (above - below) / (2 * step);
        EXPECT_NEAR(results[x + 1].floats[i], expected, tolerance * std::max(1.0, std::fabs(expected)))
            << "input " << x << ", element " << i;
      }
    }
  }

 private:
  Module module_;
  CollectingSink sink_;
  std::vector<Tensor> inputs_;
};

// Two regions in a chain: each reads what it was given as it was kept, so that neither is recomputed from the
// beginning.
TEST(Autodiff, RegionsAreReadAsClones) {
  Program kept, again;
  for (Program* program : {&kept, &again}) {
    Builder b = program->builder();
    const ValueId x = program->input({4}, {0.3, -0.7, 1.1, 0.2});
    const ValueId first = b.map("exp", {b.map("sin", {x}, {})}, {});               // ops 0, 1
    const ValueId second = b.map("tanh", {b.map("mul", {first, first}, {})}, {});  // ops 2, 3
    const ValueId last = b.map("mul", {second, second}, {});
    const ValueId loss = b.reduce(Reduction::Sum, last, {0}, {});
    const RecomputedRegions regions = program == &again ? RecomputedRegions{1, 1, 2, 2} : RecomputedRegions{};
    program->addResult(gradients(b, loss, std::vector<ValueId>{x}, regions)[0]);
  }
  const std::vector<Tensor> inputs = {{.type = {DType::F64, {4}}, .floats = {0.3, -0.7, 1.1, 0.2}, .ints = {}}};
  EXPECT_TRUE(sameBits(kept.evaluateAt(inputs)[0], again.evaluateAt(inputs)[0]));
  std::vector<std::string> clones;
  const Function& function = again.function();
  const std::vector<std::int64_t> definitions = definitionsOf(function);
  for (const Op& op : function.ops) {
    if (op.phase != Phase::Backward) continue;
    if (recomputeIdOf(op) != 0)
      clones.push_back(std::to_string(recomputeIdOf(op)) + std::get<std::string>(*op.attributes.find("fn")));
    for (const ValueId operand : op.operands) {
      const std::int64_t definition = definitions[operand.index];
      // Of what regions made in forward, backward reads nothing but what the second was given.
      EXPECT_TRUE(definition < 0 || definition > 3 || definition == 1) << definition;
    }
  }
  // In the order in which backward needs them; what was cloned once serves every later reader.
  EXPECT_EQ(clones, (std::vector<std::string>{"2mul", "2tanh", "1sin", "1exp"}));
}

TEST(Autodiff, EveryScalarFunction) {
  for (const ScalarInfo& info : allScalarFunctions()) {
    if (info.gradient == nullptr || info.fn == ScalarFn::Cast || info.fn == ScalarFn::Where) continue;
    SCOPED_TRACE(info.name);
    Program program;
    std::vector<ValueId> operands;
    const std::vector<double> values[3] = {{0.3, 1.7, 2.75}, {0.45, 0.9, 1.25}, {0.7, 2.1, 1.9}};
    for (int i = 0; i < info.arity; ++i) operands.push_back(program.input({3}, values[i]));
    Builder b = program.builder();
    program.expectGradients(b.map(info.name, operands, {}));
  }
}

TEST(Autodiff, BroadcastOperandsGetSums) {
  Program program;
  const ValueId x = program.input({2, 3}, {1, 2, 3, 4, 5, 6});
  const ValueId row = program.input({3}, {0.5, -1, 2});
  const ValueId column = program.input({2, 1}, {3, -2});
  const ValueId scalar = program.input({}, {1.5});
  Builder b = program.builder();
  const ValueId y = b.map("mul", {b.map("add", {x, row}, {}), b.map("mul", {column, scalar}, {})}, {});
  program.expectGradients(y);
}

TEST(Autodiff, ScalarsMeetShapes) {
  Program program;
  const ValueId s = program.input({}, {0.7});
  const ValueId x = program.input({4}, {1, 2, 3, 4});
  Builder b = program.builder();
  program.expectGradients(b.map("pow", {x, s}, {}));
}

TEST(Autodiff, WhereAndCast) {
  Program program;
  const ValueId x = program.input({3}, {1, -2, 3});
  const ValueId y = program.input({}, {0.5});
  Builder b = program.builder();
  const ValueId condition = b.map("gt", {x, y}, {});
  const ValueId narrow = b.cast(b.map("where", {condition, x, y}, {}), DType::F32, {});
  program.expectGradients(b.cast(narrow, DType::F64, {}), 1e-2);  // f32 in the middle: coarse differences
}

TEST(Autodiff, SeveralUsesAddUp) {
  Program program;
  const ValueId x = program.input({2, 2}, {0.1, 0.2, 0.3, 0.4});
  const ValueId w = program.input({2, 2}, {1, -1, 2, 0.5});
  Builder b = program.builder();
  const ValueId h = b.map("tanh", {b.contract("ij,jk->ik", {x, w}, {})}, {});
  const ValueId y = b.map("add", {b.contract("ij,jk->ik", {h, w}, {}), b.map("mul", {x, h}, {})}, {});
  program.expectGradients(y);
}

TEST(Autodiff, MaximumSharesATie) {
  Program program;
  const ValueId x = program.input({2}, {1, 3});
  const ValueId y = program.input({2}, {1, 2});
  Builder b = program.builder();
  const ValueId loss = b.reduce(Reduction::Sum, b.map("maximum", {x, y}, {}), {0}, {});
  const std::vector<ValueId> xs{x, y};
  for (const ValueId each : gradients(b, loss, xs)) program.addResult(each);
  const std::vector<Tensor> inputs{{.type = {DType::F64, {2}}, .floats = {1, 3}, .ints = {}},
                                   {.type = {DType::F64, {2}}, .floats = {1, 2}, .ints = {}}};
  const std::vector<Tensor> results = program.evaluateAt(inputs);
  EXPECT_EQ(results[0].floats, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(results[1].floats, (std::vector<double>{0.5, 0}));
}

TEST(Autodiff, ReluHasNoSlopeAtZero) {
  Program program;
  const ValueId x = program.input({3}, {0, -1, 2});
  Builder b = program.builder();
  const ValueId loss = b.reduce(Reduction::Sum, b.map("relu", {x}, {}), {0}, {});
  const std::vector<ValueId> xs{x};
  program.addResult(gradients(b, loss, xs)[0]);
  const std::vector<Tensor> inputs{{.type = {DType::F64, {3}}, .floats = {0, -1, 2}, .ints = {}}};
  EXPECT_EQ(program.evaluateAt(inputs)[0].floats, (std::vector<double>{0, 0, 1}));
}

TEST(Autodiff, WithoutAPathTheGradientIsZero) {
  Program program;
  const ValueId x = program.input({2}, {1, 2});
  const ValueId unused = program.input({3}, {1, 2, 3});
  Builder b = program.builder();
  const ValueId stopped = b.create(OpKind::StopGradient, {x}, {}, {});
  const ValueId index = b.create(OpKind::Argmax, {x}, {{"axis", std::int64_t{0}}}, {});
  const ValueId loss = b.map("add", {b.reduce(Reduction::Sum, stopped, {0}, {}), b.cast(index, DType::F64, {})}, {});
  const std::vector<ValueId> xs{x, unused};
  const std::vector<ValueId> result = gradients(b, loss, xs);
  EXPECT_FALSE(program.sink().hasErrors());
  for (const ValueId each : result) program.addResult(each);
  const std::vector<Tensor> inputs{{.type = {DType::F64, {2}}, .floats = {1, 2}, .ints = {}},
                                   {.type = {DType::F64, {3}}, .floats = {1, 2, 3}, .ints = {}}};
  const std::vector<Tensor> values = program.evaluateAt(inputs);
  EXPECT_EQ(values[0].floats, (std::vector<double>{0, 0}));
  EXPECT_EQ(values[1].floats, (std::vector<double>{0, 0, 0}));
}

TEST(Autodiff, OpsAreMarkedBackwardAndCarryTheirSource) {
  Program program;
  const ValueId x = program.input({2}, {1, 2});
  Builder b = program.builder();
  const SourceRange range{FileId{0}, 3, 7};
  const ValueId y = b.map("exp", {x}, range);
  const ValueId loss = b.reduce(Reduction::Sum, y, {0}, {});
  const std::size_t forward = program.function().ops.size();
  const std::vector<ValueId> xs{x};
  gradients(b, loss, xs);
  ASSERT_GT(program.function().ops.size(), forward);
  EXPECT_EQ(program.function().ops.back().phase, Phase::Backward);
  EXPECT_EQ(program.function().ops.back().range, range);
  EXPECT_EQ(b.phase(), Phase::Forward);
}

}  // namespace
}  // namespace gshard
