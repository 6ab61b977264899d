// Random programs with random annotations, partitioned and run on simulated devices: the same numbers as on one device.
#include <gtest/gtest.h>

#include "ir/evaluator.h"
#include "ir/text.h"
#include "partition/passes.h"
#include "tests/fuzz/random_program.h"

namespace gshard {
namespace {

std::string show(const Tensor& tensor) {
  std::string text = printType(tensor.type) + " [";
  for (std::int64_t i = 0; i < tensor.type.elements(); ++i) text += (i > 0 ? ", " : "") + std::to_string(tensor.number(i));
  return text + "]";
}

bool sameNumbers(const Tensor& a, const Tensor& b) {
  if (!(a.type == b.type)) return false;
  for (std::int64_t i = 0; i < a.type.elements(); ++i) {
    const double x = a.number(i), y = b.number(i);
    if (!(x == y || (x != x && y != y))) return false;
  }
  return true;
}

void check(const fuzz::ProgramOptions& options) {
  fuzz::RandomProgram program = fuzz::makeProgram(options);
  SCOPED_TRACE("seed " + std::to_string(options.seed) + " mesh " + printMesh(program.module.mesh));
  ASSERT_EQ(verify(program.module, Form::Global), std::nullopt) << printModule(program.module);
  const std::vector<Tensor> expected = evaluate(program.module, program.module.functions[0], program.arguments).results;
  Module module = program.module;
  CollectingSink sink;
  PassOptions passOptions;
  PassContext context{passOptions, sink};
  PassManagerOptions managerOptions;
  managerOptions.checkRoundTrip = true;
  const PassRun run = runPasses(module, partitionPipeline(), context, managerOptions);
  ASSERT_FALSE(run.failure) << run.failure->pass << ": " << run.failure->fault << "\n" << run.failure->textBefore << "\n"
                            << printModule(module);
  std::vector<Tensor> actual;
  try {
    actual = evaluate(module, module.functions[0], program.arguments).results;
  } catch (const std::exception& error) {
    FAIL() << error.what() << "\n" << printModule(program.module) << printModule(module);
  }
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(sameNumbers(actual[i], expected[i])) << program.module.functions[0].results[i].name << "\n  one device  "
                                                     << show(expected[i]) << "\n  partitioned " << show(actual[i]) << "\n"
                                                     << printModule(program.module) << printModule(module);
  }
}

void checkSeeds(std::uint64_t first, std::uint64_t count, bool gradients) {
  const std::vector<std::vector<std::int64_t>> meshes = {{2}, {3}, {4}, {2, 2}, {2, 3}, {1, 4}};
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    fuzz::ProgramOptions options;
    options.seed = seed;
    options.mesh = meshes[seed % meshes.size()];
    options.operations = 3 + static_cast<int>(seed % 8);
    options.gradients = gradients;
    ASSERT_NO_THROW(check(options)) << "seed " << seed;
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(PartitionProperty, ForwardProgramsGiveTheSameNumbers) { checkSeeds(1, 600, false); }
TEST(PartitionProperty, GradientsGiveTheSameNumbers) { checkSeeds(10001, 300, true); }

}  // namespace
}  // namespace gshard
