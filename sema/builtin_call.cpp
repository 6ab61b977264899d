// Arguments of builtins by name, and the table of builtins.
#include "sema/builtin_call.h"

#include <algorithm>
#include <map>

#include "sema/builtins.h"
#include "sema/diagnostics.h"
#include "support/check.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

constexpr BuiltinRow kRows[] = {
#define GSHARD_BUILTIN(name, builder, signature) {#name, signature, builder},
#include "sema/builtins.def"
#undef GSHARD_BUILTIN
};

// "sum(x, axis: none, keepdims: false)": a parameter without default is required, one with `...` takes all the rest.
Signature parseSignature(const BuiltinRow& row) {
  Signature result;
  result.name = row.name;
  result.text = row.signature;
  const std::string_view inside = row.signature.substr(row.name.size() + 1, row.signature.size() - row.name.size() - 2);
  int depth = 0;
  std::string part;
  const auto finish = [&] {
    const std::string_view text = trim(part);
    if (text.empty()) return;
    SignatureParameter parameter;
    const std::size_t colon = text.find(':');
    parameter.name = std::string(trim(text.substr(0, colon)));
    parameter.required = colon == std::string_view::npos || trim(text.substr(colon + 1)).empty();
    if (parameter.name.ends_with("...")) {
      parameter.name.resize(parameter.name.size() - 3);
      parameter.variadic = true;
    }
    result.parameters.push_back(std::move(parameter));
    part.clear();
  };
  for (const char c : inside) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == ',' && depth == 0) {
      finish();
    } else {
      part += c;
    }
  }
  finish();
  return result;
}

struct Table {
  std::map<std::string, const BuiltinRow*, std::less<>> rows;
  std::map<const BuiltinRow*, Signature> signatures;
};
const Table& table() {
  static const Table kTable = [] {
    Table made;
    for (const BuiltinRow& row : kRows) {
      made.rows.emplace(row.name, &row);
      made.signatures.emplace(&row, parseSignature(row));
    }
    return made;
  }();
  return kTable;
}

const Datum kNone{NoneDatum{}};

}  // namespace

const BuiltinRow* findBuiltin(std::string_view name) {
  const auto found = table().rows.find(name);
  return found == table().rows.end() ? nullptr : found->second;
}

std::vector<std::string> builtinNames() {
  std::vector<std::string> names;
  for (const auto& [name, row] : table().rows) names.push_back(name);
  return names;
}

const Signature& signatureOf(const BuiltinRow& row) {
  return table().signatures.at(&row);
}

std::size_t BuiltinCall::indexOf(std::string_view parameter) const {
  const std::vector<SignatureParameter>& parameters = signatureOf(*row_).parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == parameter) return i;
  }
  GSHARD_UNREACHABLE("`" + std::string(row_->name) + "` has no parameter `" + std::string(parameter) + "`");
}

bool BuiltinCall::canEmit() {
  if (context_->ops != nullptr) return true;
  sink().emit(range_, diag::TensorOutsideFunction, "`" + std::string(name()) + "`");
  failed_ = true;
  return false;
}

bool BuiltinCall::given(std::string_view parameter) const {
  return !bound_[indexOf(parameter)].empty();
}

SourceRange BuiltinCall::range(std::string_view parameter) const {
  const std::vector<std::size_t>& slot = bound_[indexOf(parameter)];
  return slot.empty() ? range_ : arguments_[slot.front()].range;
}

const Datum& BuiltinCall::datum(std::string_view parameter) {
  const std::vector<std::size_t>& slot = bound_[indexOf(parameter)];
  if (slot.empty()) return kNone;
  const Datum& value = arguments_[slot.front()].value;
  if (value.isError()) failed_ = true;
  return value;
}

std::vector<Datum> BuiltinCall::data(std::string_view parameter, std::vector<SourceRange>& ranges) {
  std::vector<Datum> result;
  for (const std::size_t index : bound_[indexOf(parameter)]) {
    result.push_back(arguments_[index].value);
    ranges.push_back(arguments_[index].range);
    if (result.back().isError()) failed_ = true;
  }
  return result;
}

void BuiltinCall::mismatch(std::string_view parameter, std::string_view wanted) {
  failed_ = true;
  const Datum& value = datum(parameter);
  if (value.isError()) return;
  if (context_->ops == nullptr && kindOf(value) == "tensor") {  // a parameter, where models are made
    canEmit();
    return;
  }
  sink()
      .emit(range(parameter), diag::ArgumentDoesNotFit, std::string(parameter), std::string(name()), describe(value),
            std::string(wanted))
      .note("signature: `" + std::string(row_->signature) + "`");
}

TensorDatum BuiltinCall::tensor(std::string_view parameter) {
  const Datum& value = datum(parameter);
  if (const auto* tensor = value.as<TensorDatum>()) return *tensor;
  mismatch(parameter, "a tensor");
  return {};
}

std::vector<TensorDatum> BuiltinCall::tensors(std::string_view parameter) {
  const Datum& value = datum(parameter);
  const auto* list = value.as<ListDatum>();
  const std::vector<Datum>* items = list != nullptr ? list->items.get() : nullptr;
  if (const auto* tuple = value.as<TupleDatum>()) items = tuple->items.get();
  std::vector<TensorDatum> result;
  if (items != nullptr && !items->empty()) {
    for (const Datum& item : *items) {
      if (const auto* tensor = item.as<TensorDatum>()) {
        result.push_back(*tensor);
      } else if (item.isError()) {
        failed_ = true;
        return {};
      }
    }
    if (result.size() == items->size()) return result;
  }
  mismatch(parameter, "a list of tensors");
  return {};
}

std::int64_t BuiltinCall::integer(std::string_view parameter, std::int64_t fallback) {
  if (!given(parameter)) return fallback;
  if (const auto* i = datum(parameter).as<IntDatum>()) return i->value;
  mismatch(parameter, "a compile-time int");
  return fallback;
}

bool BuiltinCall::boolean(std::string_view parameter, bool fallback) {
  if (!given(parameter)) return fallback;
  if (const auto* b = datum(parameter).as<BoolDatum>()) return b->value;
  mismatch(parameter, "a compile-time bool");
  return fallback;
}

double BuiltinCall::number(std::string_view parameter, double fallback) {
  if (!given(parameter)) return fallback;
  if (datum(parameter).isNumber()) return numberOf(datum(parameter));
  mismatch(parameter, "a compile-time number");
  return fallback;
}

DType BuiltinCall::dtype(std::string_view parameter, DType fallback) {
  if (!given(parameter)) return fallback;
  if (const auto* d = datum(parameter).as<DTypeDatum>()) return d->value;
  mismatch(parameter, "a dtype");
  return fallback;
}

std::vector<std::int64_t> BuiltinCall::integers(std::string_view parameter) {
  const Datum& value = datum(parameter);
  if (const auto* i = value.as<IntDatum>()) return {i->value};
  if (const auto* list = value.as<ListDatum>()) {
    std::vector<std::int64_t> result;
    for (const Datum& item : *list->items) {
      if (const auto* i = item.as<IntDatum>()) result.push_back(i->value);
      if (!item.isError()) continue;
      failed_ = true;
      return {};
    }
    if (result.size() == list->items->size()) return result;
  }
  mismatch(parameter, "a list of compile-time ints");
  return {};
}

std::string BuiltinCall::text(std::string_view parameter) {
  if (const auto* s = datum(parameter).as<StringDatum>()) return s->value;
  mismatch(parameter, "a string");
  return {};
}

std::int64_t BuiltinCall::axis(std::string_view parameter, const Type& of, std::int64_t fallback) {
  const std::int64_t rank = of.rank();
  const std::string shown = printType(of);
  const std::int64_t written = integer(parameter, fallback);
  if (failed_) return 0;
  const std::int64_t axis = written < 0 ? written + rank : written;
  if (axis >= 0 && axis < rank) return axis;
  failed_ = true;
  sink().emit(range(parameter), diag::AxisOutOfRange, written, shown, rank);
  return 0;
}

std::vector<std::int64_t> BuiltinCall::axes(std::string_view parameter, const Type& of) {
  const std::int64_t rank = of.rank();
  const std::string shown = printType(of);
  std::vector<std::int64_t> result;
  if (!given(parameter) || datum(parameter).is<NoneDatum>()) {
    for (std::int64_t i = 0; i < rank; ++i) result.push_back(i);
    return result;
  }
  for (const std::int64_t written : integers(parameter)) {
    const std::int64_t axis = written < 0 ? written + rank : written;
    if (axis < 0 || axis >= rank) {
      failed_ = true;
      sink().emit(range(parameter), diag::AxisOutOfRange, written, shown, rank);
      return {};
    }
    if (std::find(result.begin(), result.end(), axis) != result.end()) {
      failed_ = true;
      sink().emit(range(parameter), diag::DimsRepeated, axis);
      return {};
    }
    result.push_back(axis);
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::int64_t> BuiltinCall::shapeArgument() {
  if (!given("shape") && context_->declared) return context_->declared->shape;
  const std::vector<std::int64_t> shape = integers("shape");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    failed_ = true;
    sink().emit(range("shape"), diag::NegativeSize, static_cast<std::int64_t>(i), shape[i]);
    break;
  }
  return shape;
}

DType BuiltinCall::dtypeArgument() {
  if (!given("dtype") && context_->declared) return context_->declared->dtype;
  return dtype("dtype", context_->real);
}

}  // namespace gshard::sema
