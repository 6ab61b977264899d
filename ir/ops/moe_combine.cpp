// moe_combine: every token gets back what its experts made of it, times the weight of the choice, added in the order of
// its choices; products and sums are rounded one by one, so that a sum over devices rounds alike. A token whose choices
// were all dropped is 0.
#include "ir/moe_op.h"

namespace gshard {

static std::optional<ResultTypes> inferMoeCombine(const OpView& op, DiagSink& diag) {
  if (!checkSlots(op, diag)) return std::nullopt;
  const RouteSizes sizes = routeSizes(op);
  const Type& y = op.operandType(0);
  const DType wide = accumulatorOf(y.dtype);
  if (op.operandCount() > kWeightOperand) {
    if (!isFloat(y.dtype)) {
      diag.emit(op.range(), diag::DtypeNotAccepted, "moe_combine", "floats to be weighted", printType(y))
          .label(op.operandRange(0), "this operand");
      return std::nullopt;
    }
    if (!checkRouteOperand(op, diag, kWeightOperand, Type{wide, op.operandType(kExpertOperand).shape}))
      return std::nullopt;
  }
  Type result{wide, {sizes.groups, sizes.tokens, y.shape[3]}};
  if (!checkSizes(op, diag, result)) return std::nullopt;
  return ResultTypes{std::move(result)};
}

static void moeCombineFactors(const OpView& op, FactorBuilder& factors) {
  const SlotFactors slots = slotFactors(op, factors);
  factors.resultDim(0, 0, slots.groups);
  factors.resultDim(0, 1, slots.tokens);
  factors.resultDim(0, 2, slots.width);
}

static void moeCombineVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const std::vector<ValueId>& given = op.op().operands;
  if (b.wants(0)) {
    std::vector<ValueId> operands = given;
    operands[0] = gradients[0];
    b.accumulate(0,
                 b.cast(b.create(OpKind::MoeDispatch, operands, {}, op.range()), op.operandType(0).dtype, op.range()));
  }
  if (given.size() <= kWeightOperand || !b.wants(kWeightOperand)) return;
  const ValueId rows = b.create(
      OpKind::MoeGather, {given[0], given[kSourceOperand], given[kExpertOperand], given[kSlotOperand]}, {}, op.range());
  const ValueId wide = b.cast(rows, op.resultType().dtype, op.range());
  const ValueId gradient = b.broadcast(gradients[0], b.type(wide).shape, {0, 1, 3}, op.range());
  b.accumulate(kWeightOperand, b.reduce(Reduction::Sum, b.map("mul", {wide, gradient}, op.range()), {3}, op.range()));
}

static void evaluateMoeCombine(const OpView& op, EvalFrame& frame) {
  const RouteSizes sizes = routeSizes(op);
  const Tensor& y = frame.in(0);
  const DType dtype = frame.out().type.dtype;
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const Index at = toGlobal(local, frame.resultTiles[0]);  // group, token, column
    Number sum;
    bool isFirst = true;
    for (std::int64_t j = 0; j < sizes.choices; ++j) {
      const std::optional<ExpertSlot> slot = slotOf(op, frame, at[0], at[1], j);
      if (!slot) continue;
      if (isFirst) sum = identityOf(Reduction::Sum, dtype);
      isFirst = false;
      const Index from = {slot->expert, at[0], slot->slot, at[2]};
      if (!isInside(frame.operandTiles[0], from)) continue;
      Number term = numberAt(y, placeOf(from, y, frame.operandTiles[0]));
      if (frame.operands.size() > kWeightOperand) {
        const Tensor& weight = frame.in(kWeightOperand);
        term.real = roundTo(
            dtype,
            term.real * numberAt(weight, placeOf({at[0], at[1], j}, weight, frame.operandTiles[kWeightOperand])).real);
      }
      sum = reduceStep(Reduction::Sum, dtype, sum, term, true);
    }
    storeNumber(frame.out(), flatOf(local, frame.out().type.shape), sum);
  });
}

static constexpr Example kExamples[] = {
    {.args = "%y: f32[2, 1, 2, 2], %source: i32[1, 2, 2], %e: i32[1, 3, 2], %s: i32[1, 3, 2], %w: f32[1, 3, 2]",
     .ir = "%x = moe_combine %y, %source, %e, %s, %w : f32[1, 3, 2]",
     .given = "[[[[1, 2], [5, 6]]], [[[3, 4], [9, 9]]]]; [[[0, 2], [1, -1]]]; [[[0, 1], [0, 1], [0, 1]]]; "
              "[[[0, 0], [1, -1], [-1, -1]]]; [[[0.5, 0.25], [0.75, 0], [0, 0]]]",
     .expected = "[[[1.25, 2], [3.75, 4.5], [0, 0]]]",
     .tolerance = 1e-6,
     .differentiable = true},
    {.args = "%y: f32[3, 2, 1, 1], %source: i32[2, 3, 1], %e: i32[2, 2, 3], %s: i32[2, 2, 3]",
     .ir = "%x = moe_combine %y, %source, %e, %s : f32[2, 2, 1]",
     .given =
         "[[[[1]], [[2]]], [[[3]], [[4]]], [[[5]], [[6]]]]; [[[0], [4], [-1]], [[3], [0], [1]]]; "
         "[[[0, 1, 2], [0, 1, 2]], [[1, 2, 0], [0, 1, 2]]]; [[[0, -1, -1], [-1, 0, -1]], [[0, 0, -1], [0, -1, -1]]]",
     .expected = "[[[1], [3]], [[10], [2]]]",
     .tolerance = 1e-6,
     .differentiable = true},
    {.args = "%y: i32[2, 1, 3, 1], %source: i32[1, 2, 3], %e: i32[1, 3, 1], %s: i32[1, 3, 1]",
     .ir = "%x = moe_combine %y, %source, %e, %s : i32[1, 3, 1]",
     .given = "[[[[9], [4], [7]]], [[[5], [-8], [6]]]]; [[[2, -1, 0], [-1, 1, -1]]]; [[[0], [1], [0]]]; "
              "[[[2], [1], [0]]]",
     .expected = "[[[7], [-8], [9]]]"},
};

constinit const OpDef kMoeCombineOp = {
    .name = "moe_combine",
    .doc =
        "tokens [G, S, M] from the slots of experts `y` [E, G, C, M]: the sum over a token's choices, in their order, "
        "of "
        "what lies in their slots times `weight`; in the accumulation type of `y`",
    .operands = OperandSpec{"y, source, expert, slot, weight", 4, 5},
    .attributes = std::span<const AttrSpec>{},
    .examples = kExamples,
    .infer = &inferMoeCombine,
    .factors = &moeCombineFactors,
    .linearity = Separate{.which = OperandMask{0b10001}},
    .tails = TailsMasked{"a slot beyond the live end is never read"},
    .gradient = Vjp{&moeCombineVjp},
    .localize = UsesOffsets{"a part of the experts answers for its own slots only"},
    .evaluate = &evaluateMoeCombine,
    .lower = LowerCombine{},
};

}  // namespace gshard
