// all_to_all: axes move from one dim to another: every device sends a part to every other of its group.
#include "ir/spmd_rules.h"

namespace gshard {

static std::optional<std::string> checkAllToAll(const OpView& op) {
  const Sharding& from = shardingOf(op, op.op().operands[0]);
  const Sharding& to = shardingOf(op, op.op().results[0]);
  if (from.partial != to.partial) return "pending reductions differ";
  Sharding between = to;  // neither dim is split over the axes
  between.dims[static_cast<std::size_t>(op.intAttr("split_dim"))] =
      from.dims[static_cast<std::size_t>(op.intAttr("split_dim"))];
  if (std::optional<std::string> fault =
          checkMinorAxes(op, between, from, op.intAttr("concat_dim"), op.axesAttr("axes")))
    return fault;
  return checkMinorAxes(op, between, to, op.intAttr("split_dim"), op.axesAttr("axes"));
}

static constexpr AttrSpec kAttributes[] = {
    {"axes", AttrKind::Axes}, {"split_dim", AttrKind::Int}, {"concat_dim", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[a, _]}",
     .ir = "%y = all_to_all %x {axes = [a], concat_dim = 0, split_dim = 1} : f32[2, 3] {[_, a]}",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 2, 3], [4, 5, 6]]"},
    {.args = "%x: f32[4, 3] {[(b, a), _]}",
     .ir = "%y = all_to_all %x {axes = [a], concat_dim = 0, split_dim = 1} : f32[4, 3] {[b, a]}",
     .given = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]",
     .expected = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]"},
};

constinit const OpDef kAllToAllOp = {
    .name = "all_to_all",
    .doc = "the minor-most `axes` leave `concat_dim` and split `split_dim` instead",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferCollective,
    .factors = &passThrough,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkAllToAll, .work = TileWork::Redistribute},
    .evaluate = &evaluateIdentity,
    .lower = LowerCollective{},
};

}  // namespace gshard
