// See recompute.h.
#include "ir/recompute.h"

#include <algorithm>
#include <set>

#include "ir/op_table.h"
#include "support/check.h"

namespace gshard {

std::int64_t recomputeIdOf(const Op& op) {
  const Attribute* attribute = op.attributes.find(kRecomputeId);
  const std::int64_t* id = attribute == nullptr ? nullptr : std::get_if<std::int64_t>(attribute);
  return id == nullptr ? 0 : *id;
}

void setRecomputeId(Op& op, std::int64_t id) {
  op.attributes.set(std::string(kRecomputeId), id);
}

Recomputation::Recomputation(Function& function, const RecomputedRegions& regions)
    : function_(function), regions_(regions) {
  if (!isNeeded()) return;
  definitions_ = definitionsOf(function);
  regions_.resize(function.ops.size(), 0);
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    const Op& op = function.ops[i];
    firstId_ = std::max(firstId_, recomputeIdOf(op));
    if (regions_[i] != 0 || !std::holds_alternative<LowerAlias>(*opDef(op.kind).lower)) continue;
    const std::int64_t definition = definitions_[op.operands[0].index];
    if (definition >= 0) regions_[i] = regions_[static_cast<std::size_t>(definition)];
  }
}

void Recomputation::redirect(std::size_t firstNew, std::int64_t region) {
  if (!isNeeded() || firstNew >= function_.ops.size()) return;
  const auto begin = function_.ops.begin() + static_cast<std::ptrdiff_t>(firstNew);
  std::vector<Op> made(std::make_move_iterator(begin), std::make_move_iterator(function_.ops.end()));
  function_.ops.erase(begin, function_.ops.end());
  for (Op& op : made) {
    for (ValueId& operand : op.operands) {
      const std::int64_t definition = operand.index < definitions_.size() ? definitions_[operand.index] : -1;
      const std::int64_t of = definition < 0 ? 0 : regionOf(static_cast<std::size_t>(definition));
      if (of != 0 && (region == 0 || region == of)) operand = clone(operand, of);
    }
  }
  std::move(made.begin(), made.end(), std::back_inserter(function_.ops));
}

// With all that it is made of inside the region, in the order of forward.
ValueId Recomputation::clone(ValueId value, std::int64_t region) {
  std::set<std::size_t> needed;
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    const std::int64_t definition = at.index < definitions_.size() ? definitions_[at.index] : -1;
    if (definition < 0 || regionOf(static_cast<std::size_t>(definition)) != region || clones_.contains(at.index))
      continue;
    const auto index = static_cast<std::size_t>(definition);
    if (!needed.insert(index).second) continue;
    const std::vector<ValueId>& operands = function_.ops[index].operands;
    open.insert(open.end(), operands.begin(), operands.end());
  }
  for (const std::size_t index : needed) {
    Op op = function_.ops[index];
    for (ValueId& operand : op.operands) {
      const auto known = clones_.find(operand.index);
      const std::int64_t definition = operand.index < definitions_.size() ? definitions_[operand.index] : -1;
      const bool isInside = definition >= 0 && regionOf(static_cast<std::size_t>(definition)) == region;
      if (isInside && known != clones_.end()) operand = known->second;
    }
    for (ValueId& result : op.results) {
      const ValueId copy = function_.addValue(Value(function_.value(result)));
      clones_.emplace(result.index, copy);
      result = copy;
    }
    op.phase = Phase::Backward;
    setRecomputeId(op, firstId_ + region);
    function_.ops.push_back(std::move(op));
  }
  const auto made = clones_.find(value.index);
  GSHARD_CHECK(made != clones_.end(), "a value of a recomputed region has a clone");
  return made->second;
}

}  // namespace gshard
