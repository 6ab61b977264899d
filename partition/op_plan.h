// How one op runs on tiles: which axes split which factor, and so which tiles it needs and makes. The choice is by
// bytes and repeated work among the views of its tensors. Pure; apart from the rewriting that carries it out.
#pragma once

#include <deque>

#include "ir/key_numbers.h"
#include "partition/factor_axes.h"
#include "partition/reshard.h"

namespace gshard {

// The repeated work of a view that is never taken, whatever the bytes: it would gather what reducing in parts need not.
constexpr double kNeverTaken = 1e30;

// A view that was costed and lost: for messages that say why a tensor moves and another stays.
struct LostView {
  std::vector<Sharding> operands;
  double bytes = 0, repeated = 0;  // received by the busiest device; repeated work, in bytes
};

struct OpPlan {
  bool exchange = false;           // a move that each device fetches its result tile of, whatever the split
  bool completes = false;          // takes complete values only: an exchange, an annotated value
  FactorAxes axes;                 // per factor (not for exchange)
  std::vector<Sharding> operands;  // tiles needed; nothing partial
  std::vector<Sharding> results;   // tiles made; partial: the reductions that begin in this op
  // Per operand, axes over which it has to be made partial: it enters a sum that the op splits, but only once.
  std::vector<std::vector<PartialAxis>> madePartial;
  double bytes = 0;           // received, by the busiest device
  double cost = 0;            // bytes and repeated work
  std::int64_t messages = 0;  // one after another: decides between equal costs
  std::vector<LostView> lost;
};

// What an op finds: every operand in the shardings in which it exists by now, and how its results are meant to be
// split.
struct OpSurroundings {
  std::vector<std::vector<Sharding>> operands;  // as made first (it may be partial), then resharded copies
  std::vector<bool> free;                       // operands that can be made in any tiles at no cost
  std::vector<Sharding> operandsWanted;         // by propagation
  std::vector<Sharding> resultsWanted;
  double completionsPerRun = 1;  // less where sums are kept over the blocks of rows and completed once
};

// Plans between equal shardings are asked for again and again.
class ReshardCosts {
 public:
  explicit ReshardCosts(const Mesh& mesh) : mesh_(mesh) {}
  const ReshardPlan& plan(const Type& type, const Sharding& from, const Sharding& to);
  // The cheapest of `versions` to come from: its index.
  std::size_t cheapest(const Type& type, std::span<const Sharding> versions, const Sharding& to);

 private:
  const Mesh& mesh_;
  Key key_;
  KeyNumbers questions_;  // type, from, to
  std::deque<ReshardPlan> plans_;
};

OpPlan choosePlan(const OpView& op, const OpFactors& factors, const OpSurroundings& around, ReshardCosts& costs);

// May the op keep what is pending over `axis` in some operands (per operand, absent: whole along it)? Not when it uses
// the axis itself, and never in an exchange.
std::optional<Reduction> keepsPending(const OpView& op, const OpPlan& plan, const AxisRef& axis,
                                      std::span<const std::optional<Reduction>> operands);

}  // namespace gshard
