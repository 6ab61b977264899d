// Reductions: sums that finish by a division count the rows there are (TensorOps::count), so that a short last batch
// and a split batch give the same mean.
#include <algorithm>

#include "sema/builtins.h"
#include "sema/diagnostics.h"

namespace gshard::sema {

namespace {

std::string castHelp(BuiltinCall& call) {
  return "`cast` it first: `" + std::string(call.name()) + "(cast(…, f32))`";
}

// Reports a reduction of nothing that has no value.
bool checkNotEmpty(BuiltinCall& call, const TensorDatum& x, const std::vector<std::int64_t>& dims) {
  for (const std::int64_t dim : dims) {
    if (x.type.shape[static_cast<std::size_t>(dim)] != 0) continue;
    call.sink().emit(call.range(), diag::EmptyReduction, std::string(call.name()), dim, printType(x.type));
    return false;
  }
  return true;
}

bool checkFloat(BuiltinCall& call, const TensorDatum& x) {
  if (isFloat(x.type.dtype)) return true;
  call.sink()
      .emit(call.range("x"), diag::DtypeNotAccepted, std::string(call.name()), std::string("floats"), printType(x.type))
      .help(castHelp(call));
  return false;
}

// sum / count, in the accumulation type; `less` is taken from the count (variance's correction).
Datum meanOf(BuiltinCall& call, const TensorDatum& x, const std::vector<std::int64_t>& dims, bool keepDims,
             std::int64_t less) {
  TensorOps& ops = call.ops();
  const DType wide = accumulatorOf(x.type.dtype);
  const Datum widened = ops.cast(x, wide, call.range());
  if (widened.isError()) return {};
  const Datum sum = ops.reduce(Reduction::Sum, *widened.as<TensorDatum>(), dims, keepDims, call.range());
  Datum count = ops.count(x, dims, wide, call.range());
  if (sum.isError() || count.isError()) return {};
  if (less != 0) {
    const auto correction = ops.constant(makeInt(less), wide, call.range());
    if (!correction) return {};
    count = ops.map("sub", {*count.as<TensorDatum>(), *correction}, call.range());
    if (count.isError()) return {};
  }
  const Datum result = ops.map("div", {*sum.as<TensorDatum>(), *count.as<TensorDatum>()}, call.range());
  return result.isError() ? Datum{} : ops.cast(*result.as<TensorDatum>(), x.type.dtype, call.range());
}

}  // namespace

Datum buildReduction(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const bool keepDims = call.boolean("keepdims", false);
  if (call.failed()) return {};
  const std::vector<std::int64_t> dims = call.axes("axis", x.type);
  if (call.failed() || !call.canEmit()) return {};
  const Reduction reduction = *reductionFromName(call.name());
  const bool logic = reduction == Reduction::Any || reduction == Reduction::All;
  if (logic != (x.type.dtype == DType::Bool)) {
    DiagBuilder builder = call.sink().emit(call.range("x"), diag::DtypeNotAccepted, std::string(call.name()),
                                           std::string(logic ? "`bool`" : "numbers"), printType(x.type));
    builder.help(logic ? "compare first: `x != 0`" : "`cast` it first, or count with `any` and `all`");
    return {};
  }
  const bool extreme = reduction == Reduction::Max || reduction == Reduction::Min;
  if (extreme && !checkNotEmpty(call, x, dims)) return {};
  return call.ops().reduce(reduction, x, dims, keepDims, call.range());
}

Datum buildMean(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const bool keepDims = call.boolean("keepdims", false);
  if (call.failed()) return {};
  const std::vector<std::int64_t> dims = call.axes("axis", x.type);
  if (call.failed() || !call.canEmit() || !checkFloat(call, x) || !checkNotEmpty(call, x, dims)) return {};
  return meanOf(call, x, dims, keepDims, 0);
}

Datum buildVariance(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const bool keepDims = call.boolean("keepdims", false);
  const std::int64_t correction = call.integer("correction", 0);
  if (call.failed()) return {};
  const std::vector<std::int64_t> dims = call.axes("axis", x.type);
  if (call.failed() || !call.canEmit() || !checkFloat(call, x) || !checkNotEmpty(call, x, dims)) return {};
  TensorOps& ops = call.ops();
  // In the accumulation type from the first step: x - mean of 16-bit floats would lose what the variance is made of.
  const Datum wide = ops.cast(x, accumulatorOf(x.type.dtype), call.range());
  if (wide.isError()) return {};
  const TensorDatum& values = *wide.as<TensorDatum>();
  const Datum mean = meanOf(call, values, dims, true, 0);
  if (mean.isError()) return {};
  const Datum centred = ops.map("sub", {values, *mean.as<TensorDatum>()}, call.range());
  if (centred.isError()) return {};
  const TensorDatum& c = *centred.as<TensorDatum>();
  const Datum square = ops.map("mul", {c, c}, call.range());
  if (square.isError()) return {};
  const Datum result = meanOf(call, *square.as<TensorDatum>(), dims, keepDims, correction);
  return result.isError() ? Datum{} : ops.cast(*result.as<TensorDatum>(), x.type.dtype, call.range());
}

Datum buildArgReduction(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const bool keepDims = call.boolean("keepdims", false);
  if (call.failed()) return {};
  const std::int64_t axis = call.axis("axis", x.type, 0);
  if (call.failed() || !call.canEmit() || !checkNotEmpty(call, x, {axis})) return {};
  if (x.type.dtype == DType::Bool) {
    call.sink()
        .emit(call.range("x"), diag::DtypeNotAccepted, std::string(call.name()), std::string("numbers"),
              printType(x.type))
        .help(castHelp(call));
    return {};
  }
  const OpKind kind = call.name() == "argmax" ? OpKind::Argmax : OpKind::Argmin;
  const Datum result = call.ops().create(kind, {x}, {{"axis", axis}}, call.range());
  if (result.isError() || !keepDims) return result;
  std::vector<std::int64_t> shape = x.type.shape;
  shape[static_cast<std::size_t>(axis)] = 1;
  return call.ops().reshape(*result.as<TensorDatum>(), shape, call.range());
}

}  // namespace gshard::sema
