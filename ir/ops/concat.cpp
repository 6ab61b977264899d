// concat: operands one after the other along `dim`.
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferConcat(const OpView& op, DiagSink& diag) {
  const std::int64_t dim = op.intAttr("dim");
  Type result = op.operandType(0);
  if (!checkAxis(op, diag, dim, result)) return std::nullopt;
  for (std::size_t i = 1; i < op.operandCount(); ++i) {
    const Type& each = op.operandType(i);
    if (each.dtype != result.dtype) {
      diag.emit(op.range(), diag::DtypesDiffer, "concat", printType(op.operandType(0)), printType(each))
          .label(op.operandRange(i), "this operand");
      return std::nullopt;
    }
    Type other = each;
    if (each.rank() == result.rank())
      other.shape[static_cast<std::size_t>(dim)] = result.shape[static_cast<std::size_t>(dim)];
    if (other != result) {
      diag.emit(op.range(), diag::ConcatDims, printType(op.operandType(0)), printType(each), dim)
          .label(op.operandRange(i), "this operand");
      return std::nullopt;
    }
    result.shape[static_cast<std::size_t>(dim)] += each.shape[static_cast<std::size_t>(dim)];
  }
  return checkSizes(op, diag, result) ? std::optional(ResultTypes{result}) : std::nullopt;
}

static void concatFactors(const OpView& op, FactorBuilder& factors) {
  const Type& y = op.resultType();
  for (std::int64_t dim = 0; dim < y.rank(); ++dim) {
    const FactorKind kind = dim == op.intAttr("dim") ? FactorKind::Window : FactorKind::Pass;
    const int factor = factors.add(kind, y.shape[static_cast<std::size_t>(dim)]);
    for (std::size_t i = 0; i < op.operandCount(); ++i) factors.operandDim(i, dim, factor);
    factors.resultDim(0, dim, factor);
  }
}

static std::vector<MoveDim> concatMap(const OpView& op, std::size_t operand, std::size_t) {
  std::vector<MoveDim> map = identityMap(op);
  const std::size_t dim = static_cast<std::size_t>(op.intAttr("dim"));
  for (std::size_t i = 0; i < operand; ++i) map[dim].offset -= op.operandType(i).shape[dim];
  return map;
}

static void concatVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const std::size_t dim = static_cast<std::size_t>(op.intAttr("dim"));
  const std::size_t rank = op.resultType().shape.size();
  std::int64_t at = 0;
  for (std::size_t i = 0; i < op.operandCount(); ++i) {
    const Type& x = op.operandType(i);
    std::vector<std::int64_t> start(rank), limit = x.shape;
    start[dim] = at;
    limit[dim] = at += x.shape[dim];
    if (!b.wants(i)) continue;
    b.accumulate(
        i, b.create(OpKind::Slice, {gradients[0]},
                    {{"start", start}, {"limit", limit}, {"step", std::vector<std::int64_t>(rank, 1)}}, op.range()));
  }
}

static constexpr AttrSpec kAttributes[] = {{"dim", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "%a: f32[2], %b: f32[3]",
     .ir = "%y = concat %a, %b {dim = 0} : f32[5]",
     .given = "[1, 2]; [3, 4, 5]",
     .expected = "[1, 2, 3, 4, 5]",
     .differentiable = true},
    {.args = "%a: f32[5, 2], %b: f32[5, 0], %c: f32[5, 3]",
     .ir = "%y = concat %a, %b, %c {dim = 1} : f32[5, 5]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%a: i32[3, 7]", .ir = "%y = concat %a {dim = 0} : i32[3, 7]", .values = {-9, 9}},
};

constinit const OpDef kConcatOp = {
    .name = "concat",
    .doc = "the operands one after the other along `dim`",
    .operands = OperandSpec{"x…", 1, -1},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferConcat,
    .factors = &concatFactors,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = Vjp{&concatVjp},
    .localize = SameOp{},
    .evaluate = &evaluateMove,
    .lower = LowerMove{&concatMap},
};

}  // namespace gshard
