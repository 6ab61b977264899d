// argmax over parts: arg_candidates (value and global index per part), gather both, the same op over the candidates,
// and a take of the winner's index. Candidates stand in the order of the parts, so the lowest of equals is still the
// lowest.
#include "partition/split_candidates.h"

namespace gshard {

AxisList candidateAxes(const OpFactors& factors, const OpPlan& plan) {
  AxisList result;
  for (std::size_t f = 0; f < plan.axes.size(); ++f) {
    if (factors.factors[f].kind != FactorKind::Candidates) continue;
    for (const AxisRef& axis : plan.axes[f]) appendAxis(result, axis);
  }
  return result;
}

void writeSplitCandidates(const Module& module, const Function& function, const Op& op, const AxisList& axes,
                          SpmdWriter& writer) {
  const Value result = function.value(op.results[0]);
  const DType dtype = function.type(op.operands[0]).dtype;
  const std::int64_t last = result.type.rank();
  const auto make = [&](OpKind kind, std::vector<ValueId> operands, Attributes attributes, const std::string& reason) {
    Op next{kind, std::move(operands), {}, std::move(attributes), op.range, op.phase};
    next.reason = reason;
    return next;
  };
  const auto listOf = [&](DType element, bool split) {
    Value value = result;
    value.type.dtype = element;
    value.type.shape.push_back(productOf(axes));
    Sharding sharding = *result.sharding;
    sharding.dims.push_back(split ? axes : AxisList{});
    return writer.newValue(std::move(value), canonical(module.mesh, std::move(sharding)));
  };

  Op parts = make(OpKind::ArgCandidates, op.operands, op.attributes, "");
  parts.attributes.set("max", op.kind == OpKind::Argmax);
  parts.attributes.set("axes", axes);
  const ValueId values = listOf(dtype, true), indices = listOf(DType::I32, true);
  parts.results = {values, indices};
  writer.append(std::move(parts));

  const auto gather = [&](ValueId list, DType element) {
    Op all = make(OpKind::AllGather, {list}, {{"axes", axes}, {"dim", last}}, "the candidates of the parts compete");
    all.results = {listOf(element, false)};
    const ValueId whole = all.results[0];
    writer.append(std::move(all));
    return whole;
  };
  const ValueId allValues = gather(values, dtype), allIndices = gather(indices, DType::I32);

  Op winner = make(op.kind, {allValues}, {{"axis", last}}, "");
  winner.results = {writer.newValue(result, *result.sharding)};
  const ValueId place = winner.results[0];
  writer.append(std::move(winner));

  Op pick = make(OpKind::Take, {allIndices, place}, {{"axis", last}, {"batch", last}}, "");
  pick.results = op.results;
  writer.append(std::move(pick));
}

}  // namespace gshard
