// all_reduce: a pending reduction is finished on every device of a group. Several values may be reduced at once (small
// ones are combined): result i is operand i.
#include "ir/spmd_rules.h"

namespace gshard {

static std::optional<std::string> checkAllReduce(const OpView& op) {
  for (std::size_t i = 0; i < op.operandCount(); ++i) {
    const Sharding& from = shardingOf(op, op.op().operands[i]);
    const Sharding& to = shardingOf(op, op.op().results[i]);
    if (from.dims != to.dims) return "dims differ";
    if (std::optional<std::string> fault = checkPending(op, to, from, op.axesAttr("axes"), reductionAttr(op)))
      return fault;
  }
  return std::nullopt;
}

static constexpr AttrSpec kAttributes[] = {{"axes", AttrKind::Axes}, {"reduction", AttrKind::String}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[_, _], sum: a}",
     .ir = "%y = all_reduce %x {axes = [a], reduction = \"sum\"} : f32[2, 3] {[_, _]}",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 2, 3], [4, 5, 6]]"},
    {.args = "%x: f32[4, 3] {[b, _], max: a}",
     .ir = "%y = all_reduce %x {axes = [a], reduction = \"max\"} : f32[4, 3] {[b, _]}",
     .given = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]",
     .expected = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]"},
    {.args = "%x: f32[2] {[_], sum: a}, %z: f32[3] {[b], sum: a}",
     .ir = "%y, %w = all_reduce %x, %z {axes = [a], reduction = \"sum\"} : f32[2] {[_]}, f32[3] {[b]}",
     .given = "[1, 2]; [3, 4, 5]",
     .expected = "[1, 2]; [3, 4, 5]"},
};

constinit const OpDef kAllReduceOp = {
    .name = "all_reduce",
    .doc = "the pending `reduction` over `axes` is finished: every device of the group holds the result",
    .operands = OperandSpec{"x…", 1, -1},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferCollective,
    .factors = &passThrough,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkAllReduce, .work = TileWork::Redistribute},
    .evaluate = &evaluateIdentity,
    .lower = LowerCollective{},
};

}  // namespace gshard
