// The global pipeline on random programs: results keep every bit, whatever the passes do.
#include <gtest/gtest.h>

#include "ir/evaluator.h"
#include "ir/passes.h"
#include "ir/text.h"
#include "tests/fuzz/random_program.h"

namespace gshard {
namespace {

void expectSameResults(const fuzz::RandomProgram& program, const Module& simplified) {
  const EvalResult before = evaluate(program.module, program.module.functions[0], program.arguments);
  const EvalResult after = evaluate(simplified, simplified.functions[0], program.arguments);
  ASSERT_EQ(before.results.size(), after.results.size());
  for (std::size_t i = 0; i < before.results.size(); ++i) {
    EXPECT_TRUE(sameBits(before.results[i], after.results[i])) << "result " << i << " of\n"
                                                               << printModule(program.module) << "\nwhich became\n"
                                                               << printModule(simplified);
  }
}

TEST(Simplify, RandomProgramsKeepEveryBit) {
  std::int64_t opsBefore = 0, opsAfter = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const auto kind = static_cast<fuzz::ProgramKind>(seed % 3);
    const fuzz::RandomProgram program =
        fuzz::makeProgram({.seed = seed, .mesh = {2, 2}, .operations = 10, .kind = kind});
    Module module = program.module;
    CollectingSink sink;
    PassOptions options;
    PassContext context{options, sink};
    const PassRun run = runPasses(module, globalPipeline(), context, {.dumpAfter = {}, .checkRoundTrip = true});
    ASSERT_FALSE(run.failure.has_value()) << run.failure->pass << ": " << run.failure->fault << "\n"
                                          << run.failure->textBefore;
    ASSERT_FALSE(sink.hasErrors()) << sink.diagnostics()[0].message;
    expectSameResults(program, module);
    if (HasFailure()) return;
    opsBefore += static_cast<std::int64_t>(program.module.functions[0].ops.size());
    opsAfter += static_cast<std::int64_t>(module.functions[0].ops.size());
  }
  EXPECT_LT(opsAfter, opsBefore);
}

}  // namespace
}  // namespace gshard
