// Pending reductions of one function: where they begin, how far they may travel through ops that are linear in them,
// and where each is best completed (design.md section 5: once per value, where bytes are fewest, of equals the latest).
// Apart from the rewriting, which asks only what of a value is complete when it is read.
#pragma once

#include <set>

#include "partition/op_plan.h"

namespace gshard {

struct Pending {
  AxisRef axis;
  Reduction reduction = Reduction::Sum;
  bool complete = false;  // completed right after the value is made, before any op reads it
  std::string why;        // how it came to be, for the plan
};

class PendingReductions {
 public:
  PendingReductions(const Module& module, const Function& function);

  // Arguments that come in pending (accumulators in the second half of a function), or that take what they are joined
  // with.
  void setArgument(ValueId value, std::vector<Pending> pending);
  void setAccumulator(ValueId value) { accumulators_[value.index] = true; }

  // Before op `index` is planned: an accumulator takes what its contribution is pending over.
  void joinAccumulators(std::size_t index);
  // In program order: what the results of op `index` may at most be pending over, run as `plan` says. The plan must
  // stay.
  void add(std::size_t index, const OpPlan& plan, const std::string& why);
  // After all ops: which are completed where.
  void decide();

  const std::vector<Pending>& of(ValueId value) const { return pending_[value.index]; }
  // The value as ops see it: `tiles` with what stays pending.
  Sharding asRead(ValueId value, const Sharding& tiles) const;
  Sharding asMade(ValueId value, const Sharding& tiles) const;

 private:
  struct OpState {
    std::vector<Pending> begins;  // in this op
    const OpPlan* plan = nullptr;
  };
  bool isOpen(ValueId value, const Pending& pending) const;
  std::vector<Pending> resultOf(std::size_t index);
  std::optional<Reduction> keeps(std::size_t index, const AxisRef& axis) const;
  double completionCost(ValueId value, const Pending& pending) const;
  void choose(ValueId value, Pending& pending);
  bool settle();
  bool completedEarlierIsLess(ValueId value, const AxisRef& axis);
  bool isPending(ValueId value, const AxisRef& axis) const;

  const Module& module_;
  const Function& function_;
  std::vector<OpState> ops_;
  std::vector<std::vector<Pending>> pending_;                  // per value
  std::vector<std::vector<std::pair<AxisRef, double>>> best_;  // per value: cheapest way to complete from here on
  std::vector<std::vector<std::int64_t>> users_;
  std::vector<bool> isResult_;  // must be complete when handed out
  std::vector<bool> accumulators_;
  std::set<std::pair<ValueId, AxisRef>> completed_;  // decisions so far; they only grow
};

}  // namespace gshard
