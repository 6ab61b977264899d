// all_gather: the parts of one dim are put together on every device of a group. Several values may be gathered at once
// (small ones are combined), all on one dim: result i is operand i.
#include "ir/spmd_rules.h"

namespace gshard {

static std::optional<std::string> checkAllGather(const OpView& op) {
  for (std::size_t i = 0; i < op.operandCount(); ++i) {
    const Sharding& from = shardingOf(op, op.op().operands[i]);
    const Sharding& to = shardingOf(op, op.op().results[i]);
    if (from.partial != to.partial) return "pending reductions differ";
    if (auto fault = checkMinorAxes(op, to, from, op.intAttr("dim"), op.axesAttr("axes"), i)) return fault;
  }
  return std::nullopt;
}

static constexpr AttrSpec kAttributes[] = {{"axes", AttrKind::Axes}, {"dim", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[a, _]}",
     .ir = "%y = all_gather %x {axes = [a], dim = 0} : f32[2, 3] {[_, _]}",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 2, 3], [4, 5, 6]]"},
    {.args = "%x: f32[4, 3] {[(b, a), _]}",
     .ir = "%y = all_gather %x {axes = [a], dim = 0} : f32[4, 3] {[b, _]}",
     .given = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]",
     .expected = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]"},
    {.args = "%x: f32[3] {[a]}, %z: f32[2, 2] {[a, b]}",
     .ir = "%y, %w = all_gather %x, %z {axes = [a], dim = 0} : f32[3] {[_]}, f32[2, 2] {[_, b]}",
     .given = "[1, 2, 3]; [[4, 5], [6, 7]]",
     .expected = "[1, 2, 3]; [[4, 5], [6, 7]]"},
};

constinit const OpDef kAllGatherOp = {
    .name = "all_gather",
    .doc = "the minor-most `axes` of `dim` are gathered: every device of the group holds their joined parts",
    .operands = OperandSpec{"x…", 1, -1},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferCollective,
    .factors = &passThrough,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkAllGather, .work = TileWork::Redistribute},
    .evaluate = &evaluateIdentity,
    .lower = LowerCollective{},
};

}  // namespace gshard
