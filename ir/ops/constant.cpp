// constant: a literal, one number for all elements (a splat) or one for each.
#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferConstant(const OpView& op, DiagSink& diag) {
  const Type result = typeOfAttributes(op);
  if (!checkSizes(op, diag, result)) return std::nullopt;
  const Literal& literal = op.literalAttr("value");
  const std::size_t right = isFloat(result.dtype) ? literal.floats.size() : literal.ints.size();
  const std::size_t wrong = isFloat(result.dtype) ? literal.ints.size() : literal.floats.size();
  if (wrong != 0 || (right != 1 && static_cast<std::int64_t>(right) != result.elements())) {
    diag.emit(op.range(), diag::LiteralLength, static_cast<std::int64_t>(right + wrong), printType(result));
    return std::nullopt;
  }
  return ResultTypes{result};
}

static void evaluateConstant(const OpView& op, EvalFrame& frame) {
  const Literal& literal = op.literalAttr("value");
  const bool isSplat = literal.floats.size() + literal.ints.size() == 1;
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const std::int64_t global = isSplat ? 0 : flatOf(toGlobal(local, frame.resultTiles[0]), op.resultType().shape);
    const std::size_t from = static_cast<std::size_t>(global);
    const Number number = frame.out().isFloat() ? Number{literal.floats[from], 0} : Number{0, literal.ints[from]};
    storeNumber(frame.out(), flatOf(local, frame.out().type.shape), number);
  });
}

static constexpr AttrSpec kAttributes[] = {{"value", AttrKind::Numbers},
                                           {"shape", AttrKind::Ints, false, AttrPlace::ResultShape},
                                           {"dtype", AttrKind::DTypeName, false, AttrPlace::ResultDType}};
static constexpr Example kExamples[] = {
    {.args = "", .ir = "%y = constant {value = 1.5} : f32[3]", .expected = "[1.5, 1.5, 1.5]"},
    {.args = "", .ir = "%y = constant {value = [1, 2, 3, 4, 5, 6]} : i32[2, 3]", .expected = "[[1, 2, 3], [4, 5, 6]]"},
    {.args = "",
     .ir = "%y = constant {value = [0, -0.0, inf, -inf, nan, 1e-3, 7]} : f32[7]",
     .expected = "[0, -0.0, inf, -inf, nan, 1e-3, 7]"},
    {.args = "", .ir = "%y = constant {value = 1} : bool", .expected = "1"},
};

constinit const OpDef kConstantOp = {
    .name = "constant",
    .doc = "the number or numbers `value`",
    .operands = OperandSpec{"", 0, 0},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferConstant,
    .factors = &generatedFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = Vjp{&noGradient},
    .localize = UsesOffsets{"a tile holds its own part of the numbers"},
    .evaluate = &evaluateConstant,
    .lower = LowerGenerate{},
};

}  // namespace gshard
