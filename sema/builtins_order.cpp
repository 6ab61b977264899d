// Builtins that go along an axis in order: running sums and sorting.
#include "sema/builtins.h"
#include "sema/diagnostics.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

bool checkNumbers(BuiltinCall& call, const TensorDatum& x) {
  if (x.type.dtype != DType::Bool) return true;
  call.sink()
      .emit(call.range("x"), diag::DtypeNotAccepted, std::string(call.name()), std::string("numbers"),
            printType(x.type))
      .help("`cast` it first: `" + std::string(call.name()) + "(cast(…, i32))`");
  return false;
}

}  // namespace

Datum buildCumsum(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const bool reverse = call.boolean("reverse", false), exclusive = call.boolean("exclusive", false);
  if (call.failed()) return {};
  const std::int64_t axis = call.axis("axis", x.type, 0);
  if (call.failed() || !call.canEmit() || !checkNumbers(call, x)) return {};
  const Datum sums = call.ops().create(OpKind::Cumsum, {x},
                                       {{"axis", axis}, {"reverse", reverse}, {"exclusive", exclusive}}, call.range());
  return sums.isError() ? Datum{} : call.ops().cast(*sums.as<TensorDatum>(), x.type.dtype, call.range());
}

// sort and argsort
Datum buildSort(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const bool descending = call.boolean("descending", false);
  if (call.failed()) return {};
  const std::int64_t axis = call.axis("axis", x.type, -1);
  if (call.failed() || !call.canEmit() || !checkNumbers(call, x)) return {};
  const OpKind kind = call.name() == "sort" ? OpKind::Sort : OpKind::Argsort;
  return call.ops().create(kind, {x}, {{"axis", axis}, {"descending", descending}}, call.range());
}

Datum buildTopK(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const std::int64_t k = call.integer("k");
  if (call.failed()) return {};
  const std::int64_t axis = call.axis("axis", x.type, -1);
  if (call.failed() || !call.canEmit() || !checkNumbers(call, x)) return {};
  const std::int64_t size = x.type.shape[static_cast<std::size_t>(axis)];
  if (k < 0 || k > size) {
    call.sink()
        .emit(call.range("k"), diag::ValueDoesNotFit, std::string("`k` of `top_k`"), "`" + std::to_string(k) + "`",
              "0 to " + std::to_string(size) + ", the size of dim " + std::to_string(axis) + " of `" +
                  printType(x.type) + "`,")
        .label(call.range("x"), printType(x.type));
    return {};
  }
  return call.ops().createTuple(OpKind::TopK, {x}, {{"k", k}, {"axis", axis}}, call.range());
}

}  // namespace gshard::sema
