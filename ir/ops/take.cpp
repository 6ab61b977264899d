// take: rows of x by index along `axis`, with leading batch dims in common: embeddings, labels' logits.
#include <algorithm>

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferTake(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const Type& index = op.operandType(1);
  const std::int64_t axis = op.intAttr("axis");
  const std::int64_t batch = intAttrOr(op, "batch", 0);
  if (!checkIndexDtype(op, diag, 1) || !checkAxis(op, diag, axis, x)) return std::nullopt;
  const bool fits = batch >= 0 && batch <= axis && batch <= index.rank() &&
                    std::equal(x.shape.begin(), x.shape.begin() + batch, index.shape.begin());
  if (!fits) {
    diag.emit(op.range(), diag::TakeBatch, batch, batch, printType(x), printType(index))
        .label(op.operandRange(1), "these indices");
    return std::nullopt;
  }
  Type result{x.dtype, {x.shape.begin(), x.shape.begin() + axis}};
  result.shape.insert(result.shape.end(), index.shape.begin() + batch, index.shape.end());
  result.shape.insert(result.shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  if (!checkSizes(op, diag, result)) return std::nullopt;
  if (x.shape[static_cast<std::size_t>(axis)] == 0 && index.elements() > 0) {
    diag.emit(op.range(), diag::EmptyReduction, "take", axis, printType(x)).label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  return ResultTypes{result};
}

static void takeFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  const Type& index = op.operandType(1);
  const std::int64_t axis = op.intAttr("axis");
  const std::int64_t batch = intAttrOr(op, "batch", 0);
  const std::int64_t indexDims = index.rank() - batch;
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const std::int64_t size = x.shape[static_cast<std::size_t>(dim)];
    if (dim == axis) {
      const Reduction reduction = x.dtype == DType::Bool ? Reduction::Any : Reduction::Sum;
      factors.operandDim(0, dim, factors.add(FactorKind::Lookup, size, "", "", reduction));
      continue;
    }
    const int factor = factors.add(FactorKind::Pass, size);
    factors.operandDim(0, dim, factor);
    if (dim < batch) factors.operandDim(1, dim, factor);
    factors.resultDim(0, dim < axis ? dim : dim - 1 + indexDims, factor);
  }
  for (std::int64_t dim = batch; dim < index.rank(); ++dim) {
    const int factor = factors.add(FactorKind::Pass, index.shape[static_cast<std::size_t>(dim)]);
    factors.operandDim(1, dim, factor);
    factors.resultDim(0, axis + dim - batch, factor);
  }
}

static void takeVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const Type x = op.operandType(0);
  const Type wide{accumulatorOf(x.dtype), x.shape};
  const ValueId updates = b.cast(gradients[0], wide.dtype, op.range());
  const ValueId sum = b.create(OpKind::ScatterAdd, {zerosLike(b, wide, op.range()), op.op().operands[1], updates},
                               {{"axis", op.intAttr("axis")}, {"batch", intAttrOr(op, "batch", 0)}}, op.range());
  b.accumulate(0, b.cast(sum, x.dtype, op.range()));
}

static void evaluateTake(const OpView& op, EvalFrame& frame) {
  const Tensor& x = frame.in(0);
  const Tensor& indices = frame.in(1);
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  const std::size_t batch = static_cast<std::size_t>(intAttrOr(op, "batch", 0));
  const std::size_t indexDims = indices.type.shape.size() - batch;
  const std::int64_t size = op.operandType(0).shape[axis];
  const Number nothing = identityOf(x.type.dtype == DType::Bool ? Reduction::Any : Reduction::Sum, x.type.dtype);
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const Index global = toGlobal(local, frame.resultTiles[0]);
    Index at(global.begin(), global.begin() + static_cast<std::ptrdiff_t>(batch));
    const auto within = global.begin() + static_cast<std::ptrdiff_t>(axis);
    at.insert(at.end(), within, within + static_cast<std::ptrdiff_t>(indexDims));
    const std::int64_t wanted = indices.ints[static_cast<std::size_t>(placeOf(at, indices, frame.operandTiles[1]))];
    const std::int64_t chosen = std::clamp<std::int64_t>(wanted, 0, size - 1);
    if (chosen != wanted) {
      frame.fault(flatOf(at, op.operandType(1).shape), "index " + std::to_string(wanted) + " is out of range for dim " +
                                                           std::to_string(axis) + " of size " + std::to_string(size));
    }
    Index source(global.begin(), within);
    source.push_back(chosen);
    source.insert(source.end(), within + static_cast<std::ptrdiff_t>(indexDims), global.end());
    const std::int64_t place = flatOf(local, frame.out().type.shape);
    const Tile& rows = frame.operandTiles[0][axis];
    if (chosen >= rows.offset && chosen < rows.offset + rows.live) {
      copyElement(x, placeOf(source, x, frame.operandTiles[0]), frame.out(), place);
    } else {
      storeNumber(frame.out(), place, nothing);  // another part of a split table has it
    }
  });
}

static constexpr AttrSpec kAttributes[] = {{"axis", AttrKind::Int}, {"batch", AttrKind::Int, true}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[3, 2], %i: i32[4]",
     .ir = "%y = take %x, %i {axis = 0} : f32[4, 2]",
     .given = "[[1, 2], [3, 4], [5, 6]]; [2, 0, 0, 1]",
     .expected = "[[5, 6], [1, 2], [1, 2], [3, 4]]",
     .differentiable = true},
    {.args = "%x: f32[2, 3], %i: i32[2]",
     .ir = "%y = take %x, %i {axis = 1, batch = 1} : f32[2]",
     .given = "[[1, 2, 3], [4, 5, 6]]; [2, 0]",
     .expected = "[3, 4]",
     .differentiable = true},
    {.args = "%x: f32[5, 7, 3], %i: i32[5, 2]",
     .ir = "%y = take %x, %i {axis = 1, batch = 1} : f32[5, 2, 3]",
     .values = {0, 6},
     .differentiable = true},
    {.args = "%x: i32[7, 5], %i: i64[3, 2]", .ir = "%y = take %x, %i {axis = 1} : i32[7, 3, 2]", .values = {0, 4}},
    {.args = "%x: bool[7], %i: i32[5]", .ir = "%y = take %x, %i {axis = 0} : bool[5]", .values = {0, 1}},
};

constinit const OpDef kTakeOp = {
    .name = "take",
    .doc =
        "slices of `x` along `axis` chosen by `index`; the first `batch` dims are common to both; out of range is a "
        "run-time error",
    .operands = OperandSpec{"x, index", 2, 2},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferTake,
    .factors = &takeFactors,
    .linearity = Joint{.over = anyReduction, .which = OperandMask{1}},
    .tails = TailsMasked{"an index beyond the live end is never read"},
    .gradient = Vjp{&takeVjp},
    .localize = UsesOffsets{"a part of a split table answers for its own rows only"},
    .evaluate = &evaluateTake,
    .lower = LowerGather{},
};

}  // namespace gshard
