// transpose: result dim i is operand dim perm[i].
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferTranspose(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const std::vector<std::int64_t>& perm = op.intsAttr("perm");
  if (!checkLength(op, diag, "perm", perm, x) || !checkDimList(op, diag, perm, x)) return std::nullopt;
  Type result{x.dtype, {}};
  for (const std::int64_t dim : perm) result.shape.push_back(x.shape[static_cast<std::size_t>(dim)]);
  return ResultTypes{result};
}

static void transposeFactors(const OpView& op, FactorBuilder& factors) {
  const std::vector<std::int64_t>& perm = op.intsAttr("perm");
  for (std::size_t i = 0; i < perm.size(); ++i) {
    const int factor = factors.add(FactorKind::Pass, op.operandType(0).shape[static_cast<std::size_t>(perm[i])]);
    factors.operandDim(0, perm[i], factor);
    factors.resultDim(0, static_cast<std::int64_t>(i), factor);
  }
}

static void transposeVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const std::vector<std::int64_t>& perm = op.intsAttr("perm");
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  b.accumulate(0, b.transpose(gradients[0], inverse, op.range()));
}

static std::vector<MoveDim> transposeMap(const OpView& op, std::size_t, std::size_t) {
  std::vector<MoveDim> map = identityMap(op);
  for (std::size_t i = 0; i < map.size(); ++i) map[i].operandDim = op.intsAttr("perm")[i];
  return map;
}

static constexpr AttrSpec kAttributes[] = {{"perm", AttrKind::Ints}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3]",
     .ir = "%y = transpose %x {perm = [1, 0]} : f32[3, 2]",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 4], [2, 5], [3, 6]]",
     .differentiable = true},
    {.args = "%x: f32[5, 3, 7]",
     .ir = "%y = transpose %x {perm = [2, 0, 1]} : f32[7, 5, 3]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: i64[7, 2]", .ir = "%y = transpose %x {perm = [0, 1]} : i64[7, 2]", .values = {-9, 9}},
};

constinit const OpDef kTransposeOp = {
    .name = "transpose",
    .doc = "dims in another order: result dim i is dim `perm[i]` of `x`",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferTranspose,
    .factors = &transposeFactors,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = Vjp{&transposeVjp},
    .localize = SameOp{},
    .evaluate = &evaluateMove,
    .lower = LowerMove{&transposeMap},
};

}  // namespace gshard
