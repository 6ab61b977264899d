// scatter_add: adds updates to slices of x chosen by index; the gradient of take. Adds go in the order of flat indices.
#include <algorithm>

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferScatterAdd(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const Type& index = op.operandType(1);
  const std::int64_t axis = op.intAttr("axis");
  const std::int64_t batch = intAttrOr(op, "batch", 0);
  if (!checkIndexDtype(op, diag, 1) || !checkAxis(op, diag, axis, x)) return std::nullopt;
  if (x.dtype == DType::Bool || accumulatorOf(x.dtype) != x.dtype) {
    diag.emit(op.range(), diag::DtypeNotAccepted, "scatter_add", "f32, f64 and integers", printType(x))
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  const bool fits = batch >= 0 && batch <= axis && batch <= index.rank() &&
                    std::equal(x.shape.begin(), x.shape.begin() + batch, index.shape.begin());
  if (!fits) {
    diag.emit(op.range(), diag::TakeBatch, batch, batch, printType(x), printType(index))
        .label(op.operandRange(1), "these indices");
    return std::nullopt;
  }
  Type updates{x.dtype, {x.shape.begin(), x.shape.begin() + axis}};
  updates.shape.insert(updates.shape.end(), index.shape.begin() + batch, index.shape.end());
  updates.shape.insert(updates.shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  if (op.operandType(2) != updates) {
    diag.emit(op.range(), diag::UpdatesShape, printType(op.operandType(2)), printType(updates))
        .label(op.operandRange(2), "these updates");
    return std::nullopt;
  }
  if (x.shape[static_cast<std::size_t>(axis)] == 0 && index.elements() > 0) {
    diag.emit(op.range(), diag::EmptyReduction, "scatter_add", axis, printType(x))
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  return ResultTypes{x};
}

static void scatterAddFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  const Type& index = op.operandType(1);
  const std::int64_t axis = op.intAttr("axis");
  const std::int64_t batch = intAttrOr(op, "batch", 0);
  const std::int64_t indexDims = index.rank() - batch;
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const FactorKind kind = dim == axis ? FactorKind::Lookup : FactorKind::Pass;
    const int factor = factors.add(kind, x.shape[static_cast<std::size_t>(dim)]);
    factors.operandDim(0, dim, factor);
    factors.resultDim(0, dim, factor);
    if (dim == axis) continue;
    if (dim < batch) factors.operandDim(1, dim, factor);
    factors.operandDim(2, dim < axis ? dim : dim - 1 + indexDims, factor);
  }
  for (std::int64_t dim = batch; dim < index.rank(); ++dim) {
    const int factor = factors.add(FactorKind::Reduce, index.shape[static_cast<std::size_t>(dim)]);
    factors.othersPartial(factor);  // each part adds its share to a share of x
    factors.operandDim(1, dim, factor);
    factors.operandDim(2, axis + dim - batch, factor);
  }
}

static void scatterAddVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  b.accumulate(0, gradients[0]);
  if (!b.wants(2)) return;
  b.accumulate(2, b.create(OpKind::Take, {gradients[0], op.op().operands[1]},
                           {{"axis", op.intAttr("axis")}, {"batch", intAttrOr(op, "batch", 0)}}, op.range()));
}

static void evaluateScatterAdd(const OpView& op, EvalFrame& frame) {
  evaluateIdentity(op, frame);
  const Tensor& indices = frame.in(1);
  const Tensor& updates = frame.in(2);
  Tensor& out = frame.out();
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  const std::size_t batch = static_cast<std::size_t>(intAttrOr(op, "batch", 0));
  const std::size_t indexDims = indices.type.shape.size() - batch;
  const std::int64_t size = op.operandType(0).shape[axis];
  // Row-major over updates is ascending in the flat index for every place that is added to.
  forEachIndex(liveSizes(frame.operandTiles[2]), [&](const Index& local) {
    const Index global = toGlobal(local, frame.operandTiles[2]);
    Index at(global.begin(), global.begin() + static_cast<std::ptrdiff_t>(batch));
    const auto within = global.begin() + static_cast<std::ptrdiff_t>(axis);
    at.insert(at.end(), within, within + static_cast<std::ptrdiff_t>(indexDims));
    const std::int64_t wanted = indices.ints[static_cast<std::size_t>(placeOf(at, indices, frame.operandTiles[1]))];
    const std::int64_t chosen = std::clamp<std::int64_t>(wanted, 0, size - 1);
    if (chosen != wanted) {
      frame.fault(flatOf(at, op.operandType(1).shape), "index " + std::to_string(wanted) + " is out of range for dim " +
                                                           std::to_string(axis) + " of size " + std::to_string(size));
    }
    const Tile& rows = frame.resultTiles[0][axis];
    if (chosen < rows.offset || chosen >= rows.offset + rows.live) return;  // another part holds that row
    Index target(global.begin(), within);
    target.push_back(chosen);
    target.insert(target.end(), within + static_cast<std::ptrdiff_t>(indexDims), global.end());
    const std::int64_t place = placeOf(target, out, frame.resultTiles[0]);
    const Number update = numberAt(updates, flatOf(local, updates.type.shape));
    storeNumber(out, place, reduceStep(Reduction::Sum, out.type.dtype, numberAt(out, place), update, true));
  });
}

static constexpr AttrSpec kAttributes[] = {{"axis", AttrKind::Int}, {"batch", AttrKind::Int, true}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[3, 2], %i: i32[4], %u: f32[4, 2]",
     .ir = "%y = scatter_add %x, %i, %u {axis = 0} : f32[3, 2]",
     .given = "[[0, 0], [1, 1], [0, 0]]; [2, 0, 0, 1]; [[1, 2], [3, 4], [5, 6], [7, 8]]",
     .expected = "[[8, 10], [8, 9], [1, 2]]",
     .differentiable = true},
    {.args = "%x: f32[2, 3], %i: i32[2], %u: f32[2]",
     .ir = "%y = scatter_add %x, %i, %u {axis = 1, batch = 1} : f32[2, 3]",
     .given = "[[0, 0, 0], [0, 0, 0]]; [2, 0]; [5, 7]",
     .expected = "[[0, 0, 5], [7, 0, 0]]",
     .differentiable = true},
    {.args = "%x: f32[5, 7, 3], %i: i32[5, 2], %u: f32[5, 2, 3]",
     .ir = "%y = scatter_add %x, %i, %u {axis = 1, batch = 1} : f32[5, 7, 3]",
     .values = {0, 6},
     .tolerance = 1e-6,
     .differentiable = true},
    {.args = "%x: i32[7, 5], %i: i64[3, 2], %u: i32[7, 3, 2]",
     .ir = "%y = scatter_add %x, %i, %u {axis = 1} : i32[7, 5]",
     .values = {0, 4}},
};

constinit const OpDef kScatterAddOp = {
    .name = "scatter_add",
    .doc = "`x` with `updates` added to its slices along `axis` chosen by `index`; equal indices add up in order",
    .operands = OperandSpec{"x, index, updates", 3, 3},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferScatterAdd,
    .factors = &scatterAddFactors,
    .linearity = Joint{.over = only(Reduction::Sum), .which = OperandMask{0b101}},
    .tails = TailsMasked{"updates run to their live ends"},
    .gradient = Vjp{&scatterAddVjp},
    .localize = UsesOffsets{"a part of a split dim takes the updates of its own rows only"},
    .evaluate = &evaluateScatterAdd,
    .lower = LowerScatter{},
};

}  // namespace gshard
