// random_normal: normal with mean 0 and deviation 1 as a pure function of (seed, site, step, GLOBAL element index).
#include "ir/random_op.h"

namespace gshard {

static void evaluateNormal(const OpView& op, EvalFrame& frame) {
  const DType dtype = frame.out().type.dtype;
  evaluateRandom(op, frame,
                 [&](const RandomStream& stream, std::uint64_t index) { return randomNormal(stream, index, dtype); });
}

static constexpr AttrSpec kAttributes[] = {{"shape", AttrKind::Ints, false, AttrPlace::ResultShape},
                                           {"dtype", AttrKind::DTypeName, false, AttrPlace::ResultDType},
                                           {"site", AttrKind::Int}};
// Box and Muller on the words of random_uniform's first example: sqrt(-2 ln((w0 + 1) 2^-32)) cos(2 pi w1 2^-32).
static constexpr Example kExamples[] = {
    {.args = "%s: i32",
     .ir = "%y = random_normal %s {site = 0} : f64[2]",
     .given = "0",
     .expected = "[0.9911376790966604, -0.6176089596525953]",
     .tolerance = 1e-12},
    {.args = "%s: i32", .ir = "%y = random_normal %s {site = 7} : f32[7, 5]", .values = {0, 9}, .tolerance = 1e-6},
};

constinit const OpDef kRandomNormalOp = {
    .name = "random_normal",
    .doc =
        "normal random numbers, a function of seed, `site`, `step` and global element index alone; `first`: how many "
        "elements lie before, where the result is a block of rows",
    .operands = OperandSpec{"step, first", 1, 2},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferRandom,
    .factors = &generatedFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = Vjp{&noGradient},
    .localize = UsesOffsets{"numbers belong to global elements"},
    .evaluate = &evaluateNormal,
    .lower = LowerGenerate{},
};

}  // namespace gshard
