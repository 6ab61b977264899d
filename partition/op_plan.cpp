// The choice of how an op runs. Candidates are the views of its tensors: a tensor's split decides the factors that it
// has, alone or joined by what the others can add. Each is costed as bytes moved + repeated flops / 16.
#include "partition/op_plan.h"

#include <algorithm>
#include <tuple>

#include "ir/op_signature.h"
#include "partition/split_candidates.h"
#include "support/check.h"

namespace gshard {

namespace {

constexpr double kFlopsPerByte = 16;

class Chooser {
 public:
  Chooser(const OpView& op, const OpFactors& factors, const OpSurroundings& around, ReshardCosts& costs)
      : op_(op), factors_(factors), around_(around), costs_(costs), refs_(tensorsOf(factors)) {}

  OpPlan choose() {
    for (const FactorAxes& axes : candidates()) {
      // Moving costs at least nothing: what loses by repeated work alone needs no plan of its moves.
      const double work = repeatedFlops(axes) / kFlopsPerByte + penalty(axes);
      if (!best_ || work < best_->cost) consider(planFor(axes, work));
    }
    if (best_->bytes > 0 && isMove(op_.op().kind)) {
      // By bytes alone: a pending operand costs its completion either way, and the move itself may then be local.
      // Where that is the cheapest (a broadcast of a pending value), the move still runs on tiles.
      OpPlan exchange = exchangePlan();
      if (exchange.cost < std::min(best_->bytes, movedBy(*best_, false).bytes)) best_ = std::move(exchange);
    }
    best_->lost = std::move(lost_);
    return *std::move(best_);
  }

 private:
  // ---- candidates

  bool splittable(int factor) const {
    switch (factors_.factors[static_cast<std::size_t>(factor)].kind) {
      case FactorKind::Pass:
      case FactorKind::Reduce:
      case FactorKind::Lookup:
      case FactorKind::Scan:
      case FactorKind::Candidates:
        return true;
      case FactorKind::Window:
      case FactorKind::Whole:
        return false;
    }
    GSHARD_UNREACHABLE("FactorKind");
  }

  // Adds the split of one tensor to `axes` as far as it agrees with what is there.
  void extend(FactorAxes& axes, TensorRef ref, const Sharding& sharding) const {
    const OpFactors::DimFactors& dims = dimFactorsOf(factors_, ref);
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
      if (dims[dim].empty() || sharding.dims[dim].empty()) continue;
      const std::vector<AxisList> cut =
          cutAtFactors(factors_, dims[dim], typeOf(op_, ref).shape[dim], sharding.dims[dim]);
      for (std::size_t i = 0; i < cut.size(); ++i) extendFactor(axes, dims[dim][i], cut[i]);
    }
  }

  void extendFactor(FactorAxes& axes, int factor, const AxisList& list) const {
    AxisList& own = axes[static_cast<std::size_t>(factor)];
    if (list.empty() || !splittable(factor) || !isPrefix(own, list)) return;
    for (const AxisRef& axis : withoutPrefix(list, own)) {
      for (const AxisList& other : axes) {
        if (overlapsAny(other, axis)) return;
      }
      appendAxis(own, axis);
    }
  }

  std::vector<std::pair<TensorRef, const Sharding*>> leaders() const {
    std::vector<std::pair<TensorRef, const Sharding*>> result;
    for (std::size_t r = 0; r < around_.resultsWanted.size(); ++r)
      result.push_back({{true, r}, &around_.resultsWanted[r]});
    for (std::size_t i = 0; i < around_.operands.size(); ++i) {
      result.push_back({{false, i}, &around_.operandsWanted[i]});
      for (const Sharding& version : around_.operands[i]) result.push_back({{false, i}, &version});
    }
    return result;
  }

  std::vector<FactorAxes> candidates() const {
    const auto views = leaders();
    std::vector<FactorAxes> result;
    const auto add = [&](FactorAxes axes) {
      makeExpressible(op_, factors_, axes);
      if (std::find(result.begin(), result.end(), axes) == result.end()) result.push_back(std::move(axes));
    };
    for (const auto& [leader, sharding] : views) {
      FactorAxes alone(factors_.factors.size());
      extend(alone, leader, *sharding);
      FactorAxes joined = alone;
      for (const auto& [other, otherSharding] : views) extend(joined, other, *otherSharding);
      add(std::move(joined));
      add(std::move(alone));
    }
    return result;
  }

  // ---- what a candidate makes of the tensors

  OpPlan planFor(const FactorAxes& axes, double work) const {
    OpPlan plan;
    plan.axes = axes;
    const auto tiles = [&](const OpFactors::DimFactors& dims) {
      Sharding sharding;
      sharding.dims = dimsOfFactors(dims, axes);
      return sharding;
    };
    for (const OpFactors::DimFactors& dims : factors_.operands) plan.operands.push_back(tiles(dims));
    for (const OpFactors::DimFactors& dims : factors_.results) plan.results.push_back(tiles(dims));
    plan.madePartial.resize(plan.operands.size());
    for (std::size_t f = 0; f < axes.size(); ++f) addReduction(plan, static_cast<int>(f));
    for (Sharding& result : plan.results) result = canonical(op_.mesh(), std::move(result));
    const Moved moved = movedBy(plan, true);
    plan.bytes = moved.bytes;
    plan.messages = moved.messages;
    plan.cost = plan.bytes + work;
    return plan;
  }

  static bool has(const OpFactors::DimFactors& dims, int factor) {
    for (const std::vector<int>& dim : dims) {
      if (std::find(dim.begin(), dim.end(), factor) != dim.end()) return true;
    }
    return false;
  }

  bool inResult(int factor) const {
    return std::any_of(factors_.results.begin(), factors_.results.end(),
                       [&](const auto& dims) { return has(dims, factor); });
  }

  void addReduction(OpPlan& plan, int f) const {
    const Factor& factor = factors_.factors[static_cast<std::size_t>(f)];
    const AxisList& axes = plan.axes[static_cast<std::size_t>(f)];
    if (axes.empty() || inResult(f)) return;
    if (factor.kind != FactorKind::Reduce && factor.kind != FactorKind::Lookup) return;
    for (const AxisRef& axis : axes) {
      for (Sharding& result : plan.results) result.partial.push_back({axis, factor.reduction});
      if (!factor.othersPartial) continue;
      for (std::size_t i = 0; i < plan.operands.size(); ++i) {
        if (!has(factors_.operands[i], f) && mayBePartial(i, factor.reduction)) {
          plan.madePartial[i].push_back({axis, factor.reduction});
        }
      }
    }
  }

  // Does the rule of the op allow this operand to be pending, in some company?
  bool mayBePartial(std::size_t operand, Reduction reduction) const {
    for (std::uint32_t company = 0; company < (1u << std::min<std::size_t>(op_.operandCount(), 4)); ++company) {
      std::vector<std::optional<Reduction>> pending(op_.operandCount());
      for (std::size_t i = 0; i < pending.size(); ++i) {
        if ((company >> i & 1) != 0) pending[i] = reduction;
      }
      if (pending[operand] && acceptPartial(op_, pending)) return true;
    }
    return false;
  }

  // ---- cost

  // With `keep`, an operand stays partial where the op accepts it; then its completion is paid for behind the op.
  struct Moved {
    double bytes = 0;
    std::int64_t messages = 0;
    void add(const ReshardPlan& plan, double times) {
      bytes += static_cast<double>(plan.bytesMax) * times;
      for (const ReshardStep& step : plan.steps) messages += step.messages;
    }
  };

  Moved movedBy(const OpPlan& plan, bool keep) const {
    std::vector<Sharding> results = plan.results;
    std::vector<Sharding> needed = plan.operands;
    for (std::size_t i = 0; keep && i < needed.size(); ++i) {
      for (const PartialAxis& pending : around_.operands[i].front().partial) {
        std::vector<std::optional<Reduction>> operands(needed.size());
        for (std::size_t j = 0; j < needed.size(); ++j) {
          for (const PartialAxis& other : around_.operands[j].front().partial) {
            if (other.axis == pending.axis) operands[j] = other.reduction;
          }
        }
        const std::optional<Reduction> kept = keepsPending(op_, plan, pending.axis, operands);
        if (!kept) continue;
        needed[i].partial.push_back(pending);
        for (Sharding& result : results) {
          if (!result.isPartialOver(pending.axis)) result.partial.push_back({pending.axis, *kept});
        }
      }
    }
    Moved moved;
    moved.bytes += bytesOfTotals(plan);
    for (std::size_t i = 0; i < needed.size(); ++i) {
      if (around_.free[i]) continue;
      const Type& type = op_.operandType(i);
      const Sharding to = canonical(op_.mesh(), needed[i]);
      const std::vector<Sharding>& versions = around_.operands[i];
      moved.add(costs_.plan(type, versions[costs_.cheapest(type, versions, to)], to), 1);
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
      const Sharding made = canonical(op_.mesh(), results[r]);
      moved.add(costs_.plan(op_.resultType(r), made, around_.resultsWanted[r]),
                made.partial.empty() ? 1 : around_.completionsPerRun);
    }
    return moved;
  }

  // A split scan receives the totals of the other parts, one per row; a part of a split dim their candidates: values
  // and indices.
  double bytesOfTotals(const OpPlan& plan) const {
    double bytes = 0;
    for (std::size_t f = 0; f < plan.axes.size(); ++f) {
      const Factor& factor = factors_.factors[f];
      const bool isScan = factor.kind == FactorKind::Scan;
      if ((!isScan && !hasSeveralCandidates(factor)) || plan.axes[f].empty()) continue;
      double rows = 1;
      for (std::size_t g = 0; g < plan.axes.size(); ++g) {
        if (g == f || !has(factors_.operands[0], static_cast<int>(g))) continue;
        rows *= static_cast<double>(partSize(factors_.factors[g].size, productOf(plan.axes[g])));
      }
      const std::int64_t parts = productOf(plan.axes[f]), element = byteSize(op_.resultType(0).dtype);
      const std::int64_t own =
          isScan ? element : candidatesOfPart(factors_, factor.size, parts) * (element + byteSize(DType::I32));
      bytes += rows * static_cast<double>((parts - 1) * own);
    }
    return bytes;
  }

  // One candidate per part is always less than the dim (but for a handful of elements); of several the bytes decide.
  bool hasSeveralCandidates(const Factor& factor) const {
    return factor.kind == FactorKind::Candidates && candidatesOfPart(factors_, factor.size, 1) > 1;
  }

  double repeatedFlops(const FactorAxes& axes) const {
    double whole = 1, own = 1;  // a product of operands that is summed: a multiplication and an addition
    for (const Factor& factor : factors_.factors) {
      if (factor.kind == FactorKind::Reduce && factors_.operands.size() > 1) whole = own = 2;
    }
    for (std::size_t f = 0; f < axes.size(); ++f) {
      if (isOnlyLookedUp(static_cast<int>(f))) continue;
      const std::int64_t size = factors_.factors[f].size;
      whole *= static_cast<double>(size);
      own *= static_cast<double>(partSize(size, productOf(axes[f])));
    }
    return std::max(0.0, own - whole / static_cast<double>(op_.mesh().devices()));
  }

  // No loop of the op runs along it: an index says where in it to look.
  bool isOnlyLookedUp(int factor) const {
    const FactorKind kind = factors_.factors[static_cast<std::size_t>(factor)].kind;
    return (kind == FactorKind::Lookup || kind == FactorKind::Whole) && !inResult(factor);
  }

  // A factor that one operand alone has and that ends in this op: reducing the parts where they are moves less than the
  // operand itself (but for a handful of elements), and never gathers it.
  double penalty(const FactorAxes& axes) const {
    for (std::size_t f = 0; f < axes.size(); ++f) {
      const Factor& factor = factors_.factors[f];
      if (factor.kind != FactorKind::Reduce && factor.kind != FactorKind::Lookup &&
          factor.kind != FactorKind::Candidates)
        continue;
      if (inResult(static_cast<int>(f)) || hasSeveralCandidates(factor)) continue;
      std::size_t holders = 0, holder = 0;
      for (std::size_t i = 0; i < factors_.operands.size(); ++i) {
        if (!has(factors_.operands[i], static_cast<int>(f))) continue;
        ++holders;
        holder = i;
      }
      if (holders != 1 || around_.free[holder]) continue;
      FactorAxes wanted(axes.size());
      extend(wanted, {false, holder}, around_.operands[holder].front());
      for (const AxisRef& axis : wanted[f]) {
        if (!overlapsAny(axes[f], axis) && !usedElsewhere(axes, f, axis)) return kNeverTaken;
      }
    }
    return 0;
  }

  static bool usedElsewhere(const FactorAxes& axes, std::size_t factor, const AxisRef& axis) {
    for (std::size_t g = 0; g < axes.size(); ++g) {
      if (g != factor && overlapsAny(axes[g], axis)) return true;
    }
    return false;
  }

  // ---- moves of split dims

  OpPlan exchangePlan() const {
    OpPlan plan;
    plan.exchange = true;
    plan.completes = true;
    plan.results = around_.resultsWanted;
    plan.madePartial.resize(op_.operandCount());
    Function scratch;
    Op op = op_.op();
    op.kind = OpKind::Exchange;
    op.attributes.set("move", std::string(*opDef(op_.op().kind).name));
    for (std::size_t i = 0; i < op_.operandCount(); ++i) {
      Sharding whole = around_.operands[i].back().withoutPartial();
      if (around_.free[i]) whole = around_.operandsWanted[i];
      const Type& type = op_.operandType(i);
      const std::vector<Sharding>& versions = around_.operands[i];
      if (!around_.free[i]) plan.cost += static_cast<double>(costs_.plan(type, versions.back(), whole).bytesMax);
      op.operands[i] = scratch.addValue({type, whole});
      plan.operands.push_back(std::move(whole));
    }
    op.results[0] = scratch.addValue({op_.resultType(), around_.resultsWanted[0]});
    plan.cost += static_cast<double>(bytesOfExchange(OpView(op_.module(), scratch, op)).max);
    return plan;
  }

  void consider(OpPlan plan) {
    const bool better = !best_ || std::tie(plan.cost, plan.messages) < std::tie(best_->cost, best_->messages);
    if (better && best_) std::swap(*best_, plan);
    if (!best_) {
      best_ = std::move(plan);
    } else {
      lost_.push_back({std::move(plan.operands), plan.bytes, plan.cost - plan.bytes});
    }
  }

  const OpView& op_;
  const OpFactors& factors_;
  const OpSurroundings& around_;
  ReshardCosts& costs_;
  std::vector<TensorRef> refs_;
  std::optional<OpPlan> best_;
  std::vector<LostView> lost_;
};

}  // namespace

// A value may be pending over one axis by a sum and over another by a maximum (the rows of a split table that each
// device looks up are a masked sum of whatever they are): one reduction after the other is completed.
static ReshardPlan planByReductions(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to) {
  Sharding between = from;
  std::optional<Reduction> first;
  std::erase_if(between.partial, [&](const PartialAxis& each) {
    if (std::find(to.partial.begin(), to.partial.end(), each) != to.partial.end()) return false;
    if (!first) first = each.reduction;
    return each.reduction == *first;
  });
  if (between.partial.size() == to.partial.size()) return planReshard(mesh, type, from, to);
  ReshardPlan plan = planReshard(mesh, type, from, between);
  ReshardPlan rest = planByReductions(mesh, type, between, to);
  plan.steps.insert(plan.steps.end(), rest.steps.begin(), rest.steps.end());
  plan.bytesMax += rest.bytesMax;
  plan.bytesTotal += rest.bytesTotal;
  plan.lowerBound += rest.lowerBound;
  return plan;
}

const ReshardPlan& ReshardCosts::plan(const Type& type, const Sharding& from, const Sharding& to) {
  static const ReshardPlan kNothing;
  if (from == to) return kNothing;
  key_.clear();
  key_.add(static_cast<std::int64_t>(type.dtype));
  key_.addSize(type.shape.size());
  for (const std::int64_t size : type.shape) key_.add(size);
  addSharding(key_, from);
  addSharding(key_, to);
  const std::size_t question = questions_.of(key_);
  if (question == plans_.size()) plans_.push_back(planByReductions(mesh_, type, from, to));
  return plans_[question];
}

std::size_t ReshardCosts::cheapest(const Type& type, std::span<const Sharding> versions, const Sharding& to) {
  std::size_t best = versions.size();
  const auto rank = [&](std::size_t i) {
    const ReshardPlan& steps = plan(type, versions[i], to);
    return std::tuple(steps.bytesMax, steps.bytesTotal, steps.steps.size());
  };
  for (std::size_t i = 0; i < versions.size(); ++i) {
    // What is complete cannot be made pending again.
    const bool fits = std::all_of(to.partial.begin(), to.partial.end(), [&](const PartialAxis& pending) {
      return std::find(versions[i].partial.begin(), versions[i].partial.end(), pending) != versions[i].partial.end();
    });
    if (fits && (best == versions.size() || rank(i) < rank(best))) best = i;
  }
  GSHARD_CHECK(best < versions.size(), "no version of a value is pending as " + printSharding(mesh_, to));
  return best;
}

OpPlan choosePlan(const OpView& op, const OpFactors& factors, const OpSurroundings& around, ReshardCosts& costs) {
  return Chooser(op, factors, around, costs).choose();
}

std::optional<Reduction> keepsPending(const OpView& op, const OpPlan& plan, const AxisRef& axis,
                                      std::span<const std::optional<Reduction>> operands) {
  if (plan.completes) return std::nullopt;
  for (const AxisList& axes : plan.axes) {
    if (overlapsAny(axes, axis)) return std::nullopt;
  }
  return acceptPartial(op, operands);
}

}  // namespace gshard
