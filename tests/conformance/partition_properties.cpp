// The property of the partitioned program: whatever dim is asked to be split, also one that the op itself cannot split
// (a window, a scan, a sorted dim), the devices together give what one device gives, and nothing pends at the end.
#include "ir/text.h"
#include "partition_wishes.h"
#include "properties.h"

namespace gshard::conformance {

Faults checkPartitioned(const Example& example, const std::string& mesh) {
  Faults faults;
  const Program base = exampleProgram(example, mesh);
  const std::vector<Tensor> inputs = exampleInputs(example, base.function());
  const EvalResult expected = evaluate(base.module, base.function(), inputs);
  for (const Wish& wish : wishesOf(base)) {
    std::string error;
    const std::optional<Module> module = partitionedAs(base, wish, &error);
    if (!module) {
      faults.push_back(wish.text + ": " + error);
      continue;
    }
    const EvalResult actual = evaluate(*module, module->functions.front(), inputs);
    for (std::size_t i = 0; i < expected.results.size(); ++i) {
      if (const auto fault = difference(actual.results[i], expected.results[i], example.tolerance))
        faults.push_back(wish.text + ": " + *fault + "\n" + printModule(*module));
    }
    if (actual.faults != expected.faults) faults.push_back(wish.text + ": other run-time errors");
  }
  return faults;
}

}  // namespace gshard::conformance
