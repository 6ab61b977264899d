// argmax over parts: arg_candidates (value and global index per part), gather both, the same op over the candidates,
// and a take of the winner's index; top_k alike, with several candidates per part. Candidates stand in the order of the
// parts, and within a part in order, so the lowest of equals is still the lowest.
#include "partition/split_candidates.h"

#include <algorithm>
#include <numeric>

namespace gshard {

namespace {

class CandidateWriter {
 public:
  CandidateWriter(const Module& module, const Function& function, const Op& op, const OpFactors& factors,
                  const AxisList& axes, SpmdWriter& writer)
      : module_(module), function_(function), op_(op), axes_(axes), writer_(writer) {
    const OpView view(module, function, op);
    axis_ = view.intAttr("axis");
    kept_ = candidatesOfPart(factors, view.operandType(0).shape[static_cast<std::size_t>(axis_)], productOf(axes));
    hasPlaces_ = op.results.size() == 2;
    last_ = view.operandType(0).rank() - 1;
  }

  void write() {
    const DType dtype = function_.type(op_.operands[0]).dtype;
    Op parts = make(OpKind::ArgCandidates, op_.operands, {{"axis", axis_}, {"axes", axes_}});
    parts.attributes.set("max", op_.kind != OpKind::Argmin);
    if (hasPlaces_) parts.attributes.set("k", kept_);
    const ValueId values = listOf(dtype, true), indices = listOf(DType::I32, true);
    parts.results = {values, indices};
    writer_.append(std::move(parts));
    const ValueId allValues = gather(values, dtype), allIndices = gather(indices, DType::I32);

    Op winner = make(op_.kind, {allValues}, op_.attributes);
    winner.attributes.set("axis", last_);
    if (hasPlaces_) winner.results = {atLast(op_.results[0])};
    winner.results.push_back(atLast(op_.results.back()));
    const ValueId place =
        writer_.newValue(function_.value(winner.results.back()), *function_.value(winner.results.back()).sharding);
    const ValueId index = winner.results.back();
    winner.results.back() = place;
    const std::vector<ValueId> made = winner.results;
    writer_.append(std::move(winner));

    Op pick = make(OpKind::Take, {allIndices, place}, {{"axis", last_}, {"batch", last_}});
    pick.results = {index};
    writer_.append(std::move(pick));
    if (hasPlaces_) moveBack(made[0], op_.results[0]);
    moveBack(index, op_.results.back());
  }

 private:
  Op make(OpKind kind, std::vector<ValueId> operands, Attributes attributes) const {
    return {kind, std::move(operands), {}, std::move(attributes), op_.range, op_.phase};
  }

  // The places of top_k's results stand last while candidates compete.
  bool isMoved() const { return hasPlaces_ && axis_ != last_; }

  ValueId atLast(ValueId result) {
    if (!isMoved()) return result;
    Value value = function_.value(result);
    Sharding sharding = *value.sharding;
    const auto toLast = [&](auto& list) { std::rotate(list.begin() + axis_, list.begin() + axis_ + 1, list.end()); };
    toLast(value.type.shape);
    toLast(sharding.dims);
    if (value.rowDim > axis_) --value.rowDim;  // rows are never ordered
    return writer_.newValue(std::move(value), sharding);
  }

  void moveBack(ValueId from, ValueId to) {
    if (from == to) return;
    std::vector<std::int64_t> order(static_cast<std::size_t>(last_));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    order.insert(order.begin() + axis_, last_);
    Op move = make(OpKind::Transpose, {from}, {{"perm", order}});
    move.results = {to};
    writer_.append(std::move(move));
  }

  ValueId listOf(DType element, bool split) {
    Value value = function_.value(op_.results.back());
    Sharding sharding = *value.sharding;
    value.type.dtype = element;
    if (hasPlaces_) {
      value.type.shape.erase(value.type.shape.begin() + axis_);
      sharding.dims.erase(sharding.dims.begin() + axis_);
      if (value.rowDim > axis_) --value.rowDim;
    }
    value.type.shape.push_back(kept_ * productOf(axes_));
    sharding.dims.push_back(split ? axes_ : AxisList{});
    return writer_.newValue(std::move(value), canonical(module_.mesh, std::move(sharding)));
  }

  ValueId gather(ValueId list, DType element) {
    Op all = make(OpKind::AllGather, {list}, {{"axes", axes_}, {"dim", last_}});
    all.reason = "the candidates of the parts compete";
    all.results = {listOf(element, false)};
    const ValueId whole = all.results[0];
    writer_.append(std::move(all));
    return whole;
  }

  const Module& module_;
  const Function& function_;
  const Op& op_;
  const AxisList& axes_;
  SpmdWriter& writer_;
  std::int64_t axis_ = 0, kept_ = 1;
  std::int64_t last_ = 0;   // the dim of candidates
  bool hasPlaces_ = false;  // top_k: values and indices, each with a dim of places; else an index per row
};

}  // namespace

AxisList candidateAxes(const OpFactors& factors, const OpPlan& plan) {
  AxisList result;
  for (std::size_t f = 0; f < plan.axes.size(); ++f) {
    if (factors.factors[f].kind != FactorKind::Candidates) continue;
    for (const AxisRef& axis : plan.axes[f]) appendAxis(result, axis);
  }
  return result;
}

std::int64_t candidatesOfPart(const OpFactors& factors, std::int64_t size, std::int64_t parts) {
  // Letters of the result alone are places.
  std::int64_t places = 1;
  for (const Factor& factor : factors.factors) {
    if (factor.kind == FactorKind::Whole) places *= factor.size;
  }
  return std::min(places, partSize(size, parts));
}

void writeSplitCandidates(const Module& module, const Function& function, const Op& op, const OpFactors& factors,
                          const AxisList& axes, SpmdWriter& writer) {
  CandidateWriter(module, function, op, factors, axes, writer).write();
}

}  // namespace gshard
