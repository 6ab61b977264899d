// Constants, iota and broadcast scalars cost nothing to make twice. One copy per use before propagation lets each be
// split as its use is, instead of tying unrelated ops together; merge_generators.cpp joins what came out alike.
#include "ir/op_table.h"
#include "partition/passes.h"

namespace gshard {

namespace {

// Ops that make a tensor out of nothing, or of one element.
bool isGeneratedTensor(const Function& function, const Op& op) {
  if (op.results.size() != 1 || function.type(op.results[0]).isScalar()) return false;
  if (op.operands.empty()) return true;
  return isMove(op.kind) && op.operands.size() == 1 && function.type(op.operands[0]).isScalar();
}

// Whether there was anything to copy.
bool cloneIn(Function& function) {
  std::vector<std::int64_t> uses = useCounts(function);
  std::vector<std::int64_t> generator(function.values.size(),
                                      -1);  // per value: its op, while it has uses to give copies to
  std::vector<std::vector<Op>> copies(function.ops.size());
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    if (isGeneratedTensor(function, function.ops[i]))
      generator[function.ops[i].results[0].index] = static_cast<std::int64_t>(i);
  }
  bool isChanged = false;
  const auto redirect = [&](ValueId& use) {
    const std::int64_t at = generator[use.index];
    if (at < 0 || uses[use.index] < 2) return;
    --uses[use.index];  // the last use keeps the original
    Op copy = function.ops[static_cast<std::size_t>(at)];
    Value value = function.value(use);
    use = function.addValue(std::move(value));
    copy.results = {use};
    copies[static_cast<std::size_t>(at)].push_back(std::move(copy));
    isChanged = true;
  };
  for (Op& op : function.ops) {
    for (ValueId& operand : op.operands) redirect(operand);
  }
  for (Result& result : function.results) redirect(result.value);
  if (!isChanged) return false;
  std::vector<Op> ops;
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    for (Op& copy : copies[i]) ops.push_back(std::move(copy));
    ops.push_back(std::move(function.ops[i]));
  }
  function.ops = std::move(ops);
  return true;
}

}  // namespace

void cloneGenerators(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    if (!cloneIn(function)) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
