// top_k: the k largest elements of each row along one axis, with their indices.
#include "ir/sort_op.h"

namespace gshard {

static std::optional<ResultTypes> inferTopK(const OpView& op, DiagSink& diag) {
  if (!checkSort(op, diag)) return std::nullopt;
  Type result = op.operandType(0);
  std::int64_t& size = result.shape[static_cast<std::size_t>(op.intAttr("axis"))];
  const std::int64_t k = op.intAttr("k");
  if (k < 0 || k > size) {
    diag.emit(op.range(), diag::IrAttribute, "k", "top_k",
              "is " + std::to_string(k) + ", but the dim has " + std::to_string(size) + " elements")
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  size = k;
  return ResultTypes{result, Type{DType::I32, result.shape}};
}

static void topKVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  if (!gradients[0].known()) return;
  b.accumulate(
      0, scatterAlong(b, gradients[0], op.op().results[1], Type(op.operandType(0)), op.intAttr("axis"), op.range()));
}

// Of a split dim the parts' own `k` largest compete; the places in the result are no letter of the operand.
static void topKFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  const std::int64_t k = op.intAttr("k");
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const std::int64_t size = x.shape[static_cast<std::size_t>(dim)];
    const bool isAxis = dim == op.intAttr("axis");
    const FactorKind kind = !isAxis ? FactorKind::Pass : k == 0 ? FactorKind::Whole : FactorKind::Candidates;
    const std::string reason = "the `k` largest of each part would be no fewer bytes than the dim itself";
    const int factor = factors.add(kind, size, "", isAxis ? reason : "");
    const int places = isAxis ? factors.add(FactorKind::Whole, k, "", "places are counted over the whole dim") : factor;
    factors.operandDim(0, dim, factor);
    for (std::size_t r = 0; r < 2; ++r) factors.resultDim(r, dim, places);
  }
}

static void evaluateTopK(const OpView& op, EvalFrame& frame) {
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  forEachSorted(op, frame, true, [&](Index index, const std::vector<std::int64_t>& order) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(op.intAttr("k")); ++i) {
      index[axis] = order[i];
      const std::int64_t from = placeOf(index, frame.in(0), frame.operandTiles[0]);
      index[axis] = static_cast<std::int64_t>(i);
      const std::int64_t to = placeOf(index, frame.out(), frame.resultTiles[0]);
      copyElement(frame.in(0), from, frame.out(0), to);
      frame.out(1).ints[static_cast<std::size_t>(to)] = order[i];
    }
  });
}

static constexpr AttrSpec kAttributes[] = {{"k", AttrKind::Int}, {"axis", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 4]",
     .ir = "%y, %i = top_k %x {k = 2, axis = 1} : f32[2, 2], i32[2, 2]",
     .given = "[[2, 3, 1, 5], [6, -5, 7, 4]]",
     .expected = "[[5, 3], [7, 6]]; [[3, 1], [2, 0]]",
     .differentiable = true},
    {.args = "%x: f32[5]",
     .ir = "%y, %i = top_k %x {k = 4, axis = 0} : f32[4], i32[4]",
     .given = "[1, 7, nan, 7, nan]",
     .expected = "[nan, nan, 7, 7]; [2, 4, 1, 3]"},
    {.args = "%x: f32[7, 5]",
     .ir = "%y, %i = top_k %x {k = 3, axis = 0} : f32[3, 5], i32[3, 5]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: i32[5, 7]", .ir = "%y, %i = top_k %x {k = 1, axis = 1} : i32[5, 1], i32[5, 1]", .values = {-3, 3}},
    {.args = "%x: f64[3, 5]",
     .ir = "%y, %i = top_k %x {k = 5, axis = 1} : f64[3, 5], i32[3, 5]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: f32[3, 29]",
     .ir = "%y, %i = top_k %x {k = 2, axis = 1} : f32[3, 2], i32[3, 2]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: f32[29, 2]", .ir = "%y, %i = top_k %x {k = 3, axis = 0} : f32[3, 2], i32[3, 2]", .values = {-3, 3}},
    {.args = "%x: i64[3, 4]", .ir = "%y, %i = top_k %x {k = 0, axis = 1} : i64[3, 0], i32[3, 0]", .values = {-9, 9}},
};

constinit const OpDef kTopKOp = {
    .name = "top_k",
    .doc =
        "the `k` largest elements of `x` along `axis`, largest first, and their indices; NaN is the largest, of equals "
        "the lowest index comes first",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferTopK,
    .factors = &topKFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = Vjp{&topKVjp},
    .localize = SameOp{},
    .evaluate = &evaluateTopK,
    .lower = LowerSort{},
};

}  // namespace gshard
