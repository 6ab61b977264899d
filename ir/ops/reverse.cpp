// reverse: the named dims from the other end.
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferReverse(const OpView& op, DiagSink& diag) {
  if (!checkDimList(op, diag, op.intsAttr("dims"), op.operandType(0))) return std::nullopt;
  return ResultTypes{op.operandType(0)};
}

static void reverseFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const FactorKind kind = contains(op.intsAttr("dims"), dim) ? FactorKind::Window : FactorKind::Pass;
    const int factor = factors.add(kind, x.shape[static_cast<std::size_t>(dim)]);
    factors.operandDim(0, dim, factor);
    factors.resultDim(0, dim, factor);
  }
}

static std::vector<MoveDim> reverseMap(const OpView& op, std::size_t, std::size_t) {
  std::vector<MoveDim> map = identityMap(op);
  for (const std::int64_t dim : op.intsAttr("dims")) {
    map[static_cast<std::size_t>(dim)].scale = -1;
    map[static_cast<std::size_t>(dim)].offset = op.operandType(0).shape[static_cast<std::size_t>(dim)] - 1;
  }
  return map;
}

static void reverseVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  b.accumulate(0, b.create(OpKind::Reverse, {gradients[0]}, {{"dims", op.intsAttr("dims")}}, op.range()));
}

static constexpr AttrSpec kAttributes[] = {{"dims", AttrKind::Ints}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3]",
     .ir = "%y = reverse %x {dims = [1]} : f32[2, 3]",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[3, 2, 1], [6, 5, 4]]",
     .differentiable = true},
    {.args = "%x: f32[5, 7]",
     .ir = "%y = reverse %x {dims = [0, 1]} : f32[5, 7]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: i32[7]", .ir = "%y = reverse %x {dims = [0]} : i32[7]", .values = {-9, 9}},
};

constinit const OpDef kReverseOp = {
    .name = "reverse",
    .doc = "the dims `dims` of `x` from the other end",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferReverse,
    .factors = &reverseFactors,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = Vjp{&reverseVjp},
    .localize = SameOp{},
    .evaluate = &evaluateMove,
    .lower = LowerMove{&reverseMap},
};

}  // namespace gshard
