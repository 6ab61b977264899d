// The comparison behind tests/unit/partition_property_test.cpp and the fuzzer.
#include "tests/fuzz/partition_check.h"

#include "ir/evaluator.h"
#include "ir/text.h"
#include "partition/passes.h"

namespace gshard::fuzz {

namespace {

std::string show(const Tensor& tensor) {
  std::string text = printType(tensor.type) + " [";
  for (std::int64_t i = 0; i < tensor.type.elements(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(tensor.number(i));
  return text + "]";
}

// Numbers are exact; only the sign of a zero may depend on the order of a sum.
bool sameNumbers(const Tensor& a, const Tensor& b) {
  if (!(a.type == b.type)) return false;
  for (std::int64_t i = 0; i < a.type.elements(); ++i) {
    const double x = a.number(i), y = b.number(i);
    if (!(x == y || (x != x && y != y))) return false;
  }
  return true;
}

}  // namespace

ProgramOptions optionsOfSeed(std::uint64_t seed) {
  static const std::vector<std::vector<std::int64_t>> kMeshes = {{2}, {3}, {4}, {2, 2}, {2, 3}, {1, 4}};
  ProgramOptions options;
  options.seed = seed;
  options.mesh = kMeshes[seed % kMeshes.size()];
  options.operations = 3 + static_cast<int>(seed / kMeshes.size() % 9);
  options.kind = static_cast<ProgramKind>(seed / (kMeshes.size() * 9) % 3);
  return options;
}

std::optional<std::string> checkPartitioned(const ProgramOptions& options) {
  const RandomProgram program = makeProgram(options);
  const std::string global = printModule(program.module);
  if (const std::optional<std::string> fault = verify(program.module, Form::Global))
    return "generator: " + *fault + "\n" + global;
  Module module = program.module;
  try {
    const std::vector<Tensor> expected =
        evaluate(program.module, program.module.functions[0], program.arguments).results;
    CollectingSink sink;
    const PassOptions passOptions;
    PassContext context{passOptions, sink};
    PassManagerOptions managerOptions;
    managerOptions.checkRoundTrip = true;
    const PassRun run = runPasses(module, partitionPipeline(), context, managerOptions);
    if (run.failure)
      return run.failure->pass + ": " + run.failure->fault + "\n" + global + run.failure->textBefore +
             printModule(module);
    const std::vector<Tensor> actual = evaluate(module, module.functions[0], program.arguments).results;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (sameNumbers(actual[i], expected[i])) continue;
      return program.module.functions[0].results[i].name + "\n  one device  " + show(expected[i]) + "\n  partitioned " +
             show(actual[i]) + "\n" + global + printModule(module);
    }
  } catch (const std::exception& error) {
    return std::string(error.what()) + "\n" + global + printModule(module);
  }
  return std::nullopt;
}

}  // namespace gshard::fuzz
