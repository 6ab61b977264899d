// roll: the elements of one dim moved on by `shift`, those beyond the end coming round. An op of its own and no pair of
// slices, so that a split dim moves in one step and each device fetches what it lacks and nothing else.
#include <algorithm>

#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferRoll(const OpView& op, DiagSink& diag) {
  if (!checkAxis(op, diag, op.intAttr("dim"), op.operandType(0))) return std::nullopt;
  return ResultTypes{op.operandType(0)};
}

static void rollFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const FactorKind kind = dim == op.intAttr("dim") ? FactorKind::Window : FactorKind::Pass;
    const int factor = factors.add(kind, x.shape[static_cast<std::size_t>(dim)]);
    factors.operandDim(0, dim, factor);
    factors.resultDim(0, dim, factor);
  }
}

// Piece 0: element i from i - shift; piece 1: what has come round, from i - shift + size.
static std::vector<MoveDim> rollMap(const OpView& op, std::size_t, std::size_t piece) {
  std::vector<MoveDim> map = identityMap(op);
  const std::size_t dim = static_cast<std::size_t>(op.intAttr("dim"));
  const std::int64_t size = op.operandType(0).shape[dim];
  if (size == 0) return map;
  const std::int64_t shift = (op.intAttr("shift") % size + size) % size;
  map[dim].offset = piece == 0 ? -shift : size - shift;
  return map;
}

static void rollVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  // Within the size, where its negative is a number for sure.
  const std::int64_t size =
      std::max<std::int64_t>(op.operandType(0).shape[static_cast<std::size_t>(op.intAttr("dim"))], 1);
  b.accumulate(0, b.create(OpKind::Roll, {gradients[0]},
                           {{"dim", op.intAttr("dim")}, {"shift", -(op.intAttr("shift") % size)}}, op.range()));
}

static constexpr AttrSpec kAttributes[] = {{"dim", AttrKind::Int}, {"shift", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[4]",
     .ir = "%y = roll %x {dim = 0, shift = 1} : f32[4]",
     .given = "[0, 1, 2, 3]",
     .expected = "[3, 0, 1, 2]",
     .differentiable = true},
    {.args = "%x: f32[2, 3]",
     .ir = "%y = roll %x {dim = 1, shift = -4} : f32[2, 3]",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[2, 3, 1], [5, 6, 4]]",
     .differentiable = true},
    {.args = "%x: f32[7, 5]",
     .ir = "%y = roll %x {dim = 0, shift = 3} : f32[7, 5]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: i32[5, 3]", .ir = "%y = roll %x {dim = 1, shift = 0} : i32[5, 3]", .values = {-9, 9}},
    {.args = "%x: bool[5]", .ir = "%y = roll %x {dim = 0, shift = 4} : bool[5]", .values = {0, 1}},
    {.args = "%x: i64[0, 3]", .ir = "%y = roll %x {dim = 0, shift = 2} : i64[0, 3]", .values = {-9, 9}},
};

constinit const OpDef kRollOp = {
    .name = "roll",
    .doc = "element i of `dim` becomes element i + `shift`; beyond the end it goes on at the beginning",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferRoll,
    .factors = &rollFactors,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = Vjp{&rollVjp},
    .localize = SameOp{},
    .evaluate = &evaluateMove,
    .lower = LowerMove{&rollMap, 2},
};

}  // namespace gshard
