// Random programs, partitioned, compiled and run on the runtime's devices, against the evaluator. Values are small
// integers in f64, so that sums are exact and equality is exact. GSHARD_SEEDS=first:count runs others.
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen_harness.h"
#include "ir/text.h"
#include "partition/passes.h"
#include "tests/fuzz/partition_check.h"

namespace gshard::testing_codegen {
namespace {

bool sameNumbers(const Tensor& a, const Tensor& b) {
  if (!(a.type == b.type)) return false;
  for (std::int64_t i = 0; i < a.type.elements(); ++i) {
    const double x = a.number(i), y = b.number(i);
    if (!(x == y || (x != x && y != y))) return false;
  }
  return true;
}

void checkSeed(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  fuzz::ProgramOptions programOptions = fuzz::optionsOfSeed(seed);
  // Every tenth program is large: groups get the chance to wait for each other.
  if (seed % 10 == 0) programOptions.operations = 60;
  const fuzz::RandomProgram program = fuzz::makeProgram(programOptions);
  Module module = program.module;
  CollectingSink sink;
  const PassOptions passOptions;
  PassContext context{passOptions, sink};
  const PassRun run = runPasses(module, partitionPipeline(), context, {});
  ASSERT_FALSE(run.failure);
  SCOPED_TRACE(printModule(module));
  const EvalResult expected = evaluate(module, module.functions[0], program.arguments);
  CodegenOptions options;
  options.fuse = seed % 4 != 0;
  options.threads = 1 + static_cast<std::int64_t>(seed % 2);
  const std::unique_ptr<Compiled> compiled = Compiled::compile(module, options);
  ASSERT_NE(compiled, nullptr);
  RunOptions runOptions;
  runOptions.threads = options.threads;
  const RunResult actual = compiled->run(module.functions[0].name, program.arguments, runOptions);
  EXPECT_EQ(actual.code, 0);
  EXPECT_FALSE(actual.replicasDiffer) << printModule(module);
  EXPECT_LE(actual.highestByte, compiled->program().functions[0].peak_bytes);
  EXPECT_EQ(actual.bytesReceived, expected.bytesReceived) << printModule(module);
  for (std::size_t i = 0; i < expected.results.size(); ++i) {
    EXPECT_TRUE(sameNumbers(actual.results[i], expected.results[i])) << "result " << i << "\n" << printModule(module);
  }
}

TEST(Programs, LikeEvaluator) {
  std::uint64_t first = 1, count = 60;
  if (const char* seeds = std::getenv("GSHARD_SEEDS")) {
    char* end = nullptr;
    first = std::strtoull(seeds, &end, 10);
    if (*end == ':') count = std::strtoull(end + 1, nullptr, 10);
  }
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    try {
      checkSeed(seed);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what() << "\n"
                    << printModule(fuzz::makeProgram(fuzz::optionsOfSeed(seed)).module);
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gshard::testing_codegen
