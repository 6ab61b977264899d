// Random builtins: each call gets the site of its place in the elaborated program, so values depend on nothing else.
#include <cmath>

#include "sema/builtins.h"
#include "sema/diagnostics.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

Datum uniform(BuiltinCall& call, const std::vector<std::int64_t>& shape, double low, double high, DType dtype) {
  if (!checkSize({dtype, shape}, call.range(), call.sink())) return {};
  FunctionBuild& build = call.ops().build();
  const std::int64_t site = call.context().nextSite(call.range());
  const ValueId id = build.builder().create(
      OpKind::RandomUniform, {build.step()},
      {{"shape", shape}, {"dtype", dtype}, {"site", site}, {"low", low}, {"high", high}}, call.range());
  return call.ops().make(id, call.range());
}

bool checkFloatDType(BuiltinCall& call, DType dtype) {
  if (isFloat(dtype)) return true;
  call.sink()
      .emit(call.range("dtype"), diag::DtypeNotAccepted, std::string(call.name()), std::string("floats"),
            std::string(dtypeName(dtype)))
      .help("`random_int(shape, low, high)` draws integers");
  return false;
}

}  // namespace

Datum buildRandom(BuiltinCall& call) {
  const std::vector<std::int64_t> shape = call.shapeArgument();
  const DType dtype = call.dtypeArgument();
  if (call.failed() || !call.canEmit() || !checkFloatDType(call, dtype)) return {};
  if (call.name() == "random_normal") {
    if (!checkSize({dtype, shape}, call.range(), call.sink())) return {};
    FunctionBuild& build = call.ops().build();
    const std::int64_t site = call.context().nextSite(call.range());
    const ValueId id = build.builder().create(OpKind::RandomNormal, {build.step()},
                                              {{"shape", shape}, {"dtype", dtype}, {"site", site}}, call.range());
    return call.ops().make(id, call.range());
  }
  const double low = call.number("low", 0), high = call.number("high", 1);
  if (call.failed()) return {};
  if (!(low < high)) {
    call.sink().emit(call.range(), diag::EmptyInterval, low, high);
    return {};
  }
  return uniform(call, shape, low, high, dtype);
}

Datum buildRandomInt(BuiltinCall& call) {
  const std::vector<std::int64_t> shape = call.shapeArgument();
  const std::int64_t low = call.integer("low"), high = call.integer("high");
  if (call.failed() || !call.canEmit()) return {};
  if (low >= high || low < -2147483648LL || high > 2147483648LL) {
    call.sink().emit(call.range(), diag::EmptyInterval, static_cast<double>(low), static_cast<double>(high));
    return {};
  }
  // In f64 the whole interval of i32 is exact, and so is its floor.
  const Datum drawn = uniform(call, shape, static_cast<double>(low), static_cast<double>(high), DType::F64);
  if (drawn.isError()) return {};
  const Datum floored = call.ops().map("floor", {*drawn.as<TensorDatum>()}, call.range());
  return floored.isError() ? Datum{} : call.ops().cast(*floored.as<TensorDatum>(), DType::I32, call.range());
}

Datum buildDropout(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const double rate = call.number("rate", 0);
  if (call.failed() || !call.canEmit()) return {};
  if (!isFloat(x.type.dtype)) {
    call.mismatch("x", "a float tensor");
    return {};
  }
  if (!(rate >= 0 && rate < 1)) {
    call.sink().emit(call.range("rate"), diag::ValueDoesNotFit, std::string("`rate` of `dropout`"),
                     "`" + formatNumber(rate) + "`", std::string("0 up to below 1"));
    return {};
  }
  // The site is taken even where nothing is drawn: other sites do not depend on `training`.
  const DType dtype = x.type.dtype == DType::F64 ? DType::F64 : DType::F32;
  if (!call.ops().build().training() || rate == 0) {
    call.context().nextSite(call.range());
    return x;
  }
  TensorOps& ops = call.ops();
  const Datum drawn = uniform(call, x.type.shape, 0, 1, dtype);
  const auto threshold = ops.constant(makeFloat(rate), dtype, call.range());
  const auto scale = ops.constant(makeFloat(1 / (1 - rate)), x.type.dtype, call.range());
  const auto zero = ops.constant(makeFloat(0), x.type.dtype, call.range());
  if (drawn.isError() || !threshold || !scale || !zero) return {};
  const Datum keep = ops.map("ge", {*drawn.as<TensorDatum>(), *threshold}, call.range());
  const Datum scaled = ops.map("mul", {x, *scale}, call.range());
  if (keep.isError() || scaled.isError()) return {};
  return ops.map("where", {*keep.as<TensorDatum>(), *scaled.as<TensorDatum>(), *zero}, call.range());
}

}  // namespace gshard::sema
