// arg_candidates: each part's own extreme and its GLOBAL index along a split axis; argmax over the candidates finishes
// it.
#include "ir/arg_reduce.h"
#include "ir/evaluate_loops.h"

namespace gshard {

static std::optional<ResultTypes> inferCandidates(const OpView& op, DiagSink& diag) {
  const std::optional<ResultTypes> indices = inferArgReduce(op, diag);
  if (!indices) return std::nullopt;
  Type index = indices->front();
  index.shape.push_back(productOf(op.axesAttr("axes")));
  return ResultTypes{Type{op.operandType(0).dtype, index.shape}, index};
}

static void candidatesFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  std::int64_t at = 0;
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const bool isAxis = dim == op.intAttr("axis");
    const int factor =
        factors.add(isAxis ? FactorKind::Candidates : FactorKind::Pass, x.shape[static_cast<std::size_t>(dim)]);
    factors.operandDim(0, dim, factor);
    for (std::size_t r = 0; r < 2; ++r) factors.resultDim(r, isAxis ? x.rank() - 1 : at, factor);
    if (!isAxis) ++at;
  }
}

static std::optional<std::string> checkCandidates(const OpView& op) {
  const Sharding& x = shardingOf(op, op.op().operands[0]);
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  if (!x.partial.empty()) return "the operand is partial";
  if (x.dims[axis] != op.axesAttr("axes")) return "dim " + std::to_string(axis) + " is not split over `axes`";
  Sharding expected = x;
  expected.dims.erase(expected.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  expected.dims.push_back(x.dims[axis]);
  for (const ValueId result : op.op().results) {
    if (shardingOf(op, result) != expected) return "results are not `" + printSharding(op.mesh(), expected) + "`";
  }
  return std::nullopt;
}

static void evaluateCandidates(const OpView& op, EvalFrame& frame) {
  const Tensor& x = frame.in(0);
  const std::int64_t axis = op.intAttr("axis");
  const bool max = op.boolAttr("max");
  const std::int64_t size = op.operandType(0).shape[static_cast<std::size_t>(axis)];
  const std::int64_t parts = productOf(op.axesAttr("axes"));
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    Index index = toGlobal(local, frame.resultTiles[0]);
    const Tile part = tileOf(size, parts, index.back());
    index.pop_back();
    index.insert(index.begin() + axis, 0);
    // An empty part loses against every other: part 0 is never empty and comes first.
    Number best = identityOf(max ? Reduction::Max : Reduction::Min, x.type.dtype);
    std::int64_t bestIndex = size - 1;
    for (std::int64_t i = part.offset; i < part.offset + part.live; ++i) {
      index[static_cast<std::size_t>(axis)] = i;
      const Number number = numberAt(x, placeOf(index, x, frame.operandTiles[0]));
      const bool wins =
          x.isFloat() ? winsOver(max, number.real, best.real) : winsOver(max, number.integer, best.integer);
      if (!wins && i > part.offset) continue;
      bestIndex = i;
      best = number;
    }
    const std::int64_t place = flatOf(local, frame.out().type.shape);
    storeNumber(frame.out(0), place, best);
    frame.out(1).ints[static_cast<std::size_t>(place)] = bestIndex;
  });
}

static constexpr AttrSpec kAttributes[] = {{"axis", AttrKind::Int}, {"max", AttrKind::Bool}, {"axes", AttrKind::Axes}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[_, a]}",
     .ir = "%v, %i = arg_candidates %x {axis = 1, max = true, axes = [a]} : f32[2, 2] {[_, a]}, i32[2, 2] {[_, a]}",
     .given = "[[2, 1, 3], [4, 6, 5]]",
     .expected = "[[2, 3], [6, 5]]; [[0, 2], [1, 2]]"},
};

constinit const OpDef kArgCandidatesOp = {
    .name = "arg_candidates",
    .doc = "of each part of the split `axis`, its largest (or least) value and that one's global index",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferCandidates,
    .factors = &candidatesFactors,
    .linearity = NotLinear{},
    .tails = TailsMasked{"the axis runs to its live end"},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkCandidates, .work = TileWork::Local},
    .evaluate = &evaluateCandidates,
    .lower = LowerArgReduce{},
};

}  // namespace gshard
