// random_uniform: uniform in [low, high) as a pure function of (seed, site, step, GLOBAL element index).
#include "ir/random_op.h"

namespace gshard {

static void evaluateUniform(const OpView& op, EvalFrame& frame) {
  const DType dtype = frame.out().type.dtype;
  evaluateRandom(op, frame, [&](const RandomStream& stream, std::uint64_t index) {
    return randomUniform(stream, index, dtype, op.floatAttr("low"), op.floatAttr("high"));
  });
}

static constexpr AttrSpec kAttributes[] = {{"shape", AttrKind::Ints, false, AttrPlace::ResultShape},
                                           {"dtype", AttrKind::DTypeName, false, AttrPlace::ResultDType},
                                           {"site", AttrKind::Int},
                                           {"low", AttrKind::Float},
                                           {"high", AttrKind::Float}};
// Philox 4x32-10 of a zero key and counter is 6627e8d5 e169c58d bc57ac4c 9b00dbd8 (Random123, kat_vectors); its words
// >> 8 times 2^-24 are the numbers below.
static constexpr Example kExamples[] = {
    {.args = "%s: i32",
     .ir = "%y = random_uniform %s {site = 0, low = 0.0, high = 1.0} : f32[4]",
     .given = "0",
     .expected = "[0.3990464210510254, 0.8805201649665833, 0.7357127666473389, 0.6054818034172058]"},
    {.args = "%s: i32",
     .ir = "%y = random_uniform %s {site = 7, low = -1.0, high = 2.0} : f32[7, 5]",
     .values = {0, 9}},
    {.args = "%s: i32",
     .ir = "%y = random_uniform %s {site = 7, low = -1.0, high = 2.0} : f64[5, 3]",
     .values = {0, 9}},
};

constinit const OpDef kRandomUniformOp = {
    .name = "random_uniform",
    .doc =
        "uniform random numbers in [`low`, `high`), a function of seed, `site`, `step` and global element index alone; "
        "`first`: how many elements lie before, where the result is a block of rows",
    .operands = OperandSpec{"step, first", 1, 2},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferRandom,
    .factors = &generatedFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = Vjp{&noGradient},
    .localize = UsesOffsets{"numbers belong to global elements"},
    .evaluate = &evaluateUniform,
    .lower = LowerGenerate{},
};

}  // namespace gshard
