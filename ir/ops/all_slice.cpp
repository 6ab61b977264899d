// all_slice: each device keeps its own part of one dim; no communication.
#include "ir/spmd_rules.h"

namespace gshard {

static std::optional<std::string> checkAllSlice(const OpView& op) {
  const Sharding& from = shardingOf(op, op.op().operands[0]);
  const Sharding& to = shardingOf(op, op.op().results[0]);
  if (from.partial != to.partial) return "pending reductions differ";
  return checkMinorAxes(op, from, to, op.intAttr("dim"), op.axesAttr("axes"));
}

static constexpr AttrSpec kAttributes[] = {{"axes", AttrKind::Axes}, {"dim", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[_, _]}",
     .ir = "%y = all_slice %x {axes = [a], dim = 1} : f32[2, 3] {[_, a]}",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 2, 3], [4, 5, 6]]"},
    {.args = "%x: f32[4, 3] {[b, _]}",
     .ir = "%y = all_slice %x {axes = [a], dim = 0} : f32[4, 3] {[(b, a), _]}",
     .given = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]",
     .expected = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]"},
};

constinit const OpDef kAllSliceOp = {
    .name = "all_slice",
    .doc = "`dim` is split over `axes` too, minor: each device keeps its part, without communication",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferCollective,
    .factors = &passThrough,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkAllSlice, .work = TileWork::Redistribute},
    .evaluate = &evaluateIdentity,
    .lower = LowerLocalCopy{},
};

}  // namespace gshard
