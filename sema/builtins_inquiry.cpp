// Builtins about values: compile-time conversions, shapes, gradients; and the one place that answers for builtins whose
// ops do not exist yet.
#include <cmath>

#include "ir/autodiff.h"
#include "sema/builtins.h"
#include "sema/diagnostics.h"

namespace gshard::sema {

Datum buildInt(BuiltinCall& call) {
  const Datum& v = call.datum("v");
  if (v.is<IntDatum>()) return v;
  if (const auto* b = v.as<BoolDatum>()) return makeInt(b->value ? 1 : 0);
  const auto* f = v.as<FloatDatum>();
  if (f == nullptr) {
    call.mismatch("v", "a compile-time number");
    return {};
  }
  const double whole = std::trunc(f->value);
  if (whole >= -9223372036854775808.0 && whole < 9223372036854775808.0) {
    return IntDatum{static_cast<std::int64_t>(whole), f->rows};
  }
  call.sink().emit(call.range(), diag::NumberOutOfRange, printDatum(v), std::string("int"));
  return {};
}

Datum buildFloat(BuiltinCall& call) {
  const Datum& v = call.datum("v");
  if (v.is<FloatDatum>()) return v;
  if (const auto* i = v.as<IntDatum>()) return FloatDatum{static_cast<double>(i->value), derived(i->rows, i->rows)};
  call.mismatch("v", "a compile-time number");
  return {};
}

Datum buildLen(BuiltinCall& call) {
  const Datum& list = call.datum("list");
  if (const auto* l = list.as<ListDatum>()) return makeInt(static_cast<std::int64_t>(l->items->size()));
  if (const auto* t = list.as<TupleDatum>()) return makeInt(static_cast<std::int64_t>(t->items->size()));
  if (const auto* r = list.as<RangeDatum>()) return makeInt(std::max<std::int64_t>(r->high - r->low, 0));
  call.mismatch("list", "a list");
  return {};
}

Datum buildRank(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  return call.failed() ? Datum{} : makeInt(x.type.rank());
}

Datum buildShape(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  if (call.failed() || !call.canEmit()) return {};
  std::vector<Datum> sizes;
  for (std::int64_t dim = 0; dim < x.type.rank(); ++dim) sizes.push_back(call.ops().dimSize(x, dim));
  return makeList(std::move(sizes));
}

Datum buildDType(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  return call.failed() ? Datum{} : Datum(DTypeDatum{x.type.dtype});
}

Datum buildGrad(BuiltinCall& call) {
  const TensorDatum y = call.tensor("y");
  const Datum& x = call.datum("x");
  if (call.failed() || !call.canEmit()) return {};
  if (!y.type.isScalar() || !isFloat(y.type.dtype)) {
    call.mismatch("y", "a float scalar");
    return {};
  }
  const auto* tuple = x.as<TupleDatum>();
  const auto* list = x.as<ListDatum>();
  const bool many = tuple != nullptr || list != nullptr;
  std::vector<TensorDatum> sources;
  if (many) {
    sources = [&] {
      std::vector<TensorDatum> found;
      for (const Datum& item : tuple != nullptr ? *tuple->items : *list->items) {
        if (const auto* tensor = item.as<TensorDatum>()) found.push_back(*tensor);
      }
      return found;
    }();
    if (sources.size() != (tuple != nullptr ? tuple->items : list->items)->size()) {
      call.mismatch("x", "a float tensor, or a tuple of them");
      return {};
    }
  } else {
    sources.push_back(call.tensor("x"));
  }
  if (call.failed()) return {};
  std::vector<ValueId> ids;
  for (const TensorDatum& source : sources) {
    if (!isFloat(source.type.dtype)) {
      call.mismatch("x", "a float tensor, or a tuple of them");
      return {};
    }
    ids.push_back(source.id);
  }
  Builder& builder = call.ops().builder();
  const Phase phase = builder.phase();
  const std::vector<ValueId> gradientIds = gradients(builder, y.id, ids, call.ops().build().recomputed());
  builder.setPhase(phase);
  std::vector<Datum> results;
  for (const ValueId id : gradientIds) results.push_back(call.ops().make(id, call.range()));
  if (results.size() != sources.size()) return {};
  if (!many) return results.front();
  return tuple != nullptr ? makeTuple(std::move(results)) : makeList(std::move(results));
}

Datum buildNotSupported(BuiltinCall& call) {
  call.sink().emit(call.range(), diag::NotSupportedYet, "`" + std::string(call.name()) + "` is");
  return {};
}

}  // namespace gshard::sema
