// cumsum over parts: reduce_parts (the total of each part), all_gather of the totals, cumsum_parts. What is pending
// over other axes stays so all the way.
#include "partition/split_scan.h"

namespace gshard {

AxisList scanAxes(const OpFactors& factors, const OpPlan& plan) {
  AxisList result;
  for (std::size_t f = 0; f < plan.axes.size(); ++f) {
    if (factors.factors[f].kind != FactorKind::Scan) continue;
    for (const AxisRef& axis : plan.axes[f]) appendAxis(result, axis);
  }
  return result;
}

void writeSplitScan(const Module& module, const Function& function, Op op, const AxisList& axes, SpmdWriter& writer) {
  const std::int64_t axis = OpView(module, function, op).intAttr("axis");
  const Value result = function.value(op.results[0]);
  const auto totals = [&](bool split) {
    Value value = result;
    value.type.shape.erase(value.type.shape.begin() + axis);
    value.type.shape.push_back(productOf(axes));
    Sharding sharding = *result.sharding;
    sharding.dims.erase(sharding.dims.begin() + axis);
    sharding.dims.push_back(split ? axes : AxisList{});
    if (value.rowDim > axis) --value.rowDim;  // rows are never the scanned dim
    return writer.newValue(std::move(value), canonical(module.mesh, std::move(sharding)));
  };
  const auto make = [&](OpKind kind, ValueId operand, Attributes attributes, ValueId made) {
    Op next{kind, {operand}, {made}, std::move(attributes), op.range, op.phase};
    if (kind == OpKind::AllGather) next.reason = "each part begins with the totals of the parts before it";
    writer.append(std::move(next));
    return made;
  };
  const std::int64_t last = result.type.rank() - 1;
  const ValueId parts =
      make(OpKind::ReduceParts, op.operands[0],
           {{"fn", std::string("sum")}, {"dims", std::vector<std::int64_t>{axis}}, {"axes", axes}}, totals(true));
  const ValueId all = make(OpKind::AllGather, parts, {{"axes", axes}, {"dim", last}}, totals(false));
  op.kind = OpKind::CumsumParts;
  op.operands.push_back(all);
  op.attributes.set("axes", axes);
  writer.append(std::move(op));
}

}  // namespace gshard
