// map: ONE scalar function (ir/scalar_functions.def) over operands that broadcast as in NumPy.
#include <algorithm>

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"
#include "ir/scalar_functions.h"
#include "support/check.h"

namespace gshard {

static const ScalarInfo& functionOf(const OpView& op) {
  const std::optional<ScalarFn> fn = scalarFromName(op.stringAttr("fn"));
  GSHARD_CHECK(fn.has_value(), "`" + op.stringAttr("fn") + "` is no scalar function");
  return scalarInfo(*fn);
}

// The dtype that a function works on: of `where`, that of its branches.
static DType workDtype(const OpView& op, const ScalarInfo& info) {
  return op.operandType(info.fn == ScalarFn::Where ? 1 : 0).dtype;
}

static bool checkDtypes(const OpView& op, const ScalarInfo& info, DiagSink& diag) {
  const DType work = workDtype(op, info);
  for (std::size_t i = 0; i < op.operandCount(); ++i) {
    const DType dtype = op.operandType(i).dtype;
    if (info.fn == ScalarFn::Where && i == 0) {
      if (dtype == DType::Bool) continue;
      diag.emit(op.range(), diag::DtypeNotAccepted, "where", "a `bool` condition", std::string(dtypeName(dtype)))
          .label(op.operandRange(i), "this condition");
      return false;
    }
    if (!acceptsDtype(info.operands, dtype)) {
      diag.emit(op.range(), diag::DtypeNotAccepted, std::string(info.name),
                std::string(scalarOperandsText(info.operands)), printType(op.operandType(i)))
          .label(op.operandRange(i), "this operand");
      return false;
    }
    if (dtype != work) {
      diag.emit(op.range(), diag::DtypesDiffer, std::string(info.name),
                printType(op.operandType(info.fn == ScalarFn::Where ? 1 : 0)), printType(op.operandType(i)))
          .label(op.operandRange(i), "this operand");
      return false;
    }
  }
  return true;
}

static std::optional<ResultTypes> inferMap(const OpView& op, DiagSink& diag) {
  const std::optional<ScalarFn> fn = scalarFromName(op.stringAttr("fn"));
  if (!fn) {
    diag.emit(op.range(), diag::IrAttribute, "fn", "map", "names no scalar function: `" + op.stringAttr("fn") + "`");
    return std::nullopt;
  }
  const ScalarInfo& info = scalarInfo(*fn);
  if (static_cast<std::int64_t>(op.operandCount()) != info.arity) {
    diag.emit(op.range(), diag::OperandCount, std::string(info.name), std::to_string(info.arity),
              static_cast<std::int64_t>(op.operandCount()));
    return std::nullopt;
  }
  if (!checkDtypes(op, info, diag)) return std::nullopt;
  const DType attribute = op.hasAttr("dtype") ? op.dtypeAttr("dtype") : DType::F32;
  Type result{scalarResultDtype(info.fn, workDtype(op, info), attribute), {}};
  for (std::size_t i = 0; i < op.operandCount(); ++i) {
    const std::vector<std::int64_t>& shape = op.operandType(i).shape;
    if (shape.size() > result.shape.size())
      result.shape.insert(result.shape.begin(), shape.size() - result.shape.size(), 1);
    for (std::size_t k = 0; k < shape.size(); ++k) {
      std::int64_t& size = result.shape[result.shape.size() - 1 - k];
      const std::int64_t mine = shape[shape.size() - 1 - k];
      if (size == 1) {
        size = mine;
      } else if (mine != 1 && mine != size) {
        diag.emit(op.range(), diag::ShapesDoNotBroadcast, printType(op.operandType(0)), printType(op.operandType(i)),
                  static_cast<std::int64_t>(k) + 1, size, mine)
            .label(op.operandRange(i), "this operand");
        return std::nullopt;
      }
    }
  }
  return checkSizes(op, diag, result) ? std::optional(ResultTypes{result}) : std::nullopt;
}

static void mapFactors(const OpView& op, FactorBuilder& factors) {
  const std::vector<std::int64_t>& shape = op.resultType().shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const int factor = factors.add(FactorKind::Pass, shape[i]);
    factors.resultDim(0, static_cast<std::int64_t>(i), factor);
    for (std::size_t k = 0; k < op.operandCount(); ++k) {
      const std::vector<std::int64_t>& mine = op.operandType(k).shape;
      const std::int64_t dim = static_cast<std::int64_t>(i + mine.size()) - static_cast<std::int64_t>(shape.size());
      if (dim >= 0 && mine[static_cast<std::size_t>(dim)] == shape[i]) factors.operandDim(k, dim, factor);
    }
  }
}

static std::variant<NotLinear, Joint, Separate> mapLinearity(const OpView& op) {
  const ScalarInfo& info = functionOf(op);
  const DType work = workDtype(op, info);
  const DType attribute = op.hasAttr("dtype") ? op.dtypeAttr("dtype") : DType::F32;
  return scalarLinearity(info.fn, work, scalarResultDtype(info.fn, work, attribute));
}

namespace {
// Where an operand is read for a result index: strides of 0 along dims that it lacks or stretches.
struct Reader {
  const Tensor* tensor;
  std::int64_t base = 0;
  std::vector<std::int64_t> strides;
};

Reader readerOf(const OpView& op, const EvalFrame& frame, std::size_t operand) {
  const std::vector<std::int64_t>& global = op.operandType(operand).shape;
  const std::vector<std::int64_t>& result = op.resultType().shape;
  const std::vector<std::int64_t> strides = stridesOf(frame.in(operand).type.shape);
  Reader reader{&frame.in(operand), 0, std::vector<std::int64_t>(result.size(), 0)};
  for (std::size_t k = 0; k < global.size(); ++k) {
    const std::size_t at = result.size() - global.size() + k;
    if (global[k] != result[at]) continue;
    const Tile& mine = frame.operandTiles[operand][k];
    const Tile& wanted = frame.resultTiles[0][at];
    GSHARD_CHECK(
        wanted.live == 0 || (mine.offset <= wanted.offset && wanted.offset + wanted.live <= mine.offset + mine.live),
        "an operand's tile does not cover the result's");
    reader.strides[at] = strides[k];
    reader.base += (wanted.offset - mine.offset) * strides[k];
  }
  return reader;
}
}  // namespace

static void evaluateMap(const OpView& op, EvalFrame& frame) {
  const ScalarInfo& info = functionOf(op);
  const DType work = workDtype(op, info);
  const DType result = frame.out().type.dtype;
  const bool canFail = mayFail(info.fn, work);
  std::vector<Reader> readers;
  for (std::size_t i = 0; i < op.operandCount(); ++i) readers.push_back(readerOf(op, frame, i));
  std::vector<ScalarNumber> numbers(readers.size());
  std::int64_t place = 0;
  const std::vector<std::int64_t> strides = stridesOf(frame.out().type.shape);
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    for (std::size_t i = 0; i < readers.size(); ++i) {
      std::int64_t from = readers[i].base;
      for (std::size_t k = 0; k < local.size(); ++k) from += readers[i].strides[k] * local[k];
      const Number number = numberAt(*readers[i].tensor, from);
      numbers[i] = {number.real, number.integer};
    }
    if (canFail && numbers[1].integer == 0) {
      frame.fault(flatOf(toGlobal(local, frame.resultTiles[0]), op.resultType().shape), "integer division by zero");
    }
    const ScalarNumber value = evaluateScalar(info.fn, work, result, numbers);
    place = 0;
    for (std::size_t k = 0; k < local.size(); ++k) place += strides[k] * local[k];
    storeNumber(frame.out(), place, {value.real, value.integer});
  });
}

static constexpr AttrSpec kAttributes[] = {{"fn", AttrKind::String, false, AttrPlace::OpName},
                                           {"dtype", AttrKind::DTypeName, true, AttrPlace::ResultDType}};
static constexpr Example kExamples[] = {
    {.args = "%a: f32[2, 3], %b: f32[3]",
     .ir = "%y = add %a, %b : f32[2, 3]",
     .given = "[[1, 2, 3], [4, 5, 6]]; [10, 20, 30]",
     .expected = "[[11, 22, 33], [14, 25, 36]]",
     .differentiable = true},
    {.args = "%a: f32[2, 1], %b: f32[1, 3]",
     .ir = "%y = mul %a, %b : f32[2, 3]",
     .given = "[[2], [3]]; [[1, 5, 7]]",
     .expected = "[[2, 10, 14], [3, 15, 21]]",
     .differentiable = true},
    {.args = "%a: i32[4], %b: i32[4]",
     .ir = "%y = floordiv %a, %b : i32[4]",
     .given = "[7, -7, 7, -7]; [2, 2, -2, -2]",
     .expected = "[3, -4, -4, 3]"},
    {.args = "%a: i32[4], %b: i32[4]",
     .ir = "%y = mod %a, %b : i32[4]",
     .given = "[7, -7, 7, -7]; [2, 2, -2, -2]",
     .expected = "[1, 1, -1, -1]"},
    {.args = "%a: f32[4], %b: f32[4]",
     .ir = "%y = maximum %a, %b : f32[4]",
     .given = "[1, nan, -0.0, 5]; [2, 1, 0.0, 4]",
     .expected = "[2, nan, 0.0, 5]"},
    {.args = "%c: bool[3], %a: f32[3], %b: f32",
     .ir = "%y = where %c, %a, %b : f32[3]",
     .given = "[1, 0, 1]; [1, 2, 3]; 9",
     .expected = "[1, 9, 3]",
     .differentiable = true},
    {.args = "%x: f32[5]",
     .ir = "%y = cast %x : i32[5]",
     .given = "[1.9, -1.9, nan, 1e20, -inf]",
     .expected = "[1, -1, 0, 2147483647, -2147483648]"},
    {.args = "%x: f32[5]",
     .ir = "%y = round %x : f32[5]",
     .given = "[0.5, 1.5, 2.5, -0.5, -1.7]",
     .expected = "[0, 2, 2, -0.0, -2]"},
    {.args = "%x: f32[3]",
     .ir = "%y = exp %x : f32[3]",
     .given = "[0, 1, -inf]",
     .expected = "[1, 2.718281828, 0]",
     .tolerance = 1e-6},
    {.args = "%x: f64[5, 7]",
     .ir = "%y = tanh %x : f64[5, 7]",
     .values = {-2, 2},
     .tolerance = 1e-12,
     .differentiable = true},
    {.args = "%x: f32[5, 7]", .ir = "%y = neg %x : f32[5, 7]", .values = {-9, 9}, .differentiable = true},
    {.args = "%x: f32[5, 7], %b: f32",
     .ir = "%y = div %x, %b : f32[5, 7]",
     .values = {1, 9},
     .tolerance = 1e-6,
     .differentiable = true},
    {.args = "%x: f32[5, 7], %b: f32[7]", .ir = "%y = lt %x, %b : bool[5, 7]", .values = {-9, 9}},
    {.args = "%a: bool[7], %b: bool[7]", .ir = "%y = or %a, %b : bool[7]", .values = {0, 1}},
    {.args = "%x: f32[5]", .ir = "%y = cast %x : f64[5]", .values = {-9, 9}},
    {.args = "%x: f32[5]",
     .ir = "%y = cast %x : bf16[5]",
     .given = "[1, 1.00390625, 1.01171875, 3e38, -2]",
     .expected = "[1, 1, 1.015625, 3.0042393e38, -2]"},
};

constinit const OpDef kMapOp = {
    .name = "map",
    .doc = "one scalar function on every element; operands broadcast as in NumPy; written as the function's name",
    .operands = OperandSpec{"a, b, c", 1, 3},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferMap,
    .factors = &mapFactors,
    .linearity = LinearityFn{&mapLinearity},
    .tails = TailsIgnored{},
    .gradient = Vjp{&mapVjp},
    .localize = SameOp{},
    .evaluate = &evaluateMap,
    .lower = LowerMap{},
};

}  // namespace gshard
