// collective_permute: tiles of the same sizes go to other devices, each to one.
#include "ir/spmd_rules.h"

namespace gshard {

static std::optional<std::string> checkCollectivePermute(const OpView& op) {
  const Sharding& from = shardingOf(op, op.op().operands[0]);
  const Sharding& to = shardingOf(op, op.op().results[0]);
  if (from.partial != to.partial) return "pending reductions differ";
  for (std::size_t i = 0; i < from.dims.size(); ++i) {
    if (productOf(from.dims[i]) != productOf(to.dims[i]))
      return "dim " + std::to_string(i) + " has another number of parts";
  }
  return std::nullopt;
}

static constexpr AttrSpec kAttributes[] = {{"axes", AttrKind::Axes, true},
                                           {"axes_from", AttrKind::Axes, true},
                                           {"axes_to", AttrKind::Axes, true},
                                           {"dim", AttrKind::Int, true}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[(a, b), _]}",
     .ir = "%y = collective_permute %x {axes = [a, b]} : f32[2, 3] {[(b, a), _]}",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 2, 3], [4, 5, 6]]"},
    {.args = "%x: f32[4, 3] {[a, b]}",
     .ir = "%y = collective_permute %x {axes = [a, b]} : f32[4, 3] {[b, a]}",
     .given = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]",
     .expected = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]"},
};

constinit const OpDef kCollectivePermuteOp = {
    .name = "collective_permute",
    .doc = "the same tiles on other devices: each is sent as a whole to those that hold it afterwards",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferCollective,
    .factors = &passThrough,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkCollectivePermute, .work = TileWork::Redistribute},
    .evaluate = &evaluateIdentity,
    .lower = LowerCollective{},
};

}  // namespace gshard
