// The outside oracle: gradients, ten losses and the final parameters of examples/mlp_small.gsd against what JAX and
// PyTorch agree on (tests/oracle), computed here in f32 by the evaluator.
#include <cmath>

#include "runtime/array.h"
#include "sema_harness.h"

namespace gshard {
namespace {

using namespace testing_sema;

TEST(SemaOracle, SmallNetworkTrainsAsItsPeers) {
  std::map<std::string, std::vector<double>> oracle;
  for (const auto& [name, array] : runtime::readArrays(GSHARD_SOURCE_DIR "/tests/oracle/mlp_small.npz")) {
    for (std::int64_t i = 0; i < array.count(); ++i) oracle[name].push_back(runtime::asDouble(array, i));
  }
  auto program = std::make_unique<Program>();
  std::string error;
  const FileId file = *program->sources.addFileFromDisk(GSHARD_SOURCE_DIR "/examples/mlp_small.gsd", error);
  const std::unique_ptr<ast::File> parsed = parseFile(file, program->sources, program->sink);
  program->module = elaborate(*parsed, program->sources, defaults(), program->sink);
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  const std::vector<std::string> names = {"w1", "b1", "w2", "b2", "w3", "b3"};
  Tensors values = initialValues(module);
  values["x"] = floats({10, 7}, oracle.at("input.x"));
  values["y"] = ints({10}, oracle.at("input.y"));
  for (const std::string& name : names) {
    Tensor& parameter = values.at("net." + name);
    parameter = tensor(DType::F32, parameter.type.shape, oracle.at("param." + name));
  }
  const Tensors slopes = run(module, "gradients", values);
  for (std::size_t i = 0; i < names.size(); ++i) {
    expectNear(slopes.at("result." + std::to_string(i)), oracle.at("grad." + names[i]), 2e-7);
  }
  for (int step = 0; step < 10; ++step) {
    const Tensors result = run(module, "loss", values, {.step = step, .steps = 10, .eval = {}});
    EXPECT_NEAR(numbers(result.at("loss"))[0], oracle.at("losses")[static_cast<std::size_t>(step)], 1e-6)
        << "step " << step;
    for (const auto& [name, value] : result) {
      if (name != "loss") values[name] = value;
    }
  }
  for (const std::string& name : names) expectNear(values.at("net." + name), oracle.at("final." + name), 2e-6);
}

}  // namespace
}  // namespace gshard
