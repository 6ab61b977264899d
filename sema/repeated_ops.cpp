// See repeated_ops.h.
#include "sema/repeated_ops.h"

#include <algorithm>

#include "support/check.h"

namespace gshard::sema {

namespace {
bool isScalarOp(const Function& function, const Op& op) {
  return (op.kind == OpKind::Map || op.kind == OpKind::Constant) && function.type(op.results[0]).isScalar();
}
}  // namespace

RepeatedOps::RepeatedOps(const Function& function, std::size_t firstOp, std::vector<ValueId> inputs,
                         std::vector<ValueId> outputs)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  const std::size_t count = function.values.size();
  std::vector<bool> isOwn(count, false);  // an input, or different for each repetition
  for (const ValueId input : inputs_) isOwn[input.index] = true;
  for (std::size_t i = firstOp; i < function.ops.size(); ++i) {
    const Op& op = function.ops[i];
    const bool own = !isScalarOp(function, op) || std::any_of(op.operands.begin(), op.operands.end(),
                                                              [&](ValueId operand) { return isOwn[operand.index]; });
    for (const ValueId result : op.results) isOwn[result.index] = own;
  }
  std::vector<bool> isNeeded(count, false);
  for (const ValueId output : outputs_) isNeeded[output.index] = true;
  for (std::size_t i = function.ops.size(); i-- > firstOp;) {
    const Op& op = function.ops[i];
    const bool needed = std::any_of(op.results.begin(), op.results.end(),
                                    [&](ValueId result) { return isOwn[result.index] && isNeeded[result.index]; });
    if (!needed) continue;
    for (const ValueId operand : op.operands) isNeeded[operand.index] = true;
    ops_.push_back(i);
  }
  std::reverse(ops_.begin(), ops_.end());
  if (ops_.empty()) return;
  firstValue_ = function.ops[ops_.front()].results.front().index;
  values_ = static_cast<std::uint32_t>(count) - firstValue_;
}

bool RepeatedOps::reads(const Function& function, ValueId value) const {
  const auto isValue = [&](ValueId other) { return other == value; };
  return std::any_of(outputs_.begin(), outputs_.end(), isValue) ||
         std::any_of(ops_.begin(), ops_.end(), [&](std::size_t index) {
           const std::vector<ValueId>& operands = function.ops[index].operands;
           return std::any_of(operands.begin(), operands.end(), isValue);
         });
}

std::vector<ValueId> RepeatedOps::repeat(Function& function, const std::vector<ValueId>& inputs) const {
  GSHARD_CHECK(inputs.size() == inputs_.size(), "each input is replaced by one value");
  std::vector<ValueId> made(values_);  // by value defined the first time; unknown: shared
  const auto now = [&](ValueId value) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] == value) return inputs[i];
    }
    const std::uint32_t at = value.index - firstValue_;  // of an earlier value: beyond the end
    return at < made.size() && made[at].known() ? made[at] : value;
  };
  for (const std::size_t index : ops_) {
    Op op = function.ops[index];
    for (ValueId& operand : op.operands) operand = now(operand);
    for (ValueId& result : op.results) {
      const ValueId again = function.addValue(Value(function.value(result)));
      made[result.index - firstValue_] = again;
      result = again;
    }
    function.ops.push_back(std::move(op));
  }
  std::vector<ValueId> outputs;
  for (const ValueId output : outputs_) outputs.push_back(now(output));
  return outputs;
}

}  // namespace gshard::sema
