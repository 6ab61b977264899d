// Every example of every op, compiled and run, against the evaluator: on one device, and with dims split on several.
#include <gtest/gtest.h>

#include "codegen_harness.h"
#include "example_program.h"
#include "ir/text.h"
#include "ir/verifier.h"

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

std::vector<OpKind> compiledOps() {
  std::vector<OpKind> kinds;
  for (const OpKind kind : allOps()) {
    if (kind != OpKind::DeviceIndex) kinds.push_back(kind);
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Ops, OpExamples, testing::ValuesIn(compiledOps()), [](const testing::TestParamInfo<OpKind>& info) {
  return std::string(*opDef(info.param).name);
});

}  // namespace
}  // namespace gshard::testing_codegen
