// Builtins that move elements: reshape, transpose, concat and their relatives.
#include <algorithm>

#include "sema/builtins.h"
#include "sema/diagnostics.h"
#include "support/checked.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

// Tensors of a list have one dtype and, but for dim `except`, one shape.
bool checkAlike(BuiltinCall& call, const std::vector<TensorDatum>& parts, std::int64_t except) {
  for (const TensorDatum& part : parts) {
    bool alike = part.type.dtype == parts.front().type.dtype && part.type.rank() == parts.front().type.rank();
    for (std::int64_t d = 0; alike && d < part.type.rank(); ++d) {
      const auto at = static_cast<std::size_t>(d);
      alike = d == except || part.type.shape[at] == parts.front().type.shape[at];
    }
    if (alike) continue;
    call.sink()
        .emit(call.range(), diag::ConcatDims, printType(parts.front().type), printType(part.type), except)
        .label(call.ops().build().function().value(parts.front().id).range, printType(parts.front().type))
        .label(call.ops().build().function().value(part.id).range, printType(part.type));
    return false;
  }
  return true;
}

// A parameter that is one int for all dims, or one per dim.
std::vector<std::int64_t> perDim(BuiltinCall& call, std::string_view parameter, std::int64_t rank,
                                 std::int64_t fallback) {
  if (!call.given(parameter)) return std::vector<std::int64_t>(static_cast<std::size_t>(rank), fallback);
  std::vector<std::int64_t> values = call.integers(parameter);
  if (call.failed()) return values;
  if (call.datum(parameter).is<IntDatum>())
    return std::vector<std::int64_t>(static_cast<std::size_t>(rank), values.front());
  if (static_cast<std::int64_t>(values.size()) != rank) {
    call.mismatch(parameter, "a list of " + plural(rank, "int") + ", one per dim");
  }
  return values;
}

}  // namespace

Datum buildReshape(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  std::vector<std::int64_t> shape = call.integers("shape");
  if (call.failed() || !call.canEmit()) return {};
  std::int64_t known = 1, open = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && open < 0) {
      open = static_cast<std::int64_t>(i);
      continue;
    }
    if (shape[i] < 0) {
      call.sink().emit(call.range("shape"), diag::NegativeSize, static_cast<std::int64_t>(i), shape[i]);
      return {};
    }
    const std::optional<std::int64_t> product = checkedMul(known, shape[i]);
    if (!product) {
      call.sink().emit(call.range("shape"), diag::SizeOverflow, printShape(shape));
      return {};
    }
    known = *product;
  }
  const std::int64_t elements = x.type.elements();
  if (open >= 0 && known > 0 && elements % known == 0) {
    shape[static_cast<std::size_t>(open)] = elements / known;
    known = elements;
  }
  if (known != elements || (open >= 0 && shape[static_cast<std::size_t>(open)] < 0)) {
    call.sink()
        .emit(call.range(), diag::ReshapeElements, printType(x.type), elements, printShape(shape), known)
        .label(call.range("x"), printType(x.type));
    return {};
  }
  return call.ops().reshape(x, shape, call.range());
}

Datum buildTranspose(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  if (call.failed() || !call.canEmit()) return {};
  const std::int64_t rank = x.type.rank();
  std::vector<std::int64_t> permutation;
  if (!call.given("permutation") || call.datum("permutation").is<NoneDatum>()) {
    for (std::int64_t i = rank; i > 0; --i) permutation.push_back(i - 1);
  } else {
    permutation = call.integers("permutation");
    if (call.failed()) return {};
    std::vector<std::int64_t> sorted;
    for (std::int64_t& dim : permutation) {
      if (dim < 0) dim += rank;
      sorted.push_back(dim);
    }
    std::sort(sorted.begin(), sorted.end());
    bool good = static_cast<std::int64_t>(sorted.size()) == rank;
    for (std::size_t i = 0; good && i < sorted.size(); ++i) good = sorted[i] == static_cast<std::int64_t>(i);
    if (!good) {
      call.sink().emit(call.range("permutation"), diag::NoPermutation, printDatum(call.datum("permutation")),
                       printType(x.type));
      return {};
    }
  }
  return call.ops().transpose(x, permutation, call.range());
}

Datum buildBroadcast(BuiltinCall& call) {
  const Datum& datum = call.datum("x");
  const std::vector<std::int64_t> shape = call.shapeArgument();
  if (call.failed() || !call.canEmit()) return {};
  if (datum.isNumber() || datum.is<ChoiceDatum>()) {
    call.sink()
        .emit(call.range("x"), diag::DTypeUnknown, std::string("`broadcast`"))
        .help("`full(shape, value, dtype)` makes a tensor of a number");
    return {};
  }
  const TensorDatum x = call.tensor("x");
  if (call.failed()) return {};
  bool good = x.type.shape.size() <= shape.size();
  for (std::size_t i = 0; good && i < x.type.shape.size(); ++i) {
    const std::int64_t from = x.type.shape[i], to = shape[shape.size() - x.type.shape.size() + i];
    good = from == to || from == 1;
  }
  if (!good) {
    call.sink().emit(call.range(), diag::BroadcastDims, printType(x.type), printShape(shape),
                     std::string("dims are aligned at the end; sizes must be equal, or 1 in the operand"));
    return {};
  }
  if (!checkSize({x.type.dtype, shape}, call.range(), call.sink())) return {};
  return call.ops().broadcastTo(x, shape, call.range());
}

Datum buildConcat(BuiltinCall& call) {
  const std::vector<TensorDatum> parts = call.tensors("parts");
  if (call.failed() || !call.canEmit()) return {};
  const std::int64_t axis = call.axis("axis", parts.front().type, 0);
  if (call.failed() || !checkAlike(call, parts, axis)) return {};
  return call.ops().concat(parts, axis, call.range());
}

Datum buildStack(BuiltinCall& call) {
  const std::vector<TensorDatum> parts = call.tensors("parts");
  if (call.failed() || !call.canEmit()) return {};
  if (!checkAlike(call, parts, -1)) return {};
  Type stacked = parts.front().type;
  stacked.shape.push_back(1);
  const std::int64_t axis = call.axis("axis", stacked, 0);
  if (call.failed()) return {};
  std::vector<std::int64_t> shape = parts.front().type.shape;
  shape.insert(shape.begin() + axis, 1);
  std::vector<TensorDatum> widened;
  for (const TensorDatum& part : parts) {
    const Datum one = call.ops().reshape(part, shape, call.range());
    if (one.isError()) return {};
    widened.push_back(*one.as<TensorDatum>());
  }
  return call.ops().concat(widened, axis, call.range());
}

Datum buildSplit(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  if (call.failed() || !call.canEmit()) return {};
  const std::int64_t axis = call.axis("axis", x.type, 0);
  if (call.failed()) return {};
  const std::int64_t size = x.type.shape[static_cast<std::size_t>(axis)];
  std::vector<std::int64_t> sizes;
  if (const auto* n = call.datum("n").as<IntDatum>()) {
    if (n->value <= 0 || size % n->value != 0) {
      call.sink()
          .emit(call.range(), diag::SplitDoesNotDivide, n->value, axis, size)
          .help("a list of sizes splits unevenly: `split(x, [sizes], axis: …)`");
      return {};
    }
    sizes.assign(static_cast<std::size_t>(n->value), size / n->value);
  } else {
    sizes = call.integers("n");
    if (call.failed()) return {};
    std::int64_t total = 0;
    bool good = !sizes.empty();
    for (const std::int64_t part : sizes) {
      good = good && part >= 0 && part <= size;
      if (good) total += part;
    }
    if (!good || total != size) {
      call.sink().emit(call.range("n"), diag::SplitSizes, printDatum(call.datum("n")), axis, size);
      return {};
    }
  }
  std::vector<Datum> parts;
  std::int64_t start = 0;
  for (const std::int64_t part : sizes) {
    parts.push_back(call.ops().slice(x, axis, start, start + part, 1, call.range()));
    start += part;
  }
  return makeList(std::move(parts));
}

Datum buildPad(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  if (call.failed() || !call.canEmit()) return {};
  const std::int64_t rank = x.type.rank();
  const std::vector<std::int64_t> low = perDim(call, "low", rank, 0), high = perDim(call, "high", rank, 0),
                                  interior = perDim(call, "interior", rank, 0);
  if (call.failed()) return {};
  for (std::int64_t d = 0; d < rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    const std::int64_t size = x.type.shape[at];
    const std::optional<std::int64_t> holes = checkedMul(interior[at], size > 0 ? size - 1 : 0);
    std::optional<std::int64_t> total = holes ? checkedAdd(*holes, size) : std::nullopt;
    if (total) total = checkedAdd(*total, low[at]);
    if (total) total = checkedAdd(*total, high[at]);
    if (interior[at] < 0 || !total || *total < 0) {
      call.sink().emit(call.range(), diag::PadNegative, d, size, total.value_or(-1));
      return {};
    }
  }
  const Datum value = call.given("value") ? call.datum("value") : makeInt(0);
  if (const auto* tensor = value.as<TensorDatum>(); tensor != nullptr && !tensor->type.isScalar()) {
    call.mismatch("value", "a number or a scalar");
    return {};
  }
  const Datum number =
      x.type.dtype == DType::Bool && value.is<IntDatum>() && !call.given("value") ? makeBool(false) : value;
  const std::optional<TensorDatum> scalar = call.ops().adapt(number, x.type.dtype, call.range("value"));
  if (!scalar) return {};
  return call.ops().create(OpKind::Pad, {x, *scalar}, {{"low", low}, {"high", high}, {"interior", interior}},
                           call.range());
}

Datum buildReverse(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  if (call.failed() || !call.canEmit()) return {};
  const std::vector<std::int64_t> dims = call.axes("axis", x.type);
  return call.failed() ? Datum{} : call.ops().reverse(x, dims, call.range());
}

// One roll after the other; `shift` is one for all axes or one each.
Datum buildRoll(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  std::vector<std::int64_t> shifts = call.integers("shift"), axes = call.integers("axis");
  if (call.failed() || !call.canEmit()) return {};
  if (call.datum("shift").is<IntDatum>()) shifts.assign(axes.size(), shifts.front());
  if (shifts.size() != axes.size()) {
    call.mismatch("shift",
                  "one int, or a list of " + plural(static_cast<std::int64_t>(axes.size()), "int") + ", one per axis,");
    return {};
  }
  call.axes("axis", x.type);  // in range, and named once
  if (call.failed()) return {};
  Datum value = x;
  for (std::size_t i = 0; i < axes.size() && !value.isError(); ++i) {
    const std::int64_t dim = axes[i] < 0 ? axes[i] + x.type.rank() : axes[i];
    const std::int64_t size = x.type.shape[static_cast<std::size_t>(dim)];
    const std::int64_t shift = size == 0 ? 0 : (shifts[i] % size + size) % size;
    if (shift == 0) continue;
    value = call.ops().create(OpKind::Roll, {*value.as<TensorDatum>()}, {{"dim", dim}, {"shift", shift}}, call.range());
  }
  return value;
}

}  // namespace gshard::sema
