// dynamic_slice: a window of x that begins where run-time scalars say. On a split dim each device gives what of the
// window lies in its part, so that what travels is in proportion to the window and not to x.
#include "ir/window_op.h"

namespace gshard {

static std::optional<ResultTypes> inferDynamicSlice(const OpView& op, DiagSink& diag) {
  const std::vector<std::int64_t>& size = op.intsAttr("size");
  if (!checkWindow(op, diag, size, 1)) return std::nullopt;
  return ResultTypes{Type{op.operandType(0).dtype, size}};
}

static void dynamicSliceFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  const Reduction reduction = x.dtype == DType::Bool ? Reduction::Any : Reduction::Sum;
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    const std::int64_t dim = static_cast<std::int64_t>(i), size = op.intsAttr("size")[i];
    if (size == x.shape[i]) {  // can only begin at 0
      const int factor = factors.add(FactorKind::Pass, size);
      factors.operandDim(0, dim, factor);
      factors.resultDim(0, dim, factor);
      continue;
    }
    factors.operandDim(0, dim, factors.add(FactorKind::Lookup, x.shape[i], "", "", reduction));
    factors.resultDim(0, dim, factors.add(FactorKind::Pass, size));
  }
}

static void dynamicSliceVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  std::vector<ValueId> operands = startsOf(op, 1);
  const ValueId nothing = zerosLike(b, op.operandType(0), op.range());
  operands.insert(operands.begin(), {nothing, gradients[0]});
  b.accumulate(0, b.create(OpKind::DynamicUpdate, operands, {}, op.range()));
}

static void evaluateDynamicSlice(const OpView& op, EvalFrame& frame) {
  const Tensor& x = frame.in(0);
  const Index start = windowStart(op, frame, op.intsAttr("size"), 1);
  const Number nothing = identityOf(x.type.dtype == DType::Bool ? Reduction::Any : Reduction::Sum, x.type.dtype);
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    Index source = toGlobal(local, frame.resultTiles[0]);
    bool isMine = true;
    for (std::size_t i = 0; i < source.size(); ++i) {
      source[i] += start[i];
      const Tile& tile = frame.operandTiles[0][i];
      isMine = isMine && source[i] >= tile.offset && source[i] < tile.offset + tile.live;
    }
    const std::int64_t place = flatOf(local, frame.out().type.shape);
    if (isMine) {
      copyElement(x, placeOf(source, x, frame.operandTiles[0]), frame.out(), place);
    } else {
      storeNumber(frame.out(), place, nothing);  // another part of a split dim has it
    }
  });
}

static constexpr AttrSpec kAttributes[] = {{"size", AttrKind::Ints, false, AttrPlace::ResultShape}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[12], %i: i32",
     .ir = "%y = dynamic_slice %x, %i : f32[3]",
     .given = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]; 8",
     .expected = "[8, 9, 10]",
     .differentiable = true},
    {.args = "%x: f32[7, 5], %i: i64, %j: i32",
     .ir = "%y = dynamic_slice %x, %i, %j : f32[2, 3]",
     .values = {0, 2},
     .differentiable = true},
    {.args = "%x: i32[9], %i: i32", .ir = "%y = dynamic_slice %x, %i : i32[2]", .values = {0, 7}},
    {.args = "%x: bool[7], %i: i32", .ir = "%y = dynamic_slice %x, %i : bool[6]", .values = {0, 1}},
    {.args = "%x: f32[3, 2], %i: i32, %j: i32", .ir = "%y = dynamic_slice %x, %i, %j : f32[0, 2]", .values = {0, 0}},
};

constinit const OpDef kDynamicSliceOp = {
    .name = "dynamic_slice",
    .doc =
        "the window of shape `size` of `x` that begins at `start`, one scalar per dim; a start beyond what leaves room "
        "for it is a run-time error",
    .operands = OperandSpec{"x, start…", 1, -1},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferDynamicSlice,
    .factors = &dynamicSliceFactors,
    .linearity = Joint{.over = anyReduction, .which = OperandMask{1}},
    .tails = TailsMasked{"what lies beyond the live end is never read"},
    .gradient = Vjp{&dynamicSliceVjp},
    .localize = UsesOffsets{"a part of a split dim answers for its own indices only"},
    .evaluate = &evaluateDynamicSlice,
    .lower = LowerWindowRead{},
};

}  // namespace gshard
