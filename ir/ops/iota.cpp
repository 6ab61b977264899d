// iota: the index along `dim`.
#include <limits>

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferIota(const OpView& op, DiagSink& diag) {
  const Type result = typeOfAttributes(op);
  if (result.dtype != DType::I32 && result.dtype != DType::I64) {
    diag.emit(op.range(), diag::DtypeNotAccepted, "iota", "`i32` and `i64`", std::string(dtypeName(result.dtype)));
    return std::nullopt;
  }
  if (!checkSizes(op, diag, result) || !checkAxis(op, diag, op.intAttr("dim"), result)) return std::nullopt;
  const std::int64_t size = result.shape[static_cast<std::size_t>(op.intAttr("dim"))];
  if (result.dtype == DType::I32 && size - 1 > std::numeric_limits<std::int32_t>::max()) {
    diag.emit(op.range(), diag::IotaSize, printType(result), size - 1);
    return std::nullopt;
  }
  return ResultTypes{result};
}

static void evaluateIota(const OpView& op, EvalFrame& frame) {
  const std::size_t dim = static_cast<std::size_t>(op.intAttr("dim"));
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const std::int64_t value = local[dim] + frame.resultTiles[0][dim].offset;
    frame.out().ints[static_cast<std::size_t>(flatOf(local, frame.out().type.shape))] = value;
  });
}

static constexpr AttrSpec kAttributes[] = {{"shape", AttrKind::Ints, false, AttrPlace::ResultShape},
                                           {"dtype", AttrKind::DTypeName, false, AttrPlace::ResultDType},
                                           {"dim", AttrKind::Int}};
static constexpr Example kExamples[] = {
    {.args = "", .ir = "%y = iota {dim = 1} : i32[2, 3]", .expected = "[[0, 1, 2], [0, 1, 2]]"},
    {.args = "", .ir = "%y = iota {dim = 0} : i64[7, 5]"},
};

constinit const OpDef kIotaOp = {
    .name = "iota",
    .doc = "0, 1, 2, … along `dim`",
    .operands = OperandSpec{"", 0, 0},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferIota,
    .factors = &generatedFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = Vjp{&noGradient},
    .localize = UsesOffsets{"counts from the tile's global offset"},
    .evaluate = &evaluateIota,
    .lower = LowerGenerate{},
};

}  // namespace gshard
