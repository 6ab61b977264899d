// dim_size: how many elements the named dims hold in the whole program. An op, because the rows of some functions are
// set at run time; folded to a constant everywhere else.
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferDimSize(const OpView& op, DiagSink& diag) {
  if (!checkDimList(op, diag, op.intsAttr("dims"), op.operandType(0))) return std::nullopt;
  return ResultTypes{Type{op.dtypeAttr("dtype"), {}}};
}

// Nothing of x is read: its dims may be split in any way.
static void dimSizeFactors(const OpView& op, FactorBuilder& factors) {
  const std::vector<std::int64_t>& shape = op.operandType(0).shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    factors.operandDim(0, static_cast<std::int64_t>(i), factors.add(FactorKind::Pass, shape[i]));
  }
}

static void evaluateDimSize(const OpView& op, EvalFrame& frame) {
  const Value& x = op.function().value(op.op().operands[0]);
  std::int64_t product = 1;
  for (const std::int64_t dim : op.intsAttr("dims")) {
    const std::int64_t size = x.type.shape[static_cast<std::size_t>(dim)];
    const bool isRows = dim == x.rowDim && frame.totalRows > 0 && op.function().rows > 0;
    product *= isRows ? size / op.function().rows * frame.totalRows : size;
  }
  frame.out().setNumber(0, static_cast<double>(product));
}

static constexpr AttrSpec kAttributes[] = {{"dims", AttrKind::Ints},
                                           {"dtype", AttrKind::DTypeName, false, AttrPlace::ResultDType}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[5, 7, 3]", .ir = "%y = dim_size %x {dims = [0, 2]} : f32", .values = {-1, 1}},
    {.args = "%x: f32[2, 3]",
     .ir = "%y = dim_size %x {dims = [1]} : i32",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "3"},
};

constinit const OpDef kDimSizeOp = {
    .name = "dim_size",
    .doc = "product of the sizes of `dims` of `x`, whose elements are not read",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferDimSize,
    .factors = &dimSizeFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = Vjp{&noGradient},
    .localize = SameOp{},
    .evaluate = &evaluateDimSize,
    .lower = LowerGenerate{},
};

}  // namespace gshard
