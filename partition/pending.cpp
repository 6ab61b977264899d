// Where pending reductions are completed. First, going forward, they travel as far as ops accept them. Going backward,
// each value then compares completing itself with completing what it flows into. What that leaves unacceptable is
// settled by completing more, until nothing changes. That comparison shares the cost of a sum among its operands, which
// is too hopeful where paths part and meet again (the gradient of a layer norm); so at last each value that is still
// pending is tried against all completions behind it, counted.
#include "partition/pending.h"

#include <algorithm>

namespace gshard {

// Ops behind a value that a trial looks at: more than a layer has, and a bound on the time of long linear programs.
constexpr std::size_t kTrialOps = 256;

PendingReductions::PendingReductions(const Module& module, const Function& function)
    : module_(module),
      function_(function),
      ops_(function.ops.size()),
      pending_(function.values.size()),
      best_(function.values.size()),
      users_(usersOf(function)),
      isResult_(function.values.size(), false),
      accumulators_(function.values.size(), false) {
  for (const Result& result : function.results) {
    if (result.kind != ResultKind::Accumulator) isResult_[result.value.index] = true;
  }
}

void PendingReductions::setArgument(ValueId value, std::vector<Pending> pending) {
  pending_[value.index] = std::move(pending);
}

void PendingReductions::add(std::size_t index, const OpPlan& plan, const std::string& why) {
  ops_[index].plan = &plan;
  const Op& op = function_.ops[index];
  if (!plan.results.empty()) {
    for (const PartialAxis& partial : plan.results[0].partial) {
      ops_[index].begins.push_back({partial.axis, partial.reduction, false, why});
    }
  }
  joinAccumulators(index);
  for (const ValueId result : op.results) pending_[result.index] = resultOf(index);
}

// A block's contribution meets the accumulator once: the accumulator is kept pending over whatever the contribution is.
void PendingReductions::joinAccumulators(std::size_t index) {
  const Op& op = function_.ops[index];
  for (const ValueId accumulator : op.operands) {
    if (!accumulators_[accumulator.index]) continue;
    pending_[accumulator.index].clear();
    for (const ValueId other : op.operands) {
      if (other == accumulator) continue;
      for (const Pending& pending : pending_[other.index]) {
        if (isOpen(other, pending)) pending_[accumulator.index].push_back(pending);
      }
    }
  }
}

bool PendingReductions::isOpen(ValueId value, const Pending& pending) const {
  return !pending.complete && completed_.count({value, pending.axis}) == 0;
}

std::optional<Reduction> PendingReductions::keeps(std::size_t index, const AxisRef& axis) const {
  const Op& op = function_.ops[index];
  std::vector<std::optional<Reduction>> operands(op.operands.size());
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    for (const Pending& pending : pending_[op.operands[i].index]) {
      if (!isOpen(op.operands[i], pending) || !overlaps(pending.axis, axis)) continue;
      if (!(pending.axis == axis)) return std::nullopt;  // two pieces that overlap but differ
      operands[i] = pending.reduction;
    }
  }
  return keepsPending(OpView(module_, function_, op), *ops_[index].plan, axis, operands);
}

std::vector<Pending> PendingReductions::resultOf(std::size_t index) {
  std::vector<Pending> result = ops_[index].begins;
  for (const ValueId operand : function_.ops[index].operands) {
    for (const Pending& pending : pending_[operand.index]) {
      if (!isOpen(operand, pending)) continue;
      const bool known = std::any_of(result.begin(), result.end(),
                                     [&](const Pending& each) { return overlaps(each.axis, pending.axis); });
      if (known) continue;
      if (const std::optional<Reduction> kept = keeps(index, pending.axis)) {
        result.push_back({pending.axis, *kept, false, pending.why});
      }
    }
  }
  return result;
}

void PendingReductions::decide() {
  for (std::size_t i = function_.ops.size(); i-- > 0;) {
    for (const ValueId result : function_.ops[i].results) {
      for (Pending& pending : pending_[result.index]) choose(result, pending);
    }
  }
  for (const Argument& argument : function_.arguments) {
    if (accumulators_[argument.value.index]) continue;
    for (Pending& pending : pending_[argument.value.index]) choose(argument.value, pending);
  }
  while (settle()) {
  }
  for (const Op& op : function_.ops) {
    for (const ValueId result : op.results) {
      const std::vector<Pending> list = pending_[result.index];
      for (const Pending& pending : list) {
        if (isOpen(result, pending)) completedEarlierIsLess(result, pending.axis);
      }
    }
  }
  for (std::size_t v = 0; v < pending_.size(); ++v) {
    const ValueId value{static_cast<std::uint32_t>(v)};
    for (Pending& pending : pending_[v]) pending.complete = !isOpen(value, pending);
  }
}

double PendingReductions::completionCost(ValueId value, const Pending& pending) const {
  // Half of an all_reduce when every op that wants it complete wants its part only.
  bool partsOnly = !isResult_[value.index];
  for (const std::int64_t user : users_[value.index]) {
    const Op& op = function_.ops[static_cast<std::size_t>(user)];
    const OpPlan& plan = *ops_[static_cast<std::size_t>(user)].plan;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (op.operands[i] == value && i < plan.operands.size())
        partsOnly = partsOnly && plan.operands[i].splits(pending.axis);
    }
  }
  return static_cast<double>(function_.type(value).bytes()) * (partsOnly ? 1 : 2);
}

void PendingReductions::choose(ValueId value, Pending& pending) {
  const double here = completionCost(value, pending);
  double later = 0;
  bool must = isResult_[value.index];
  for (const std::int64_t user : users_[value.index]) {
    const Op& op = function_.ops[static_cast<std::size_t>(user)];
    if (!keeps(static_cast<std::size_t>(user), pending.axis)) {
      must = true;
      break;
    }
    std::size_t sharers = 0;
    for (const ValueId operand : op.operands) {
      sharers += std::any_of(pending_[operand.index].begin(), pending_[operand.index].end(),
                             [&](const Pending& each) { return each.axis == pending.axis; });
    }
    for (const ValueId result : op.results) {
      for (const auto& [axis, cost] : best_[result.index]) {
        if (axis == pending.axis) later += cost / static_cast<double>(std::max<std::size_t>(sharers, 1));
      }
    }
  }
  if (must || later > here) completed_.emplace(value, pending.axis);
  best_[value.index].emplace_back(pending.axis, must ? here : std::min(here, later));
}

// One pass forward with what is decided; completes what some op does not accept after all. True when something changed.
bool PendingReductions::settle() {
  bool changed = false;
  for (std::size_t i = 0; i < function_.ops.size(); ++i) {
    const Op& op = function_.ops[i];
    joinAccumulators(i);
    for (const ValueId operand : op.operands) {
      for (const Pending& pending : pending_[operand.index]) {
        if (!isOpen(operand, pending) || keeps(i, pending.axis)) continue;
        completed_.emplace(operand, pending.axis);
        changed = true;
      }
    }
    for (const ValueId result : op.results) pending_[result.index] = resultOf(i);
  }
  return changed;
}

bool PendingReductions::isPending(ValueId value, const AxisRef& axis) const {
  return std::any_of(pending_[value.index].begin(), pending_[value.index].end(),
                     [&](const Pending& each) { return each.axis == axis; });
}

// Completes `value` over `axis` if that is less than all completions behind it which it then spares, and takes no
// completion elsewhere. What is pending only ever gets less, so one look per value is enough.
bool PendingReductions::completedEarlierIsLess(ValueId value, const AxisRef& axis) {
  std::set<std::int64_t> region;  // ops that read what is pending because of `value`, in order
  std::set<ValueId> behind;
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId from = open.back();
    open.pop_back();
    for (const std::int64_t user : users_[from.index]) {
      if (!region.insert(user).second) continue;
      if (region.size() > kTrialOps) return false;
      for (const ValueId result : function_.ops[static_cast<std::size_t>(user)].results) {
        if (!isPending(result, axis)) continue;
        behind.insert(result);
        if (completed_.count({result, axis}) == 0) open.push_back(result);
      }
    }
  }
  const auto costBehind = [&] {
    double cost = 0;
    for (const ValueId each : behind) {
      if (completed_.count({each, axis}) == 0) continue;
      for (const Pending& pending : pending_[each.index]) {
        if (pending.axis == axis) cost += completionCost(each, pending);
      }
    }
    return cost;
  };
  double here = 0;
  for (const Pending& pending : pending_[value.index]) {
    if (pending.axis == axis) here = completionCost(value, pending);
  }
  const double before = costBehind();
  if (here >= before) return false;

  std::vector<std::pair<ValueId, AxisRef>> added;
  std::vector<std::pair<ValueId, std::vector<Pending>>> old;
  const auto complete = [&](ValueId which, const AxisRef& over) {
    if (completed_.emplace(which, over).second) added.emplace_back(which, over);
  };
  complete(value, axis);
  bool fits = true;
  for (const std::int64_t index : region) {
    const Op& op = function_.ops[static_cast<std::size_t>(index)];
    for (const ValueId operand : op.operands) {
      for (const Pending& pending : pending_[operand.index]) {
        if (!isOpen(operand, pending) || keeps(static_cast<std::size_t>(index), pending.axis)) continue;
        fits = fits && pending.axis == axis && behind.count(operand) != 0;
        complete(operand, pending.axis);
      }
    }
    for (const ValueId result : op.results) {
      old.emplace_back(result, pending_[result.index]);
      pending_[result.index] = resultOf(static_cast<std::size_t>(index));
    }
  }
  if (fits && here + costBehind() < before) return true;
  for (const auto& each : added) completed_.erase(each);
  for (auto& [result, list] : old) pending_[result.index] = std::move(list);
  return false;
}

Sharding PendingReductions::asRead(ValueId value, const Sharding& tiles) const {
  Sharding result = tiles.withoutPartial();
  for (const Pending& pending : pending_[value.index]) {
    if (!pending.complete) result.partial.push_back({pending.axis, pending.reduction});
  }
  return canonical(module_.mesh, std::move(result));
}

Sharding PendingReductions::asMade(ValueId value, const Sharding& tiles) const {
  Sharding result = tiles.withoutPartial();
  for (const Pending& pending : pending_[value.index]) result.partial.push_back({pending.axis, pending.reduction});
  return canonical(module_.mesh, std::move(result));
}

}  // namespace gshard
