// Every example of every op, compiled and run, against the evaluator: on one device, and with dims split on several.
#include <gtest/gtest.h>

#include "codegen_harness.h"
#include "example_program.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "partition_wishes.h"

namespace gshard::testing_codegen {
namespace {

class OpExamples : public testing::TestWithParam<OpKind> {};

Module replicatedOn(const Example& example, const std::string& mesh) {
  conformance::Program program = conformance::exampleProgram(example, mesh);
  for (Value& value : program.module.functions.front().values) {
    if (!value.sharding) value.sharding = Sharding::replicated(value.type.rank());
  }
  return program.module;
}

TEST_P(OpExamples, LikeEvaluator) {
  const OpDef& def = opDef(GetParam());
  const bool isSpmd = isSpmdOnly(GetParam());
  for (const Example& example : *def.examples) {
    SCOPED_TRACE(std::string(example.ir));
    const Module module = replicatedOn(example, isSpmd ? "[a: 2, b: 2]" : "[a: 1]");
    const std::vector<Tensor> inputs = conformance::exampleInputs(example, module.functions.front());
    expectLikeEvaluator(module, module.functions.front().name, inputs, example.tolerance);
  }
}

// All dtypes of one op in one module, a function each: compiled once.
TEST_P(OpExamples, LikeEvaluatorInEveryDtype) {
  Module module;
  struct Run {
    std::string function, what;
    std::vector<Tensor> inputs;
    double tolerance;
  };
  std::vector<Run> runs;
  for (const Example& example : *opDef(GetParam()).examples) {
    for (conformance::Retyped& other :
         conformance::inEveryDtype(example, isSpmdOnly(GetParam()) ? "[a: 2, b: 2]" : "[a: 1]")) {
      module.mesh = other.program.module.mesh;
      Function& function = module.functions.emplace_back(other.program.function());
      for (Value& value : function.values) {
        if (!value.sharding) value.sharding = Sharding::replicated(value.type.rank());
      }
      function.name = "f" + std::to_string(runs.size());
      runs.push_back({function.name, std::string(example.ir) + ", " + other.what,
                      conformance::exampleInputs(example, function), other.tolerance});
    }
  }
  if (runs.empty()) return;  // an op without tensors of those types
  const std::unique_ptr<Compiled> compiled = Compiled::compile(module);
  ASSERT_NE(compiled, nullptr);
  for (const Run& run : runs) {
    SCOPED_TRACE(run.what);
    expectLikeEvaluator(*compiled, module, run.function, run.inputs, run.tolerance);
  }
}

// Each dim of operand and result asked to be split in turn, as the partitioner makes it: what runs is its collectives
// and the kernels on tiles, uneven and empty ones among them.
TEST_P(OpExamples, LikeEvaluatorWhenSplit) {
  if (isSpmdOnly(GetParam())) return;
  for (const Example& example : *opDef(GetParam()).examples) {
    const conformance::Program base = conformance::exampleProgram(example, "[a: 3]");
    const std::vector<Tensor> inputs = conformance::exampleInputs(example, base.function());
    for (const conformance::Wish& wish : conformance::wishesOf(base)) {
      const std::optional<Module> module = conformance::partitionedAs(base, wish);
      ASSERT_TRUE(module) << example.ir << " " << wish.text;
      SCOPED_TRACE(std::string(example.ir) + " " + wish.text);
      expectLikeEvaluator(*module, module->functions.front().name, inputs, example.tolerance);
    }
  }
}

TEST(DeviceIndex, CountsOverItsAxes) {
  const auto module = moduleOf(R"(module m
mesh [a: 2, b: 3]

func @f(%x: i32[6] {[(b, a)]}) -> i32[6] {
  %d = device_index {axes = [b, a]} : i32 {[]}
  %y = add %x, %d : i32[6] {[(b, a)]}
  return %y
}
)");
  ASSERT_NE(module, nullptr);
  const auto compiled = Compiled::compile(*module);
  ASSERT_NE(compiled, nullptr);
  const RunResult run =
      compiled->run("f", {Tensor::zeros(module->functions[0].type(module->functions[0].arguments[0].value))});
  EXPECT_EQ(run.results[0].ints, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
}

INSTANTIATE_TEST_SUITE_P(Ops, OpExamples, testing::ValuesIn(allOps().begin(), allOps().end()),
                         [](const testing::TestParamInfo<OpKind>& info) {
                           return std::string(*opDef(info.param).name);
                         });

}  // namespace
}  // namespace gshard::testing_codegen
