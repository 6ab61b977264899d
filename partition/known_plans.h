// Plans of ops by what they depend on: equal ops in equal surroundings run alike, so each is planned once, and a deep
// model costs what a shallow one does. Shardings are numbers here: they are compared many times and seldom looked into.
#pragma once

#include <deque>
#include <memory>

#include "ir/op_signature.h"
#include "partition/op_plan.h"

namespace gshard {

// Equal shardings have equal numbers.
class ShardingNumbers {
 public:
  std::size_t of(const Sharding& sharding);
  const Sharding& at(std::size_t number) const { return shardings_[number]; }  // stays where it is

 private:
  Key key_;
  KeyNumbers numbers_;
  std::deque<Sharding> shardings_;
};

// A plan, and its tiles as numbers: canonical, nothing partial.
struct KnownPlan {
  OpPlan plan;
  std::vector<std::size_t> operands, results;
};

// OpSurroundings in numbers.
struct NumberedSurroundings {
  std::vector<const std::vector<std::size_t>*> operands;  // versions
  std::vector<bool> free;
  std::vector<std::size_t> operandsWanted, resultsWanted;
  double completionsPerRun = 1;
};

class KnownPlans {
 public:
  explicit KnownPlans(const Mesh& mesh) : mesh_(mesh), costs_(mesh) {}

  ValueNumbers& values() { return values_; }
  ShardingNumbers& shardings() { return shardings_; }
  ReshardCosts& costs() { return costs_; }

  // Beside its factors an op has a number, the same for equal ops.
  std::size_t numberOf(const OpView& op, OpSignatures& signatures);
  const std::shared_ptr<const OpFactors>& factorsOf(std::size_t number) const { return factors_[number]; }

  // Stays where it is.
  const KnownPlan& choose(const OpView& op, std::size_t number, const NumberedSurroundings& around);
  KnownPlan numbered(OpPlan plan);

 private:
  OpSurroundings spelledOut(const NumberedSurroundings& around) const;

  const Mesh& mesh_;
  ReshardCosts costs_;
  ShardingNumbers shardings_;
  ValueNumbers values_{/*sharded=*/false};
  Key key_;
  KeyNumbers signatures_, situations_;
  std::vector<std::shared_ptr<const OpFactors>> factors_;  // by number of signature
  std::deque<KnownPlan> plans_;                            // by number of situation
};

}  // namespace gshard
