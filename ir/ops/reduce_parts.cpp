// reduce_parts: each part of a split dim reduced by itself, the results side by side in a last dim that is split alike.
// What a scan over parts begins with.
#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"
#include "ir/ops/reduction_of.h"
#include "support/check.h"

namespace gshard {

static std::int64_t reducedDim(const OpView& op) {
  return op.intsAttr("dims").front();
}

static std::optional<ResultTypes> inferReduceParts(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const std::optional<Reduction> reduction = reductionFromName(op.stringAttr("fn"));
  const std::vector<std::int64_t>& dims = op.intsAttr("dims");
  if (!reduction || dims.size() != 1) {
    diag.emit(op.range(), diag::IrAttribute, reduction ? "dims" : "fn", "reduce_parts",
              reduction ? "names one dim" : "is none of sum, prod, max, min, any, all");
    return std::nullopt;
  }
  if (!checkDimList(op, diag, dims, x)) return std::nullopt;
  const bool isLogical = *reduction == Reduction::Any || *reduction == Reduction::All;
  if (isLogical != (x.dtype == DType::Bool)) {
    diag.emit(op.range(), diag::DtypeNotAccepted, op.stringAttr("fn"), isLogical ? "`bool`" : "numbers", printType(x))
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  Type result{*reduction == Reduction::Sum ? accumulatorOf(x.dtype) : x.dtype, x.shape};
  result.shape.erase(result.shape.begin() + dims.front());
  result.shape.push_back(productOf(op.axesAttr("axes")));
  return ResultTypes{result};
}

static void reducePartsFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  std::int64_t at = 0;
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const bool isReduced = dim == reducedDim(op);
    const FactorKind kind = isReduced ? FactorKind::Scan : FactorKind::Pass;
    const int factor = factors.add(kind, x.shape[static_cast<std::size_t>(dim)]);
    factors.operandDim(0, dim, factor);
    factors.resultDim(0, isReduced ? x.rank() - 1 : at++, factor);
  }
}

static std::variant<NotLinear, Joint, Separate> reducePartsLinearity(const OpView& op) {
  return Joint{.over = only(reductionOf(op)), .which = allOperands};
}

static std::optional<std::string> checkReduceParts(const OpView& op) {
  const std::size_t dim = static_cast<std::size_t>(reducedDim(op));
  Sharding expected = *op.function().value(op.op().operands[0]).sharding;
  if (expected.dims[dim] != op.axesAttr("axes")) return "dim " + std::to_string(dim) + " is not split over `axes`";
  for (const PartialAxis& pending : expected.partial) {
    if (pending.reduction != reductionOf(op)) return "the operand is pending by another reduction";
  }
  expected.dims.erase(expected.dims.begin() + static_cast<std::ptrdiff_t>(dim));
  expected.dims.push_back(op.axesAttr("axes"));
  if (*op.function().value(op.op().results[0]).sharding == expected) return std::nullopt;
  return "the result is not `" + printSharding(op.mesh(), expected) + "`";
}

static void evaluateReduceParts(const OpView& op, EvalFrame& frame) {
  const Tensor& x = frame.in(0);
  const std::size_t dim = static_cast<std::size_t>(reducedDim(op));
  const std::int64_t size = op.operandType(0).shape[dim];
  const std::int64_t parts = productOf(op.axesAttr("axes"));
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    Index index = toGlobal(local, frame.resultTiles[0]);
    const Tile part = tileOf(size, parts, index.back());
    index.pop_back();
    index.insert(index.begin() + static_cast<std::ptrdiff_t>(dim), 0);
    Number sum = identityOf(reductionOf(op), x.type.dtype);
    for (std::int64_t i = part.offset; i < part.offset + part.live; ++i) {
      index[dim] = i;
      const Number element = numberAt(x, placeOf(index, x, frame.operandTiles[0]));
      sum = reduceStep(reductionOf(op), x.type.dtype, sum, element, false);
    }
    storeNumber(frame.out(), flatOf(local, frame.out().type.shape), sum);
  });
}

static constexpr AttrSpec kAttributes[] = {
    {"fn", AttrKind::String, false, AttrPlace::Word}, {"dims", AttrKind::Ints}, {"axes", AttrKind::Axes}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[_, a]}",
     .ir = "%y = reduce_parts sum %x {dims = [1], axes = [a]} : f32[2, 2] {[_, a]}",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[3, 3], [9, 6]]"},
    {.args = "%x: i32[5] {[(a, b)]}",
     .ir = "%y = reduce_parts sum %x {dims = [0], axes = [a, b]} : i32[4] {[(a, b)]}",
     .given = "[1, 2, 3, 4, 5]",
     .expected = "[3, 7, 5, 0]"},
};

constinit const OpDef kReducePartsOp = {
    .name = "reduce_parts",
    .doc = "each part of the split dim `dims` reduced by itself, side by side in a last dim",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferReduceParts,
    .factors = &reducePartsFactors,
    .linearity = LinearityFn{&reducePartsLinearity},
    .tails = TailsMasked{"the dim runs to its live end"},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkReduceParts, .work = TileWork::Local},
    .evaluate = &evaluateReduceParts,
    .lower = LowerReduce{},
};

}  // namespace gshard
