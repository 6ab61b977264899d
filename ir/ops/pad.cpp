// pad: low and high (negative ones cut) and interior padding per dim, with a scalar operand as value.
#include <algorithm>

#include "ir/op_rules.h"
#include "support/checked.h"

namespace gshard {

static std::optional<ResultTypes> inferPad(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  for (const char* name : {"low", "high", "interior"}) {
    if (!checkLength(op, diag, name, op.intsAttr(name), x)) return std::nullopt;
  }
  const Type value{x.dtype, {}};
  if (op.operandType(1) != value) {
    diag.emit(op.range(), diag::PadValue, printType(op.operandType(1)), printType(value))
        .label(op.operandRange(1), "this value");
    return std::nullopt;
  }
  Type result{x.dtype, {}};
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    const std::int64_t interior = op.intsAttr("interior")[i];
    const std::optional<std::int64_t> holes = checkedMul(std::max<std::int64_t>(x.shape[i] - 1, 0), interior);
    const std::optional<std::int64_t> edges = checkedAdd(op.intsAttr("low")[i], op.intsAttr("high")[i]);
    const std::optional<std::int64_t> inside = holes ? checkedAdd(x.shape[i], *holes) : std::nullopt;
    const std::optional<std::int64_t> padded = inside && edges ? checkedAdd(*inside, *edges) : std::nullopt;
    if (!padded) {
      diag.emit(op.range(), diag::SizeOverflow, printType(x) + " after padding");
      return std::nullopt;
    }
    const std::int64_t size = *padded;
    if (size < 0 || interior < 0) {
      diag.emit(op.range(), diag::PadNegative, static_cast<std::int64_t>(i), x.shape[i], size);
      return std::nullopt;
    }
    result.shape.push_back(size);
  }
  return checkSizes(op, diag, result) ? std::optional(ResultTypes{result}) : std::nullopt;
}

static void padFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    const bool same = op.intsAttr("low")[i] == 0 && op.intsAttr("high")[i] == 0 && op.intsAttr("interior")[i] == 0;
    const std::int64_t size = std::max(x.shape[i], op.resultType().shape[i]);
    const int factor = factors.add(same ? FactorKind::Pass : FactorKind::Window, size);
    factors.operandDim(0, static_cast<std::int64_t>(i), factor);
    factors.resultDim(0, static_cast<std::int64_t>(i), factor);
  }
}

// The constant that pads, if it is one.
static const Literal* constantPadding(const OpView& op) {
  const ValueId value = op.op().operands[1];
  for (const Op& each : op.function().ops) {
    if (each.kind == OpKind::Constant && each.results[0] == value)
      return std::get_if<Literal>(each.attributes.find("value"));
  }
  return nullptr;
}

// A constant is the same on every device: extremes keep it as it is, a zero of either sign adds up to itself. Any other
// padding has to be pending like x.
static std::variant<NotLinear, Joint, Separate> padLinearity(const OpView& op) {
  const Literal* padding = constantPadding(op);
  if (padding == nullptr) return Joint{.over = anyReduction, .which = allOperands};
  ReductionSet over = only(Reduction::Max) | only(Reduction::Min) | only(Reduction::Any) | only(Reduction::All);
  const bool isZero = padding->floats.empty() ? padding->ints[0] == 0 : padding->floats[0] == 0;
  if (isZero) over |= only(Reduction::Sum) | only(Reduction::Prod);
  return Joint{.over = over, .which = OperandMask{1}};
}

static std::vector<MoveDim> padMap(const OpView& op, std::size_t, std::size_t) {
  std::vector<MoveDim> map = identityMap(op);
  for (std::size_t i = 0; i < map.size(); ++i) {
    map[i].offset = -op.intsAttr("low")[i];
    map[i].divide = op.intsAttr("interior")[i] + 1;
  }
  return map;
}

static void padVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const Type& x = op.operandType(0);
  const std::size_t rank = x.shape.size();
  ValueId gradient{};
  if (x.elements() == 0) {
    gradient = zerosLike(b, x, op.range());
  } else {
    // Where x was cut (negative low or high) its gradient is zero: bring these places back, then take every
    // (interior+1)-th.
    std::vector<std::int64_t> low(rank), high(rank), start(rank), limit(rank), step(rank);
    bool wasCut = false;
    for (std::size_t i = 0; i < rank; ++i) {
      low[i] = std::max<std::int64_t>(-op.intsAttr("low")[i], 0);
      high[i] = std::max<std::int64_t>(-op.intsAttr("high")[i], 0);
      wasCut = wasCut || low[i] > 0 || high[i] > 0;
      start[i] = std::max<std::int64_t>(op.intsAttr("low")[i], 0);
      step[i] = op.intsAttr("interior")[i] + 1;
      limit[i] = start[i] + (x.shape[i] - 1) * step[i] + 1;
    }
    gradient = gradients[0];
    if (wasCut) {
      gradient = b.create(OpKind::Pad, {gradient, b.scalar(x.dtype, 0, op.range())},
                          {{"low", low}, {"high", high}, {"interior", std::vector<std::int64_t>(rank)}}, op.range());
    }
    gradient = b.create(OpKind::Slice, {gradient}, {{"start", start}, {"limit", limit}, {"step", step}}, op.range());
  }
  b.accumulate(0, gradient);
  if (!b.wants(1)) return;
  std::vector<std::int64_t> all(rank);
  for (std::size_t i = 0; i < rank; ++i) all[i] = static_cast<std::int64_t>(i);
  // The padding's share is what x did not get: its places hold the gradient, those of x nothing.
  const ValueId ofX = b.create(
      OpKind::Pad, {gradient, b.scalar(x.dtype, 0, op.range())},
      {{"low", op.intsAttr("low")}, {"high", op.intsAttr("high")}, {"interior", op.intsAttr("interior")}}, op.range());
  b.accumulate(1, sumTo(b, b.map("sub", {gradients[0], ofX}, op.range()), all, x.dtype, op.range()));
}

static constexpr AttrSpec kAttributes[] = {
    {"low", AttrKind::Ints}, {"high", AttrKind::Ints}, {"interior", AttrKind::Ints}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[3], %v: f32",
     .ir = "%y = pad %x, %v {low = [1], high = [2], interior = [0]} : f32[6]",
     .given = "[1, 2, 3]; 9",
     .expected = "[9, 1, 2, 3, 9, 9]",
     .differentiable = true},
    {.args = "%x: f32[3], %v: f32",
     .ir = "%y = pad %x, %v {low = [-1], high = [1], interior = [1]} : f32[5]",
     .given = "[1, 2, 3]; 0",
     .expected = "[0, 2, 0, 3, 0]",
     .differentiable = true},
    {.args = "%x: f32[7, 5], %v: f32",
     .ir = "%y = pad %x, %v {low = [0, 2], high = [0, -1], interior = [0, 2]} : f32[7, 14]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: i32[5], %v: i32",
     .ir = "%y = pad %x, %v {low = [0], high = [2], interior = [0]} : i32[7]",
     .values = {-9, 9}},
};

constinit const OpDef kPadOp = {
    .name = "pad",
    .doc =
        "`low` before, `high` after and `interior` between the elements of each dim, filled with `value`; negative "
        "cuts",
    .operands = OperandSpec{"x, value", 2, 2},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferPad,
    .factors = &padFactors,
    .linearity = LinearityFn{&padLinearity},
    .tails = TailsIgnored{},
    .gradient = Vjp{&padVjp},
    .localize = SameOp{},
    .evaluate = &evaluateMove,
    .lower = LowerMove{&padMap},
};

}  // namespace gshard
