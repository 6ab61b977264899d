// argmin: the index of the least, a NaN before all, ties to the lowest index. A pair reduction, so not a case of
// reduce.
#include "ir/arg_reduce.h"

namespace gshard {

static void evaluateArgmin(const OpView& op, EvalFrame& frame) {
  evaluateArgReduce(op, frame, false);
}

static constexpr AttrSpec kAttributes[] = {{"axis", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3]",
     .ir = "%y = argmin %x {axis = 1} : i32[2]",
     .given = "[[2, 1, 3], [6, 4, 6]]",
     .expected = "[1, 1]"},
    {.args = "%x: f32[4]", .ir = "%y = argmin %x {axis = 0} : i32", .given = "[1, nan, 3, nan]", .expected = "1"},
    {.args = "%x: f32[5, 7, 3]", .ir = "%y = argmin %x {axis = 1} : i32[5, 3]", .values = {-4, 4}},
    {.args = "%x: i32[7, 5]", .ir = "%y = argmin %x {axis = 0} : i32[5]", .values = {-3, 3}},
};

constinit const OpDef kArgminOp = {
    .name = "argmin",
    .doc = "index along `axis` of the least, a NaN before all; of equals the lowest index",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferArgReduce,
    .factors = &argReduceFactors,
    .linearity = NotLinear{},
    .tails = TailsMasked{"the axis runs to its live end"},
    .gradient = NotDifferentiable{"an index does not change with the values"},
    .localize = SameOp{},
    .evaluate = &evaluateArgmin,
    .lower = LowerArgReduce{},
};

}  // namespace gshard
