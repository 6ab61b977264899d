// argmax: the index of the largest, NaN the largest of all, ties to the lowest index. A pair reduction, so not a case
// of reduce.
#include "ir/arg_reduce.h"

namespace gshard {

static void evaluateArgmax(const OpView& op, EvalFrame& frame) {
  evaluateArgReduce(op, frame, true);
}

static constexpr AttrSpec kAttributes[] = {{"axis", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3]",
     .ir = "%y = argmax %x {axis = 1} : i32[2]",
     .given = "[[2, 1, 3], [6, 4, 6]]",
     .expected = "[2, 0]"},
    {.args = "%x: f32[4]", .ir = "%y = argmax %x {axis = 0} : i32", .given = "[1, nan, 3, nan]", .expected = "1"},
    {.args = "%x: f32[5, 7, 3]", .ir = "%y = argmax %x {axis = 1} : i32[5, 3]", .values = {-4, 4}},
    {.args = "%x: i32[7, 5]", .ir = "%y = argmax %x {axis = 0} : i32[5]", .values = {-3, 3}},
};

constinit const OpDef kArgmaxOp = {
    .name = "argmax",
    .doc = "index along `axis` of the largest, NaN the largest of all; of equals the lowest index",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferArgReduce,
    .factors = &argReduceFactors,
    .linearity = NotLinear{},
    .tails = TailsMasked{"the axis runs to its live end"},
    .gradient = NotDifferentiable{"an index does not change with the values"},
    .localize = SameOp{},
    .evaluate = &evaluateArgmax,
    .lower = LowerArgReduce{},
};

}  // namespace gshard
