// Elementwise builtins: scalar functions over tensors, folded on compile-time numbers.
#include <algorithm>
#include <cmath>

#include "sema/builtins.h"
#include "sema/diagnostics.h"
#include "sema/operators.h"

namespace gshard::sema {

namespace {

std::optional<double> foldFunction(std::string_view name, double x) {
  if (name == "abs") return std::fabs(x);
  if (name == "ceil") return std::ceil(x);
  if (name == "cos") return std::cos(x);
  if (name == "erf") return std::erf(x);
  if (name == "exp") return std::exp(x);
  if (name == "expm1") return std::expm1(x);
  if (name == "floor") return std::floor(x);
  if (name == "log") return std::log(x);
  if (name == "log1p") return std::log1p(x);
  if (name == "relu") return std::max(x, 0.0);
  if (name == "round") return std::nearbyint(x);
  if (name == "rsqrt") return 1 / std::sqrt(x);
  if (name == "sign") return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
  if (name == "sin") return std::sin(x);
  if (name == "sqrt") return std::sqrt(x);
  if (name == "tan") return std::tan(x);
  if (name == "tanh") return std::tanh(x);
  return std::nullopt;
}

// Which scalar functions take integers: what stays exact, and tests of floats (constant there).
bool takesIntegers(std::string_view name) {
  return name == "abs" || name == "sign" || name == "relu";
}

Datum foldUnary(BuiltinCall& call, const Datum& x) {
  const std::string_view name = call.name();
  if (const auto* i = x.as<IntDatum>()) {
    if (name == "abs" && i->value != std::numeric_limits<std::int64_t>::min())
      return IntDatum{std::abs(i->value), derived(i->rows, i->rows)};
    if (name == "sign") return makeInt(i->value > 0 ? 1 : i->value < 0 ? -1 : 0);
    if (name == "floor" || name == "ceil" || name == "round") return x;
    if (name == "relu") return IntDatum{std::max<std::int64_t>(i->value, 0), derived(i->rows, i->rows)};
  }
  const double value = numberOf(x);
  const RowsUse rows = x.is<IntDatum>() ? x.as<IntDatum>()->rows : x.as<FloatDatum>()->rows;
  if (name == "is_nan") return makeBool(std::isnan(value));
  if (name == "is_inf") return makeBool(std::isinf(value));
  if (name == "is_finite") return makeBool(std::isfinite(value));
  const std::optional<double> folded = foldFunction(name, value);
  if (folded) return FloatDatum{*folded, derived(rows, rows)};
  call.mismatch("x", "a tensor");
  return {};
}

// Both operands compile-time numbers: the smaller or larger by IEEE rules (NaN wins).
Datum foldMaximum(bool isMax, const Datum& a, const Datum& b) {
  if (a.is<IntDatum>() && b.is<IntDatum>()) {
    const IntDatum x = *a.as<IntDatum>(), y = *b.as<IntDatum>();
    const std::int64_t value = isMax ? std::max(x.value, y.value) : std::min(x.value, y.value);
    return IntDatum{value, derived(x.rows, y.rows)};
  }
  const double x = numberOf(a), y = numberOf(b);
  if (std::isnan(x) || std::isnan(y)) return makeFloat(std::nan(""));
  return makeFloat(isMax ? std::max(x, y) : std::min(x, y));
}

}  // namespace

Datum buildUnary(BuiltinCall& call) {
  const Datum& x = call.datum("x");
  if (x.isNumber()) return foldUnary(call, x);
  const TensorDatum tensor = call.tensor("x");
  if (call.failed() || !call.canEmit()) return {};
  const DType dtype = tensor.type.dtype;
  if (isFloat(dtype) || (isInteger(dtype) && takesIntegers(call.name()))) {
    return call.ops().map(call.name(), {tensor}, call.range());
  }
  call.sink()
      .emit(call.range("x"), diag::DtypeNotAccepted, std::string(call.name()), std::string("floats"),
            printType(tensor.type))
      .help("`cast` it first: `" + std::string(call.name()) + "(cast(…, f32))`");
  return {};
}

Datum buildMaximum(BuiltinCall& call) {
  const Datum a = call.datum("a"), b = call.datum("b");
  if (call.failed()) return {};
  if (a.isNumber() && b.isNumber()) return foldMaximum(call.name() == "maximum", a, b);
  if (!call.canEmit()) return {};
  const auto operands =
      call.ops().unify({a, b}, {call.range("a"), call.range("b")}, "`" + std::string(call.name()) + "`", call.range());
  if (!operands) return {};
  if (operands->front().type.dtype == DType::Bool) {
    call.mismatch("a", "a tensor of numbers");
    return {};
  }
  return call.ops().map(call.name(), *operands, call.range());
}

// max(x, axis:) reduces; on compile-time numbers it is the largest of its arguments, or of a list.
Datum buildMinMax(BuiltinCall& call) {
  const bool isMax = call.name() == "max";
  const Datum& x = call.datum("x");
  if (x.isNumber() && call.datum("axis").isNumber() && !call.given("keepdims"))
    return foldMaximum(isMax, x, call.datum("axis"));
  if (const auto* list = x.as<ListDatum>()) {
    const bool numbers = !list->items->empty() && std::all_of(list->items->begin(), list->items->end(),
                                                              [](const Datum& item) { return item.isNumber(); });
    if (numbers && !call.given("axis")) {
      Datum best = list->items->front();
      for (const Datum& item : *list->items) best = foldMaximum(isMax, best, item);
      return best;
    }
  }
  return buildReduction(call);
}

Datum buildIntegerDivision(BuiltinCall& call) {
  const Datum a = call.datum("a"), b = call.datum("b");
  if (call.failed()) return {};
  const bool isFloor = call.name() == "floordiv";
  if (a.isNumber() && b.isNumber()) {
    return foldDivision(isFloor ? IntegerDivision::Floor : IntegerDivision::Ceil, a, b, call.range(), call.sink());
  }
  if (!call.canEmit()) return {};
  TensorOps& ops = call.ops();
  const auto operands =
      ops.unify({a, b}, {call.range("a"), call.range("b")}, "`" + std::string(call.name()) + "`", call.range());
  if (!operands) return {};
  const DType dtype = operands->front().type.dtype;
  if (dtype == DType::Bool) {
    call.mismatch("a", "a tensor of numbers");
    return {};
  }
  if (isFloor) return ops.map("floordiv", *operands, call.range());
  // ceildiv(a, b) = -floordiv(-a, b); u8 has no negative numbers and goes through i32.
  const auto emit = [&](const TensorDatum& x, const TensorDatum& y) -> Datum {
    const Datum negated = ops.map("neg", {x}, call.range());
    if (negated.isError()) return {};
    const Datum quotient = ops.map("floordiv", {*negated.as<TensorDatum>(), y}, call.range());
    return quotient.isError() ? Datum{} : ops.map("neg", {*quotient.as<TensorDatum>()}, call.range());
  };
  if (dtype != DType::U8) return emit((*operands)[0], (*operands)[1]);
  const Datum x = ops.cast((*operands)[0], DType::I32, call.range());
  const Datum y = ops.cast((*operands)[1], DType::I32, call.range());
  if (x.isError() || y.isError()) return {};
  const Datum result = emit(*x.as<TensorDatum>(), *y.as<TensorDatum>());
  return result.isError() ? Datum{} : ops.cast(*result.as<TensorDatum>(), DType::U8, call.range());
}

Datum buildWhere(BuiltinCall& call) {
  const Datum condition = call.datum("c"), a = call.datum("a"), b = call.datum("b");
  if (call.failed()) return {};
  if (const auto* known = condition.as<BoolDatum>()) {
    if (!a.isTensorLike() && !b.isTensorLike()) return known->value ? a : b;
  }
  if (!call.canEmit()) return {};
  TensorOps& ops = call.ops();
  std::optional<TensorDatum> test;
  if (const auto* tensor = condition.as<TensorDatum>(); tensor != nullptr && tensor->type.dtype == DType::Bool) {
    test = *tensor;
  } else if (condition.is<BoolDatum>()) {
    test = ops.constant(condition, DType::Bool, call.range("c"));
  } else {
    call.mismatch("c", "a tensor of `bool`");
  }
  if (!test) return {};
  const auto isNumeric = [](const Datum& d) { return d.isNumber() || d.is<BoolDatum>(); };
  if (isNumeric(a) && isNumeric(b)) {
    if (a.is<BoolDatum>() && b.is<BoolDatum>()) {
      const auto yes = ops.constant(a, DType::Bool, call.range("a")),
                 no = ops.constant(b, DType::Bool, call.range("b"));
      return yes && no ? ops.map("where", {*test, *yes, *no}, call.range()) : Datum{};
    }
    return ChoiceDatum{std::make_shared<const TensorDatum>(*test), std::make_shared<const Datum>(a),
                       std::make_shared<const Datum>(b)};
  }
  const auto operands = ops.unify({a, b}, {call.range("a"), call.range("b")}, "`where`", call.range());
  return operands ? ops.map("where", {*test, (*operands)[0], (*operands)[1]}, call.range()) : Datum{};
}

Datum buildClamp(BuiltinCall& call) {
  const Datum x = call.datum("x"), low = call.datum("low"), high = call.datum("high");
  if (call.failed()) return {};
  if (x.isNumber() && low.isNumber() && high.isNumber()) return foldMaximum(false, foldMaximum(true, x, low), high);
  if (!call.canEmit()) return {};
  const auto operands = call.ops().unify({x, low, high}, {call.range("x"), call.range("low"), call.range("high")},
                                         "`clamp`", call.range());
  if (!operands) return {};
  if (operands->front().type.dtype == DType::Bool) {
    call.mismatch("x", "a tensor of numbers");
    return {};
  }
  return call.ops().map("clamp", *operands, call.range());
}

Datum buildCast(BuiltinCall& call) {
  const Datum x = call.datum("x");
  const DType to = call.dtype("dtype", DType::F32);
  if (call.failed() || !call.canEmit()) return {};
  if (x.isNumber() || x.is<BoolDatum>() || x.is<ChoiceDatum>()) {
    const std::optional<TensorDatum> made = call.ops().adapt(x, to, call.range("x"));
    return made ? Datum(*made) : Datum{};
  }
  const TensorDatum tensor = call.tensor("x");
  return call.failed() ? Datum{} : call.ops().cast(tensor, to, call.range());
}

Datum buildStopGradient(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  if (call.failed() || !call.canEmit()) return {};
  return call.ops().create(OpKind::StopGradient, {x}, {}, call.range());
}

}  // namespace gshard::sema
