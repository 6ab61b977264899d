// See known_plans.h.
#include "partition/known_plans.h"

#include <bit>

namespace gshard {

std::size_t ShardingNumbers::of(const Sharding& sharding) {
  key_.clear();
  addSharding(key_, sharding);
  const std::size_t number = numbers_.of(key_);
  if (number == shardings_.size()) shardings_.push_back(sharding);
  return number;
}

std::size_t KnownPlans::numberOf(const OpView& op, OpSignatures& signatures) {
  key_.clear();
  signatures.add(key_, op.op());
  const std::size_t number = signatures_.of(key_);
  if (number == factors_.size()) factors_.push_back(std::make_shared<const OpFactors>(gshard::factorsOf(op)));
  return number;
}

const KnownPlan& KnownPlans::choose(const OpView& op, std::size_t number, const NumberedSurroundings& around) {
  key_.clear();
  key_.addSize(number);
  for (std::size_t i = 0; i < around.operands.size(); ++i) {
    key_.addSize(around.operands[i]->size() << 1 | (around.free[i] ? 1u : 0u));
    for (const std::size_t version : *around.operands[i]) key_.addSize(version);
    key_.addSize(around.operandsWanted[i]);
  }
  for (const std::size_t wanted : around.resultsWanted) key_.addSize(wanted);
  key_.add(std::bit_cast<std::int64_t>(around.completionsPerRun));
  const std::size_t situation = situations_.of(key_);
  if (situation < plans_.size()) return plans_[situation];
  return plans_.emplace_back(numbered(choosePlan(op, *factors_[number], spelledOut(around), costs_)));
}

KnownPlan KnownPlans::numbered(OpPlan plan) {
  KnownPlan known;
  for (const Sharding& tiles : plan.operands) known.operands.push_back(shardings_.of(canonical(mesh_, tiles)));
  for (const Sharding& tiles : plan.results)
    known.results.push_back(shardings_.of(canonical(mesh_, tiles.withoutPartial())));
  known.plan = std::move(plan);
  return known;
}

OpSurroundings KnownPlans::spelledOut(const NumberedSurroundings& around) const {
  OpSurroundings result;
  for (const std::vector<std::size_t>* versions : around.operands) {
    std::vector<Sharding>& operand = result.operands.emplace_back();
    for (const std::size_t version : *versions) operand.push_back(shardings_.at(version));
  }
  result.free = around.free;
  for (const std::size_t wanted : around.operandsWanted) result.operandsWanted.push_back(shardings_.at(wanted));
  for (const std::size_t wanted : around.resultsWanted) result.resultsWanted.push_back(shardings_.at(wanted));
  result.completionsPerRun = around.completionsPerRun;
  return result;
}

}  // namespace gshard
