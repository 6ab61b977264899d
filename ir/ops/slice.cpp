// slice: start, limit and step (at least 1) per dim.
#include "ir/op_rules.h"
#include "support/checked.h"

namespace gshard {

static std::optional<ResultTypes> inferSlice(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  for (const char* name : {"start", "limit", "step"}) {
    if (!checkLength(op, diag, name, op.intsAttr(name), x)) return std::nullopt;
  }
  Type result{x.dtype, {}};
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    const std::int64_t start = op.intsAttr("start")[i];
    const std::int64_t limit = op.intsAttr("limit")[i];
    const std::int64_t step = op.intsAttr("step")[i];
    if (step < 1) {
      diag.emit(op.range(), diag::SliceStep, step);
      return std::nullopt;
    }
    if (start < 0 || limit < start || limit > x.shape[i]) {
      diag.emit(op.range(), diag::SliceBounds, start, limit, static_cast<std::int64_t>(i), x.shape[i])
          .label(op.operandRange(0), "this operand");
      return std::nullopt;
    }
    result.shape.push_back(ceilDiv(limit - start, step));
  }
  return ResultTypes{result};
}

static void sliceFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    const bool whole =
        op.intsAttr("start")[i] == 0 && op.intsAttr("limit")[i] == x.shape[i] && op.intsAttr("step")[i] == 1;
    const int factor = factors.add(whole ? FactorKind::Pass : FactorKind::Window, x.shape[i]);
    factors.operandDim(0, static_cast<std::int64_t>(i), factor);
    factors.resultDim(0, static_cast<std::int64_t>(i), factor);
  }
}

static std::vector<MoveDim> sliceMap(const OpView& op, std::size_t, std::size_t) {
  std::vector<MoveDim> map = identityMap(op);
  for (std::size_t i = 0; i < map.size(); ++i) {
    map[i].scale = op.intsAttr("step")[i];
    map[i].offset = op.intsAttr("start")[i];
  }
  return map;
}

static void sliceVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const Type& x = op.operandType(0);
  const Type& y = op.resultType();
  if (y.elements() == 0) {
    b.accumulate(0, zerosLike(b, x, op.range()));
    return;
  }
  std::vector<std::int64_t> low = op.intsAttr("start"), high(x.shape.size()), interior(x.shape.size());
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    const std::int64_t step = op.intsAttr("step")[i];
    high[i] = x.shape[i] - (low[i] + (y.shape[i] - 1) * step + 1);
    interior[i] = step - 1;
  }
  b.accumulate(0, b.create(OpKind::Pad, {gradients[0], b.scalar(x.dtype, 0, op.range())},
                           {{"low", low}, {"high", high}, {"interior", interior}}, op.range()));
}

static constexpr AttrSpec kAttributes[] = {
    {"start", AttrKind::Ints}, {"limit", AttrKind::Ints}, {"step", AttrKind::Ints}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[6]",
     .ir = "%y = slice %x {start = [1], limit = [6], step = [2]} : f32[3]",
     .given = "[0, 1, 2, 3, 4, 5]",
     .expected = "[1, 3, 5]",
     .differentiable = true},
    {.args = "%x: f32[2, 4]",
     .ir = "%y = slice %x {start = [0, 1], limit = [2, 3], step = [1, 1]} : f32[2, 2]",
     .given = "[[0, 1, 2, 3], [4, 5, 6, 7]]",
     .expected = "[[1, 2], [5, 6]]",
     .differentiable = true},
    {.args = "%x: f32[7, 11]",
     .ir = "%y = slice %x {start = [0, 2], limit = [7, 11], step = [1, 3]} : f32[7, 3]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: i32[5, 3]",
     .ir = "%y = slice %x {start = [2, 0], limit = [2, 3], step = [1, 1]} : i32[0, 3]",
     .values = {-9, 9}},
};

constinit const OpDef kSliceOp = {
    .name = "slice",
    .doc = "elements `start`, `start + step`, … below `limit` of each dim",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferSlice,
    .factors = &sliceFactors,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = Vjp{&sliceVjp},
    .localize = SameOp{},
    .evaluate = &evaluateMove,
    .lower = LowerMove{&sliceMap},
};

}  // namespace gshard
