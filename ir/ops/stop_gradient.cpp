// stop_gradient: the same value, through which no gradient flows.
#include "ir/op_rules.h"

namespace gshard {

static constexpr Example kExamples[] = {
    {.args = "%x: f32[3]", .ir = "%y = stop_gradient %x : f32[3]", .given = "[1, 2, 3]", .expected = "[1, 2, 3]"},
    {.args = "%x: i32[5, 7]", .ir = "%y = stop_gradient %x : i32[5, 7]", .values = {-9, 9}},
};

constinit const OpDef kStopGradientOp = {
    .name = "stop_gradient",
    .doc = "`x`, taken as a constant by gradients",
    .operands = OperandSpec{"x"},
    .attributes = std::span<const AttrSpec>{},
    .examples = kExamples,
    .infer = &inferIdentity,
    .factors = &passThrough,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = Vjp{&noGradient},
    .localize = SameOp{},
    .evaluate = &evaluateIdentity,
    .lower = LowerAlias{},
};

}  // namespace gshard
