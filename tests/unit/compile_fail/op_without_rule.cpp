// An OpDef that forgets a rule does not compile. With GSHARD_COMPLETE it has all of them and does, so that the failure
// is known to come from the missing rule alone.
#include "ir/op_rules.h"

namespace gshard {

static constexpr Example kExamples[] = {{.args = "", .ir = ""}};

constinit const OpDef kForgetfulOp = {
    .name = "forgetful",
    .doc = "an op whose author forgot its linearity",
    .operands = OperandSpec{"x"},
    .attributes = std::span<const AttrSpec>{},
    .examples = kExamples,
    .infer = &inferIdentity,
    .factors = &passThrough,
#ifdef GSHARD_COMPLETE
    .linearity = NotLinear{},
#endif
    .tails = TailsIgnored{},
    .gradient = Vjp{&noGradient},
    .localize = SameOp{},
    .evaluate = &evaluateIdentity,
    .lower = LowerAlias{},
};

}  // namespace gshard
