// make_partial: a whole value becomes a pending reduction: one device keeps it, the others hold the identity.
#include "ir/spmd_rules.h"

namespace gshard {

static std::optional<std::string> checkMakePartial(const OpView& op) {
  const Sharding& from = shardingOf(op, op.op().operands[0]);
  const Sharding& to = shardingOf(op, op.op().results[0]);
  if (from.dims != to.dims) return "dims differ";
  return checkPending(op, from, to, op.axesAttr("axes"), reductionAttr(op));
}

static constexpr AttrSpec kAttributes[] = {{"axes", AttrKind::Axes}, {"reduction", AttrKind::String}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[_, _]}",
     .ir = "%y = make_partial %x {axes = [a], reduction = \"sum\"} : f32[2, 3] {[_, _], sum: a}",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 2, 3], [4, 5, 6]]"},
    {.args = "%x: f32[4, 3] {[b, _]}",
     .ir = "%y = make_partial %x {axes = [a], reduction = \"min\"} : f32[4, 3] {[b, _], min: a}",
     .given = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]",
     .expected = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]"},
};

constinit const OpDef kMakePartialOp = {
    .name = "make_partial",
    .doc = "`x` as a pending `reduction` over `axes`: kept where they are 0, its identity (-0 of a sum) elsewhere",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferCollective,
    .factors = &passThrough,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkMakePartial, .work = TileWork::Redistribute},
    .evaluate = &evaluateIdentity,
    .lower = LowerLocalCopy{},
};

}  // namespace gshard
