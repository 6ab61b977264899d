// moe_gather: what the slots of experts hold for every choice of every token. A dropped choice is 0; what another part
// of split experts or slots holds is -0, so that the pending sum keeps the bits of the rows.
#include "ir/moe_op.h"

namespace gshard {

static std::optional<ResultTypes> inferMoeGather(const OpView& op, DiagSink& diag) {
  if (!checkSlots(op, diag)) return std::nullopt;
  const RouteSizes sizes = routeSizes(op);
  const Type& y = op.operandType(0);
  Type result{y.dtype, {sizes.groups, sizes.tokens, sizes.choices, y.shape[3]}};
  if (!checkSizes(op, diag, result)) return std::nullopt;
  return ResultTypes{std::move(result)};
}

static void moeGatherFactors(const OpView& op, FactorBuilder& factors) {
  const SlotFactors slots = slotFactors(op, factors);
  factors.resultDim(0, 0, slots.groups);
  factors.resultDim(0, 1, slots.tokens);
  factors.resultDim(
      0, 2, factors.add(FactorKind::Whole, routeSizes(op).choices, "", "the choices of a token stand side by side"));
  factors.resultDim(0, 3, slots.width);
}

// Every choice is a token of its own then: `source` numbers them already.
static void moeGatherVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const RouteSizes sizes = routeSizes(op);
  const std::vector<ValueId>& given = op.op().operands;
  const std::int64_t choices = sizes.tokens * sizes.choices;
  const ValueId rows = b.reshape(gradients[0], {sizes.groups, choices, op.operandType(0).shape[3]}, op.range());
  const auto flat = [&](ValueId value) { return b.reshape(value, {sizes.groups, choices, 1}, op.range()); };
  b.accumulate(0, b.create(OpKind::MoeDispatch,
                           {rows, given[kSourceOperand], flat(given[kExpertOperand]), flat(given[kSlotOperand])}, {},
                           op.range()));
}

static void evaluateMoeGather(const OpView& op, EvalFrame& frame) {
  const Tensor& y = frame.in(0);
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const Index at = toGlobal(local, frame.resultTiles[0]);  // group, token, choice, column
    const std::int64_t place = flatOf(local, frame.out().type.shape);
    const std::optional<ExpertSlot> slot = slotOf(op, frame, at[0], at[1], at[2]);
    if (!slot) {
      storeNumber(frame.out(), place, Number{});
      return;
    }
    const Index from = {slot->expert, at[0], slot->slot, at[3]};
    if (isInside(frame.operandTiles[0], from)) {
      copyElement(y, placeOf(from, y, frame.operandTiles[0]), frame.out(), place);
    } else {
      storeNumber(frame.out(), place, identityOf(Reduction::Sum, y.type.dtype));
    }
  });
}

static constexpr Example kExamples[] = {
    {.args = "%y: f32[2, 1, 2, 2], %source: i32[1, 2, 2], %e: i32[1, 4, 1], %s: i32[1, 4, 1]",
     .ir = "%x = moe_gather %y, %source, %e, %s : f32[1, 4, 1, 2]",
     .given = "[[[[1, 2], [5, 6]]], [[[3, 4], [9, 9]]]]; [[[0, 2], [1, -1]]]; [[[0], [1], [0], [0]]]; "
              "[[[0], [0], [1], [-1]]]",
     .expected = "[[[[1, 2]], [[3, 4]], [[5, 6]], [[0, 0]]]]",
     .differentiable = true},
    {.args = "%y: f32[3, 2, 1, 1], %source: i32[2, 3, 1], %e: i32[2, 2, 2], %s: i32[2, 2, 2]",
     .ir = "%x = moe_gather %y, %source, %e, %s : f32[2, 2, 2, 1]",
     .given = "[[[[1]], [[2]]], [[[3]], [[4]]], [[[5]], [[6]]]]; [[[0], [3], [-1]], [[2], [0], [1]]]; "
              "[[[0, 1], [0, 1]], [[1, 2], [0, 1]]]; [[[0, -1], [-1, 0]], [[0, 0], [0, -1]]]",
     .expected = "[[[[1], [0]], [[0], [3]]], [[[4], [6]], [[2], [0]]]]",
     .differentiable = true},
    {.args = "%y: i64[2, 1, 3, 1], %source: i32[1, 2, 3], %e: i32[1, 3, 1], %s: i32[1, 3, 1]",
     .ir = "%x = moe_gather %y, %source, %e, %s : i64[1, 3, 1, 1]",
     .given = "[[[[9], [4], [7]]], [[[5], [-8], [6]]]]; [[[2, -1, 0], [-1, 1, -1]]]; [[[0], [1], [0]]]; "
              "[[[2], [1], [0]]]",
     .expected = "[[[[7]], [[-8]], [[9]]]]"},
};

constinit const OpDef kMoeGatherOp = {
    .name = "moe_gather",
    .doc =
        "what the slots of experts `y` [E, G, C, M] hold for the choices of every token, [G, S, k, M]; 0 for a choice "
        "that was dropped",
    .operands = OperandSpec{"y, source, expert, slot", 4, 4},
    .attributes = std::span<const AttrSpec>{},
    .examples = kExamples,
    .infer = &inferMoeGather,
    .factors = &moeGatherFactors,
    .linearity = Joint{.over = only(Reduction::Sum), .which = OperandMask{1}},
    .tails = TailsMasked{"a slot beyond the live end is never read"},
    .gradient = Vjp{&moeGatherVjp},
    .localize = UsesOffsets{"a part of the experts answers for its own slots only"},
    .evaluate = &evaluateMoeGather,
    .lower = LowerGatherSlots{},
};

}  // namespace gshard
