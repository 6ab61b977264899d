// reduce_scatter: a pending reduction is finished and each device of the group keeps its part of the result. Several
// values may be reduced at once (small ones are combined), all on one dim: result i is operand i.
#include "ir/spmd_rules.h"

namespace gshard {

static std::optional<std::string> checkReduceScatter(const OpView& op) {
  for (std::size_t i = 0; i < op.operandCount(); ++i) {
    const Sharding& from = shardingOf(op, op.op().operands[i]);
    const Sharding& to = shardingOf(op, op.op().results[i]);
    if (std::optional<std::string> fault = checkPending(op, to, from, op.axesAttr("axes"), reductionAttr(op)))
      return fault;
    if (auto fault = checkMinorAxes(op, from, to, op.intAttr("dim"), op.axesAttr("axes"), i)) return fault;
  }
  return std::nullopt;
}

static constexpr AttrSpec kAttributes[] = {
    {"axes", AttrKind::Axes}, {"reduction", AttrKind::String}, {"dim", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[_, _], sum: a}",
     .ir = "%y = reduce_scatter %x {axes = [a], reduction = \"sum\", dim = 0} : f32[2, 3] {[a, _]}",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 2, 3], [4, 5, 6]]"},
    {.args = "%x: f32[4, 3] {[b, _], sum: a}",
     .ir = "%y = reduce_scatter %x {axes = [a], reduction = \"sum\", dim = 1} : f32[4, 3] {[b, a]}",
     .given = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]",
     .expected = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]"},
    {.args = "%x: f32[3] {[_], sum: a}, %z: f32[2, 2] {[_, b], sum: a}",
     .ir =
         "%y, %w = reduce_scatter %x, %z {axes = [a], reduction = \"sum\", dim = 0} : f32[3] {[a]}, f32[2, 2] {[a, b]}",
     .given = "[1, 2, 3]; [[4, 5], [6, 7]]",
     .expected = "[1, 2, 3]; [[4, 5], [6, 7]]"},
};

constinit const OpDef kReduceScatterOp = {
    .name = "reduce_scatter",
    .doc = "the pending `reduction` over `axes` is finished, and `dim` is split over them, minor",
    .operands = OperandSpec{"x…", 1, -1},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferCollective,
    .factors = &passThrough,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkReduceScatter, .work = TileWork::Redistribute},
    .evaluate = &evaluateIdentity,
    .lower = LowerCollective{},
};

}  // namespace gshard
