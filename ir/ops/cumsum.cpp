// cumsum: running sum along one axis. Not a contraction, because as one it would cost n^2.
#include "ir/scan_op.h"

namespace gshard {

static void cumsumVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  // From the other end: an attribute, since two `reverse` ops would move a split axis twice.
  const ValueId sums = b.create(
      OpKind::Cumsum, {gradients[0]},
      {{"axis", op.intAttr("axis")}, {"reverse", !op.boolAttr("reverse")}, {"exclusive", op.boolAttr("exclusive")}},
      op.range());
  b.accumulate(0, b.cast(sums, op.operandType(0).dtype, op.range()));
}

static void evaluateCumsum(const OpView& op, EvalFrame& frame) {
  // -0 keeps the sign of a first -0. What comes before the first element is a sum of nothing: +0.
  const Number start = op.boolAttr("exclusive") ? Number{} : identityOf(Reduction::Sum, frame.out().type.dtype);
  evaluateScan(op, frame, [&](const Index&) { return start; });
}

static constexpr AttrSpec kAttributes[] = {
    {"axis", AttrKind::Int}, {"reverse", AttrKind::Bool, true}, {"exclusive", AttrKind::Bool, true}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3]",
     .ir = "%y = cumsum %x {axis = 1} : f32[2, 3]",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 3, 6], [4, 9, 15]]",
     .differentiable = true},
    {.args = "%x: f32[2, 3]",
     .ir = "%y = cumsum %x {axis = 0, exclusive = true} : f32[2, 3]",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[0, 0, 0], [1, 2, 3]]",
     .differentiable = true},
    {.args = "%x: i32[14]",
     .ir = "%y = cumsum %x {axis = 0, reverse = true} : i32[14]",
     .given = "[1, 4, 2, 0, 3, 1, 4, 2, 0, 3, 1, 4, 2, 0]",
     .expected = "[27, 26, 22, 20, 20, 17, 16, 12, 10, 10, 7, 6, 2, 0]"},
    {.args = "%x: f32[3]",
     .ir = "%y = cumsum %x {axis = 0} : f32[3]",
     .given = "[-0, nan, 1]",
     .expected = "[-0, nan, nan]"},
    {.args = "%x: f32[5, 7]",
     .ir = "%y = cumsum %x {axis = 1, reverse = true, exclusive = true} : f32[5, 7]",
     .values = {-1, 1},
     .tolerance = 1e-6,
     .differentiable = true},
    {.args = "%x: f64[7, 2, 40]",
     .ir = "%y = cumsum %x {axis = 0} : f64[7, 2, 40]",
     .values = {-1, 1},
     .tolerance = 1e-14,
     .differentiable = true},
    {.args = "%x: bf16[3, 5]", .ir = "%y = cumsum %x {axis = 1} : f32[3, 5]", .values = {-4, 4}, .tolerance = 1e-6},
    {.args = "%x: i64[3, 0]", .ir = "%y = cumsum %x {axis = 1} : i64[3, 0]", .values = {-9, 9}},
    {.args = "%x: i32[7]", .ir = "%y = cumsum %x {axis = 0, exclusive = true} : i32[7]", .values = {-9, 9}},
};

constinit const OpDef kCumsumOp = {
    .name = "cumsum",
    .doc =
        "running sum of `x` along `axis`, from the end with `reverse`, without the element itself with `exclusive`; "
        "f32 for f16 and bf16",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferScan,
    .factors = &scanFactors,
    .linearity = Joint{.over = only(Reduction::Sum), .which = allOperands},
    .tails = TailsMasked{"the axis runs to its live end"},
    .gradient = Vjp{&cumsumVjp},
    .localize = SameOp{},
    .evaluate = &evaluateCumsum,
    .lower = LowerScan{},
};

}  // namespace gshard
