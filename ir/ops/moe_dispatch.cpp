// moe_dispatch: rows of tokens to the slots of experts, times the weight of their choice if one is given (the gradient
// of moe_combine). Splitting experts or slots is local where the tokens are whole: each device fills its own. An empty
// slot is 0; what another part of split tokens has is -0, so that the pending sum keeps the bits of the rows.
#include "ir/moe_op.h"

namespace gshard {

static std::optional<ResultTypes> inferMoeDispatch(const OpView& op, DiagSink& diag) {
  if (!checkRoute(op, diag)) return std::nullopt;
  const RouteSizes sizes = routeSizes(op);
  const Type& x = op.operandType(0);
  const std::int64_t width = x.rank() == 3 ? x.shape[2] : 0;
  if (!checkRouteOperand(op, diag, 0, Type{x.dtype, {sizes.groups, sizes.tokens, width}})) return std::nullopt;
  const bool isWeighted = op.operandCount() > kWeightOperand;
  if (isWeighted && !checkRouteOperand(op, diag, kWeightOperand, Type{x.dtype, op.operandType(kExpertOperand).shape}))
    return std::nullopt;
  if (isWeighted && (!isFloat(x.dtype) || accumulatorOf(x.dtype) != x.dtype)) {
    diag.emit(op.range(), diag::DtypeNotAccepted, "moe_dispatch", "weights of f32 and f64", printType(x))
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  Type result{x.dtype, {sizes.experts, sizes.groups, sizes.capacity, width}};
  if (!checkNumbers(op, diag)) return std::nullopt;
  if (!checkSizes(op, diag, result)) return std::nullopt;
  return ResultTypes{std::move(result)};
}

static void moeDispatchFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  const RouteSizes sizes = routeSizes(op);
  const RouteFactors route = routeFactors(op, factors, FactorKind::Lookup);
  const int width = factors.add(FactorKind::Pass, x.shape[2]);
  factors.operandDim(0, 0, route.groups);
  factors.operandDim(0, 1, route.tokens);
  factors.operandDim(0, 2, width);
  factors.resultDim(0, 0, factors.add(FactorKind::Pass, sizes.experts));
  factors.resultDim(0, 1, route.groups);
  factors.resultDim(0, 2, factors.add(FactorKind::Pass, sizes.capacity));
  factors.resultDim(0, 3, width);
}

static void moeDispatchVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const std::vector<ValueId>& given = op.op().operands;
  const Type& x = op.operandType(0);
  if (b.wants(0)) {
    std::vector<ValueId> operands = given;
    operands[0] = gradients[0];
    b.accumulate(0, b.cast(b.create(OpKind::MoeCombine, operands, {}, op.range()), x.dtype, op.range()));
  }
  if (given.size() <= kWeightOperand || !b.wants(kWeightOperand)) return;
  const ValueId rows =
      b.create(OpKind::MoeGather, {gradients[0], given[kSourceOperand], given[kExpertOperand], given[kSlotOperand]}, {},
               op.range());
  const ValueId tokens = b.broadcast(given[0], b.type(rows).shape, {0, 1, 3}, op.range());
  b.accumulate(kWeightOperand, b.reduce(Reduction::Sum, b.map("mul", {rows, tokens}, op.range()), {3}, op.range()));
}

static void evaluateMoeDispatch(const OpView& op, EvalFrame& frame) {
  const RouteSizes sizes = routeSizes(op);
  const Tensor& source = frame.in(kSourceOperand);
  const DType dtype = frame.out().type.dtype;
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const Index at = toGlobal(local, frame.resultTiles[0]);  // expert, group, slot, column
    const std::int64_t place = flatOf(local, frame.out().type.shape);
    const Index wanted = {at[1], at[0], at[2]};
    const std::int64_t choice =
        source.ints[static_cast<std::size_t>(placeOf(wanted, source, frame.operandTiles[kSourceOperand]))];
    if (choice < 0 || choice >= sizes.tokens * sizes.choices) {
      storeNumber(frame.out(), place, Number{});
      return;
    }
    const Index from = {at[1], choice / sizes.choices, at[3]};
    if (!isInside(frame.operandTiles[0], from)) {
      storeNumber(frame.out(), place, identityOf(Reduction::Sum, dtype));
      return;
    }
    Number value = numberAt(frame.in(0), placeOf(from, frame.in(0), frame.operandTiles[0]));
    if (frame.operands.size() > kWeightOperand) {
      const Index one = {at[1], choice / sizes.choices, choice % sizes.choices};
      value.real *=
          numberAt(frame.in(kWeightOperand), placeOf(one, frame.in(kWeightOperand), frame.operandTiles[kWeightOperand]))
              .real;
    }
    storeNumber(frame.out(), place, value);
  });
}

static constexpr Example kExamples[] = {
    // Four tokens to two experts with two slots; token 3 is dropped, a slot of expert 1 stays empty.
    {.args = "%x: f32[1, 4, 2], %source: i32[1, 2, 2], %e: i32[1, 4, 1], %s: i32[1, 4, 1]",
     .ir = "%y = moe_dispatch %x, %source, %e, %s : f32[2, 1, 2, 2]",
     .given =
         "[[[1, 2], [3, 4], [5, 6], [7, 8]]]; [[[0, 2], [1, -1]]]; [[[0], [1], [0], [0]]]; [[[0], [0], [1], [-1]]]",
     .expected = "[[[[1, 2], [5, 6]]], [[[3, 4], [0, 0]]]]",
     .differentiable = true},
    // Two groups and two choices, weighted.
    {.args = "%x: f32[2, 2, 3], %source: i32[2, 3, 1], %e: i32[2, 2, 2], %s: i32[2, 2, 2], %w: f32[2, 2, 2]",
     .ir = "%y = moe_dispatch %x, %source, %e, %s, %w : f32[3, 2, 1, 3]",
     .given = "[[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]; [[[0], [3], [-1]], [[2], [0], [1]]]; "
              "[[[0, 1], [0, 1]], [[1, 2], [0, 1]]]; [[[0, -1], [-1, 0]], [[0, 0], [0, -1]]]; "
              "[[[0.5, 0], [0, 0.25]], [[0.75, 0.25], [1, 0]]]",
     .expected = "[[[[0.5, 1, 1.5]], [[10, 11, 12]]], [[[1, 1.25, 1.5]], [[5.25, 6, 6.75]]], "
                 "[[[0, 0, 0]], [[1.75, 2, 2.25]]]]",
     .differentiable = true},
    {.args = "%x: i32[1, 3, 1], %source: i32[1, 1, 4], %e: i32[1, 3, 1], %s: i32[1, 3, 1]",
     .ir = "%y = moe_dispatch %x, %source, %e, %s : i32[1, 1, 4, 1]",
     .given = "[[[7], [-8], [9]]]; [[[2, -1, 0, 1]]]; [[[0], [0], [0]]]; [[[2], [3], [0]]]",
     .expected = "[[[[9], [0], [7], [-8]]]]"},
};

constinit const OpDef kMoeDispatchOp = {
    .name = "moe_dispatch",
    .doc =
        "rows of tokens `x` [G, S, M] in the slots of experts, [E, G, C, M]: slot c of expert e holds the token of "
        "choice "
        "`source`[g, e, c], times its `weight` if that is given, and 0 where there is none",
    .operands = OperandSpec{"x, source, expert, slot, weight", 4, 5},
    .attributes = std::span<const AttrSpec>{},
    .examples = kExamples,
    .infer = &inferMoeDispatch,
    .factors = &moeDispatchFactors,
    .linearity = Separate{.which = OperandMask{0b10001}},
    .tails = TailsMasked{"a token beyond the live end fills no slot"},
    .gradient = Vjp{&moeDispatchVjp},
    .localize = UsesOffsets{"a part fills its own slots, from its own tokens"},
    .evaluate = &evaluateMoeDispatch,
    .lower = LowerDispatch{},
};

}  // namespace gshard
