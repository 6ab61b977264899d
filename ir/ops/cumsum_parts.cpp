// cumsum_parts: cumsum along a split axis. A device runs over its own part, and begins with the totals of the parts
// before it (reduce_parts, gathered).
#include "ir/scan_op.h"

namespace gshard {

static std::optional<ResultTypes> inferCumsumParts(const OpView& op, DiagSink& diag) {
  std::optional<ResultTypes> result = inferScan(op, diag);
  if (!result) return std::nullopt;
  Type totals = result->front();
  totals.shape.erase(totals.shape.begin() + op.intAttr("axis"));
  totals.shape.push_back(productOf(op.axesAttr("axes")));
  if (op.operandType(1) == totals) return result;
  diag.emit(op.range(), diag::UpdatesShape, printType(op.operandType(1)), printType(totals))
      .label(op.operandRange(1), "these totals");
  return std::nullopt;
}

static void cumsumPartsFactors(const OpView& op, FactorBuilder& factors) {
  scanFactors(op, factors);
}

static std::optional<std::string> checkCumsumParts(const OpView& op) {
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  const Sharding& x = *op.function().value(op.op().operands[0]).sharding;
  if (x.dims[axis] != op.axesAttr("axes")) return "dim " + std::to_string(axis) + " is not split over `axes`";
  for (const PartialAxis& pending : x.partial) {
    if (pending.reduction != Reduction::Sum) return "the operand is pending, but not as a sum";
  }
  Sharding totals = x;
  totals.dims.erase(totals.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  totals.dims.emplace_back();
  if (*op.function().value(op.op().operands[1]).sharding != totals)
    return "totals are not `" + printSharding(op.mesh(), totals) + "`";
  if (*op.function().value(op.op().results[0]).sharding != x)
    return "the result is not `" + printSharding(op.mesh(), x) + "`";
  return std::nullopt;
}

static void evaluateCumsumParts(const OpView& op, EvalFrame& frame) {
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  const bool reverse = op.boolAttr("reverse");
  const Tensor& totals = frame.in(1);
  const DType dtype = frame.out().type.dtype;
  const std::int64_t parts = productOf(op.axesAttr("axes"));
  const std::int64_t size = partSize(op.operandType(0).shape[axis], parts);
  const Number first = op.boolAttr("exclusive") ? Number{} : identityOf(Reduction::Sum, dtype);
  evaluateScan(op, frame, [&](const Index& lane) {
    const std::int64_t own = frame.resultTiles[0][axis].offset / size;
    Index index = lane;
    index.erase(index.begin() + static_cast<std::ptrdiff_t>(axis));
    index.push_back(0);
    Number sum = first;
    for (std::int64_t k = 0; k < (reverse ? parts - 1 - own : own); ++k) {
      index.back() = reverse ? parts - 1 - k : k;
      const Number total = numberAt(totals, placeOf(index, totals, frame.operandTiles[1]));
      sum = reduceStep(Reduction::Sum, dtype, sum, total, true);
    }
    return sum;
  });
}

static constexpr AttrSpec kAttributes[] = {{"axis", AttrKind::Int},
                                           {"reverse", AttrKind::Bool, true},
                                           {"exclusive", AttrKind::Bool, true},
                                           {"axes", AttrKind::Axes}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[_, a]}, %t: f32[2, 2] {[_, _]}",
     .ir = "%y = cumsum_parts %x, %t {axis = 1, axes = [a]} : f32[2, 3] {[_, a]}",
     .given = "[[1, 2, 3], [4, 5, 6]]; [[3, 3], [9, 6]]",
     .expected = "[[1, 3, 6], [4, 9, 15]]"},
    {.args = "%x: i32[5] {[(a, b)]}, %t: i32[4] {[_]}",
     .ir = "%y = cumsum_parts %x, %t {axis = 0, reverse = true, exclusive = true, axes = [a, b]} : i32[5] {[(a, b)]}",
     .given = "[1, 2, 3, 4, 5]; [3, 7, 5, 0]",
     .expected = "[14, 12, 9, 5, 0]"},
};

constinit const OpDef kCumsumPartsOp = {
    .name = "cumsum_parts",
    .doc = "cumsum of `x` along a split `axis`: each part begins with the `totals` of the parts before it",
    .operands = OperandSpec{"x, totals", 2, 2},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferCumsumParts,
    .factors = &cumsumPartsFactors,
    .linearity = Joint{.over = only(Reduction::Sum), .which = allOperands},
    .tails = TailsMasked{"the axis runs to its live end"},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkCumsumParts, .work = TileWork::Local},
    .evaluate = &evaluateCumsumParts,
    .lower = LowerScan{},
};

}  // namespace gshard
