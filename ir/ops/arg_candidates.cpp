// arg_candidates: each part's own extreme (or its `k` largest) and the GLOBAL indices along a split axis; argmax or
// top_k over the candidates finishes it.
#include <algorithm>

#include "ir/arg_reduce.h"
#include "ir/evaluate_loops.h"

namespace gshard {

static std::optional<ResultTypes> inferCandidates(const OpView& op, DiagSink& diag) {
  const std::optional<ResultTypes> indices = inferArgReduce(op, diag);
  if (!indices) return std::nullopt;
  const std::int64_t parts = productOf(op.axesAttr("axes")), kept = intAttrOr(op, "k", 1);
  const std::int64_t part = partSize(op.operandType(0).shape[static_cast<std::size_t>(op.intAttr("axis"))], parts);
  const bool few = kept >= 1 && kept <= part;
  if (!few || (op.hasAttr("k") && !op.boolAttr("max"))) {
    diag.emit(op.range(), diag::IrAttribute, "k", "arg_candidates",
              few ? "is of the largest alone"
                  : "is " + std::to_string(kept) + ", but a part has " + std::to_string(part) + " elements")
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  Type index = indices->front();
  index.shape.push_back(parts * kept);
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

// Short and empty parts are the last ones: what fills their places loses against every element, since those come first.
static void evaluateCandidates(const OpView& op, EvalFrame& frame) {
  const Tensor& x = frame.in(0);
  const std::int64_t axis = op.intAttr("axis");
  const std::int64_t kept = intAttrOr(op, "k", 1);
  const bool max = op.boolAttr("max");
  const std::int64_t size = op.operandType(0).shape[static_cast<std::size_t>(axis)];
  const std::int64_t parts = productOf(op.axesAttr("axes"));
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    Index index = toGlobal(local, frame.resultTiles[0]);
    const Tile part = tileOf(size, parts, index.back() / kept);
    const std::int64_t rank = index.back() % kept;
    index.pop_back();
    index.insert(index.begin() + axis, 0);
    std::vector<std::pair<Number, std::int64_t>> row;
    for (std::int64_t i = part.offset; i < part.offset + part.live; ++i) {
      index[static_cast<std::size_t>(axis)] = i;
      row.emplace_back(numberAt(x, placeOf(index, x, frame.operandTiles[0])), i);
    }
    std::stable_sort(row.begin(), row.end(), [&](const auto& a, const auto& b) {
      return x.isFloat() ? winsOver(max, a.first.real, b.first.real) : winsOver(max, a.first.integer, b.first.integer);
    });
    row.resize(static_cast<std::size_t>(kept),
               {identityOf(max ? Reduction::Max : Reduction::Min, x.type.dtype), size - 1});
    const std::int64_t place = flatOf(local, frame.out().type.shape);
    storeNumber(frame.out(0), place, row[static_cast<std::size_t>(rank)].first);
    frame.out(1).ints[static_cast<std::size_t>(place)] = row[static_cast<std::size_t>(rank)].second;
  });
}

static constexpr AttrSpec kAttributes[] = {
    {"axis", AttrKind::Int}, {"k", AttrKind::Int, true}, {"max", AttrKind::Bool}, {"axes", AttrKind::Axes}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[_, a]}",
     .ir = "%v, %i = arg_candidates %x {axis = 1, max = true, axes = [a]} : f32[2, 2] {[_, a]}, i32[2, 2] {[_, a]}",
     .given = "[[2, 1, 3], [4, 6, 5]]",
     .expected = "[[2, 3], [6, 5]]; [[0, 2], [1, 2]]"},
    {.args = "%x: f32[7] {[(a, b)]}",
     .ir = "%v, %i = arg_candidates %x {axis = 0, k = 2, max = true, axes = [a, b]} : f32[8] {[(a, b)]}, i32[8] {[(a, "
           "b)]}",
     .given = "[1, 7, nan, -inf, 7, 9, -inf]",
     .expected = "[7, 1, nan, -inf, 9, 7, -inf, -inf]; [1, 0, 2, 3, 5, 4, 6, 6]"},
};

constinit const OpDef kArgCandidatesOp = {
    .name = "arg_candidates",
    .doc =
        "of each part of the split `axis`, its largest (or least) value, or its `k` largest ones in order, and their "
        "global "
        "indices",
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
