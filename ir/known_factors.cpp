// See known_factors.h.
#include "ir/known_factors.h"

namespace gshard {

const OpFactors& KnownFactors::of(const OpView& op) {
  const std::vector<ValueId>&operands = op.op().operands, &results = op.op().results;
  key_.clear();
  key_.addSize(static_cast<std::size_t>(op.op().kind));
  key_.addSize(op.op().attributes.items().size());
  values_.addAttributes(key_, op.op());
  key_.addSize(operands.size());
  for (const ValueId value : operands) key_.addSize(values_.of(op.function().value(value), nullptr));
  for (const ValueId value : results) key_.addSize(values_.of(op.function().value(value), nullptr));
  const std::size_t number = signatures_.of(key_);
  if (number == factors_.size()) factors_.push_back(factorsOf(op));
  return factors_[number];
}

}  // namespace gshard
