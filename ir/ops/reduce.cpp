// reduce: sum, prod, max, min, any, all over whole dims.
#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"
#include "ir/ops/reduction_of.h"
#include "support/check.h"

namespace gshard {

static std::optional<ResultTypes> inferReduce(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const std::optional<Reduction> reduction = reductionFromName(op.stringAttr("fn"));
  if (!reduction) {
    diag.emit(op.range(), diag::IrAttribute, "fn", "reduce", "is none of sum, prod, max, min, any, all");
    return std::nullopt;
  }
  const bool isLogical = *reduction == Reduction::Any || *reduction == Reduction::All;
  if (isLogical != (x.dtype == DType::Bool)) {
    diag.emit(op.range(), diag::DtypeNotAccepted, op.stringAttr("fn"), isLogical ? "`bool`" : "numbers", printType(x))
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  const std::vector<std::int64_t>& dims = op.intsAttr("dims");
  if (!checkDimList(op, diag, dims, x)) return std::nullopt;
  Type result{*reduction == Reduction::Sum ? accumulatorOf(x.dtype) : x.dtype, {}};
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const std::int64_t size = x.shape[static_cast<std::size_t>(dim)];
    if (!contains(dims, dim)) {
      result.shape.push_back(size);
    } else if (size == 0 && (*reduction == Reduction::Max || *reduction == Reduction::Min)) {
      diag.emit(op.range(), diag::EmptyReduction, op.stringAttr("fn"), dim, printType(x))
          .label(op.operandRange(0), "this operand");
      return std::nullopt;
    }
  }
  return ResultTypes{result};
}

static void reduceFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  std::int64_t at = 0;
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const std::int64_t size = x.shape[static_cast<std::size_t>(dim)];
    const bool reduced = contains(op.intsAttr("dims"), dim);
    const int factor =
        reduced ? factors.add(FactorKind::Reduce, size, "", "", reductionOf(op)) : factors.add(FactorKind::Pass, size);
    factors.operandDim(0, dim, factor);
    if (!reduced) factors.resultDim(0, at++, factor);
  }
}

static std::variant<NotLinear, Joint, Separate> reduceLinearity(const OpView& op) {
  return Joint{.over = only(reductionOf(op)), .which = allOperands};
}

// `value`, of the shape of x without `dims`, repeated along them.
static ValueId repeatAlong(GradBuilder& b, ValueId value, const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& dims, SourceRange range) {
  std::vector<std::int64_t> kept;
  for (std::int64_t dim = 0; dim < static_cast<std::int64_t>(shape.size()); ++dim) {
    if (!contains(dims, dim)) kept.push_back(dim);
  }
  return b.broadcast(value, shape, kept, range);
}

// To the lowest index: one dim at a time, from the first reduced one, among the extremes over the dims after it.
static ValueId extremeVjp(const OpView& op, ValueId gradient, GradBuilder& b) {
  const Reduction reduction = reductionOf(op);
  std::vector<std::int64_t> dims = op.intsAttr("dims");
  std::vector<ValueId> stages{op.op().operands[0]};  // stage k: the last k dims reduced
  for (std::size_t k = dims.size(); k-- > 1;)
    stages.push_back(b.reduce(reduction, stages.back(), {dims[k]}, op.range()));
  for (const std::int64_t dim : dims) {
    const ValueId source = stages.back();
    stages.pop_back();
    // All dims before `dim` are there again and those after it are still reduced away, so its place is `dim` itself.
    const std::vector<std::int64_t> shape = b.type(source).shape;
    const OpKind kind = reduction == Reduction::Max ? OpKind::Argmax : OpKind::Argmin;
    const ValueId chosen = b.create(kind, {source}, {{"axis", dim}}, op.range());
    const ValueId counter =
        b.create(OpKind::Iota, {}, {{"shape", shape}, {"dim", dim}, {"dtype", DType::I32}}, op.range());
    const ValueId isChosen = b.map("eq", {counter, repeatAlong(b, chosen, shape, {dim}, op.range())}, op.range());
    gradient = b.map(
        "where",
        {isChosen, repeatAlong(b, gradient, shape, {dim}, op.range()), b.scalar(b.type(gradient).dtype, 0, op.range())},
        op.range());
  }
  return gradient;
}

// Product of all others: without zeros product / x; with one zero it alone has a gradient; with more none has.
static ValueId productVjp(const OpView& op, ValueId gradient, GradBuilder& b) {
  const Type x = op.operandType(0);
  const std::vector<std::int64_t>& dims = op.intsAttr("dims");
  const SourceRange range = op.range();
  const ValueId one = b.scalar(x.dtype, 1, range);
  const ValueId none = b.scalar(x.dtype, 0, range);
  const ValueId isZero = b.map("eq", {op.op().operands[0], none}, range);
  const ValueId safe = b.map("where", {isZero, one, op.op().operands[0]}, range);
  const ValueId product = repeatAlong(b, b.reduce(Reduction::Prod, safe, dims, range), x.shape, dims, range);
  const ValueId ones = b.cast(isZero, DType::I32, range);
  const ValueId zeros = repeatAlong(b, b.reduce(Reduction::Sum, ones, dims, range), x.shape, dims, range);
  const ValueId otherZeros = b.map("sub", {zeros, ones}, range);
  const ValueId noOther = b.map("eq", {otherZeros, b.scalar(DType::I32, 0, range)}, range);
  const ValueId others = b.map("where", {noOther, b.map("div", {product, safe}, range), none}, range);
  return b.map("mul", {repeatAlong(b, gradient, x.shape, dims, range), others}, range);
}

static void reduceVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const Type x = op.operandType(0);
  switch (reductionOf(op)) {
    case Reduction::Sum:
      b.accumulate(0,
                   repeatAlong(b, b.cast(gradients[0], x.dtype, op.range()), x.shape, op.intsAttr("dims"), op.range()));
      return;
    case Reduction::Max:
    case Reduction::Min:
      b.accumulate(0, extremeVjp(op, gradients[0], b));
      return;
    case Reduction::Prod:
      b.accumulate(0, productVjp(op, gradients[0], b));
      return;
    case Reduction::Any:
    case Reduction::All:
      return;  // of bool: no gradient
  }
}

static void evaluateReduce(const OpView& op, EvalFrame& frame) {
  const Reduction reduction = reductionOf(op);
  const Tensor& x = frame.in(0);
  const std::vector<std::int64_t>& dims = op.intsAttr("dims");
  std::vector<std::int64_t> inner;
  std::int64_t elements = 1;  // that are reduced in the whole program
  for (const std::int64_t dim : dims) {
    inner.push_back(frame.operandTiles[0][static_cast<std::size_t>(dim)].live);
    elements *= op.operandType(0).shape[static_cast<std::size_t>(dim)];
  }
  Number start = identityOf(reduction, x.type.dtype);
  if (reduction == Reduction::Sum && elements == 0) start = {0, 0};
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const Index outer = toGlobal(local, frame.resultTiles[0]);
    Number sum = start;
    Index index(x.type.shape.size());
    forEachIndex(inner, [&](const Index& reduced) {
      std::size_t at = 0, within = 0;
      for (std::size_t dim = 0; dim < index.size(); ++dim) {
        const bool isReduced = contains(dims, static_cast<std::int64_t>(dim));
        index[dim] = isReduced ? reduced[within++] + frame.operandTiles[0][dim].offset : outer[at++];
      }
      sum = reduceStep(reduction, x.type.dtype, sum, numberAt(x, placeOf(index, x, frame.operandTiles[0])), false);
    });
    storeNumber(frame.out(), flatOf(local, frame.out().type.shape), sum);
  });
}

static constexpr AttrSpec kAttributes[] = {{"fn", AttrKind::String, false, AttrPlace::Word}, {"dims", AttrKind::Ints}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3]",
     .ir = "%y = reduce sum %x {dims = [1]} : f32[2]",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[6, 15]",
     .differentiable = true},
    {.args = "%x: f32[2, 3]",
     .ir = "%y = reduce max %x {dims = [0]} : f32[3]",
     .given = "[[1, 7, 3], [4, 5, 6]]",
     .expected = "[4, 7, 6]",
     .differentiable = true},
    {.args = "%x: f32[2, 3]",
     .ir = "%y = reduce prod %x {dims = [0, 1]} : f32",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "720",
     .differentiable = true},
    {.args = "%x: bool[2, 2]",
     .ir = "%y = reduce any %x {dims = [1]} : bool[2]",
     .given = "[[0, 0], [0, 1]]",
     .expected = "[0, 1]"},
    {.args = "%x: bool[2, 2]",
     .ir = "%y = reduce all %x {dims = [0]} : bool[2]",
     .given = "[[0, 1], [1, 1]]",
     .expected = "[0, 1]"},
    {.args = "%x: f32[2, 0]",
     .ir = "%y = reduce sum %x {dims = [1]} : f32[2]",
     .given = "[[], []]",
     .expected = "[0, 0]"},
    {.args = "%x: f32[5, 7, 3]",
     .ir = "%y = reduce sum %x {dims = [0, 2]} : f32[7]",
     .values = {-4, 4},
     .tolerance = 1e-6,
     .differentiable = true},
    {.args = "%x: f32[5, 7, 3]",
     .ir = "%y = reduce min %x {dims = [0, 2]} : f32[7]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: i32[5, 7]", .ir = "%y = reduce prod %x {dims = [0]} : i32[7]", .values = {-9, 9}},
    {.args = "%x: bool[5, 7]", .ir = "%y = reduce all %x {dims = [0, 1]} : bool", .values = {0, 1}},
    {.args = "%x: bf16[5, 3]", .ir = "%y = reduce sum %x {dims = [1]} : f32[5]", .values = {-4, 4}, .tolerance = 1e-6},
};

constinit const OpDef kReduceOp = {
    .name = "reduce",
    .doc = "sum, prod, max, min, any or all over `dims`; sums of f16 and bf16 are f32",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferReduce,
    .factors = &reduceFactors,
    .linearity = LinearityFn{&reduceLinearity},
    .tails = TailsMasked{"reduced dims run to their live ends"},
    .gradient = Vjp{&reduceVjp},
    .localize = SameOp{},
    .evaluate = &evaluateReduce,
    .lower = LowerReduce{},
};

}  // namespace gshard
