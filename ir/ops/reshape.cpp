// reshape: the same row-major elements under another shape.
#include <numeric>

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferReshape(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const Type result{x.dtype, op.intsAttr("shape")};
  if (!checkSizes(op, diag, result)) return std::nullopt;
  if (result.elements() != x.elements()) {
    diag.emit(op.range(), diag::ReshapeElements, printType(x), x.elements(), printShape(result.shape),
              result.elements())
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  return ResultTypes{result};
}

// Walks both shapes from the major end. As long as the elements before both places are equally many, any common divisor
// of what is left of the two dims is a factor of both (Shardy's rule for reshapes). Where there is none, the dims up to
// the next place at which both shapes agree are mixed: each gets a window of its own, which only an exchange can cross.
static void reshapeFactors(const OpView& op, FactorBuilder& factors) {
  const std::vector<std::int64_t>& from = op.operandType(0).shape;
  const std::vector<std::int64_t>& to = op.intsAttr("shape");
  std::size_t i = 0, j = 0;
  std::int64_t left = 1, right = 1;  // what is left of dims i - 1 and j - 1
  const auto operandPiece = [&](FactorKind kind, std::int64_t size) {
    const int factor = factors.add(kind, size);
    factors.operandDim(0, static_cast<std::int64_t>(i) - 1, factor);
    return factor;
  };
  if (op.operandType(0).elements() == 0) {  // no element moves
    for (; i < from.size();) {
      ++i;
      operandPiece(FactorKind::Window, from[i - 1]);
    }
    for (; j < to.size(); ++j)
      factors.resultDim(0, static_cast<std::int64_t>(j), factors.add(FactorKind::Window, to[j]));
    return;
  }
  while (true) {
    while (left == 1 && i < from.size()) left = from[i++];
    while (right == 1 && j < to.size()) right = to[j++];
    if (left == 1 || right == 1) return;  // both: the shapes have equally many elements
    const std::int64_t common = std::gcd(left, right);
    if (common > 1) {
      factors.resultDim(0, static_cast<std::int64_t>(j) - 1, operandPiece(FactorKind::Pass, common));
      left /= common;
      right /= common;
      continue;
    }
    // Mixed: take dims from the shorter side until both sides cover equally many elements.
    std::int64_t before = left, after = right;
    operandPiece(FactorKind::Window, left);
    factors.resultDim(0, static_cast<std::int64_t>(j) - 1, factors.add(FactorKind::Window, right));
    while (before != after) {
      if (before < after) {
        before *= from[i++];
        operandPiece(FactorKind::Window, from[i - 1]);
      } else {
        after *= to[j++];
        factors.resultDim(0, static_cast<std::int64_t>(j) - 1, factors.add(FactorKind::Window, to[j - 1]));
      }
    }
    left = right = 1;
  }
}

static void reshapeVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  b.accumulate(0, b.reshape(gradients[0], op.operandType(0).shape, op.range()));
}

static void evaluateReshape(const OpView& op, EvalFrame& frame) {
  const Tensor& x = frame.in(0);
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const std::int64_t flat = flatOf(toGlobal(local, frame.resultTiles[0]), op.resultType().shape);
    const Index source = indexOf(flat, op.operandType(0).shape);
    copyElement(x, placeOf(source, x, frame.operandTiles[0]), frame.out(), flatOf(local, frame.out().type.shape));
  });
}

static constexpr AttrSpec kAttributes[] = {{"shape", AttrKind::Ints, false, AttrPlace::ResultShape}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3]",
     .ir = "%y = reshape %x : f32[6]",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[1, 2, 3, 4, 5, 6]",
     .differentiable = true},
    {.args = "%x: f32[12, 5]", .ir = "%y = reshape %x : f32[3, 4, 1, 5]", .values = {-9, 9}, .differentiable = true},
    {.args = "%x: f32[6, 4]", .ir = "%y = reshape %x : f32[8, 3]", .values = {-9, 9}, .differentiable = true},
    {.args = "%x: f32[4, 3, 7]", .ir = "%y = reshape %x : f32[12, 7]", .values = {-9, 9}, .differentiable = true},
    {.args = "%x: i32[1]", .ir = "%y = reshape %x : i32", .given = "[7]", .expected = "7"},
};

constinit const OpDef kReshapeOp = {
    .name = "reshape",
    .doc = "the same elements, row-major, under another shape",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferReshape,
    .factors = &reshapeFactors,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = Vjp{&reshapeVjp},
    .localize = SameOp{},
    .evaluate = &evaluateReshape,
    .lower = LowerMove{},
};

}  // namespace gshard
