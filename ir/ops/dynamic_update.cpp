// dynamic_update: x with a window of it replaced, which begins where run-time scalars say. On a split dim of x each
// device takes what falls into its part.
#include "ir/window_op.h"

namespace gshard {

static std::optional<ResultTypes> inferDynamicUpdate(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const Type& update = op.operandType(1);
  if (update.dtype != x.dtype) {
    diag.emit(op.range(), diag::DtypesDiffer, "dynamic_update", printType(x), printType(update))
        .label(op.operandRange(1), "this operand");
    return std::nullopt;
  }
  if (!checkWindow(op, diag, update.shape, 2)) return std::nullopt;
  return ResultTypes{x};
}

static void dynamicUpdateFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  const Type& update = op.operandType(1);
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    const std::int64_t dim = static_cast<std::int64_t>(i);
    const bool isWhole = update.shape[i] == x.shape[i];  // can only begin at 0
    const int factor = factors.add(isWhole ? FactorKind::Pass : FactorKind::Lookup, x.shape[i]);
    factors.operandDim(0, dim, factor);
    factors.resultDim(0, dim, factor);
    if (isWhole) {
      factors.operandDim(1, dim, factor);
    } else {
      factors.operandDim(
          1, dim, factors.add(FactorKind::Whole, update.shape[i], "", "where the window begins is known at run time"));
    }
  }
}

static void dynamicUpdateVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const Type update = op.operandType(1);
  if (b.wants(0)) {
    std::vector<ValueId> operands = startsOf(op, 2);
    const ValueId nothing = zerosLike(b, update, op.range());
    operands.insert(operands.begin(), {gradients[0], nothing});
    b.accumulate(0, b.create(OpKind::DynamicUpdate, operands, {}, op.range()));
  }
  if (!b.wants(1)) return;
  std::vector<ValueId> operands = startsOf(op, 2);
  operands.insert(operands.begin(), gradients[0]);
  b.accumulate(1, b.create(OpKind::DynamicSlice, operands, {{"size", update.shape}}, op.range()));
}

static void evaluateDynamicUpdate(const OpView& op, EvalFrame& frame) {
  const Tensor& x = frame.in(0);
  const Tensor& update = frame.in(1);
  const Index start = windowStart(op, frame, op.operandType(1).shape, 2);
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const Index global = toGlobal(local, frame.resultTiles[0]);
    const std::int64_t place = flatOf(local, frame.out().type.shape);
    Index within = global;
    bool isInside = true;
    for (std::size_t i = 0; i < within.size(); ++i) {
      within[i] -= start[i];
      isInside = isInside && within[i] >= 0 && within[i] < op.operandType(1).shape[i];
    }
    if (isInside) {
      copyElement(update, placeOf(within, update, frame.operandTiles[1]), frame.out(), place);
    } else {
      copyElement(x, placeOf(global, x, frame.operandTiles[0]), frame.out(), place);
    }
  });
}

static constexpr Example kExamples[] = {
    {.args = "%x: f32[12], %u: f32[3], %i: i32",
     .ir = "%y = dynamic_update %x, %u, %i : f32[12]",
     .given = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]; [97, 98, 99]; 8",
     .expected = "[0, 1, 2, 3, 4, 5, 6, 7, 97, 98, 99, 11]",
     .differentiable = true},
    {.args = "%x: f32[7, 5], %u: f32[2, 3], %i: i32, %j: i64",
     .ir = "%y = dynamic_update %x, %u, %i, %j : f32[7, 5]",
     .values = {0, 2},
     .differentiable = true},
    {.args = "%x: i32[9], %u: i32[4], %i: i32", .ir = "%y = dynamic_update %x, %u, %i : i32[9]", .values = {0, 5}},
    {.args = "%x: bool[7, 3], %u: bool[6, 1], %i: i32, %j: i32",
     .ir = "%y = dynamic_update %x, %u, %i, %j : bool[7, 3]",
     .values = {0, 1}},
};

constinit const OpDef kDynamicUpdateOp = {
    .name = "dynamic_update",
    .doc =
        "`x` with the window that begins at `start`, one scalar per dim, replaced by `update`; a start beyond what "
        "leaves room for it is a run-time error",
    .operands = OperandSpec{"x, update, start…", 2, -1},
    .attributes = std::span<const AttrSpec>{},
    .examples = kExamples,
    .infer = &inferDynamicUpdate,
    .factors = &dynamicUpdateFactors,
    .linearity = Joint{.over = anyReduction, .which = OperandMask{0b11}},
    .tails = TailsIgnored{},
    .gradient = Vjp{&dynamicUpdateVjp},
    .localize = UsesOffsets{"a part of a split dim takes what falls into it"},
    .evaluate = &evaluateDynamicUpdate,
    .lower = LowerWindowWrite{},
};

}  // namespace gshard
