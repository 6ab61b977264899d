// Tensors made from nothing, and builtins that look elements up by index.
#include "sema/builtins.h"
#include "sema/diagnostics.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

// Indices of any integer type; bool and floats are none.
bool checkIndex(BuiltinCall& call, std::string_view parameter, const TensorDatum& index) {
  if (isInteger(index.type.dtype)) return true;
  call.mismatch(parameter, "a tensor of integers");
  return false;
}

// u8 widens: the IR indexes by i32 and i64.
Datum widenIndex(BuiltinCall& call, const TensorDatum& index) {
  return index.type.dtype == DType::U8 ? call.ops().cast(index, DType::I32, call.range()) : Datum(index);
}

// The shape of take(x, i, axis, batch), or a report.
std::optional<std::vector<std::int64_t>> takeShape(BuiltinCall& call, const TensorDatum& x, const TensorDatum& index,
                                                   std::int64_t axis, std::int64_t batch) {
  bool good = batch >= 0 && batch <= axis && batch <= index.type.rank();
  for (std::int64_t d = 0; good && d < batch; ++d) {
    good = x.type.shape[static_cast<std::size_t>(d)] == index.type.shape[static_cast<std::size_t>(d)];
  }
  if (!good) {
    call.sink()
        .emit(call.range(), diag::TakeBatch, batch, batch, printType(x.type), printType(index.type))
        .note("the first `batch` dims of tensor and index are the same ones, and `axis` comes after them");
    return std::nullopt;
  }
  std::vector<std::int64_t> shape(x.type.shape.begin(), x.type.shape.begin() + axis);
  shape.insert(shape.end(), index.type.shape.begin() + batch, index.type.shape.end());
  shape.insert(shape.end(), x.type.shape.begin() + axis + 1, x.type.shape.end());
  return shape;
}

// The starts of a window of `size` in x: one int or run-time integer scalar per dim. Ints are checked here.
std::optional<std::vector<TensorDatum>> windowStarts(BuiltinCall& call, const TensorDatum& x,
                                                     const std::vector<std::int64_t>& size) {
  const Datum& written = call.datum("start");
  std::vector<Datum> items{written};
  if (const auto* list = written.as<ListDatum>()) items = *list->items;
  if (const auto* tuple = written.as<TupleDatum>()) items = *tuple->items;
  if (items.size() != x.type.shape.size()) {
    call.mismatch("start", "a list of " + plural(x.type.rank(), "start") +
                               ", ints or integer scalars, one per dim of `" + printType(x.type) + "`,");
    return std::nullopt;
  }
  std::vector<TensorDatum> starts;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Datum& item = items[i];
    if (item.isError()) return std::nullopt;
    if (const auto* number = item.as<IntDatum>()) {
      const std::int64_t last = x.type.shape[i] - size[i];
      if (number->value < 0 || number->value > last) {
        call.sink().emit(call.range("start"), diag::ValueDoesNotFit,
                         "the start of dim " + std::to_string(i) + " of `" + printType(x.type) + "`",
                         "`" + std::to_string(number->value) + "`", "0 to " + std::to_string(last));
        return std::nullopt;
      }
      const auto constant = call.ops().constant(item, DType::I64, call.range("start"));
      if (!constant) return std::nullopt;
      starts.push_back(*constant);
      continue;
    }
    const auto* tensor = item.as<TensorDatum>();
    if (tensor == nullptr || !tensor->type.isScalar() || !isInteger(tensor->type.dtype)) {
      call.sink().emit(call.range("start"), diag::StandsWhere, describe(item),
                       std::string("an int or an integer scalar"));
      return std::nullopt;
    }
    const Datum wide = widenIndex(call, *tensor);
    if (wide.isError()) return std::nullopt;
    starts.push_back(*wide.as<TensorDatum>());
  }
  return starts;
}

// Whether a window of this shape has a place in x; reports where it has none.
bool checkWindow(BuiltinCall& call, std::string_view parameter, const TensorDatum& x,
                 const std::vector<std::int64_t>& size) {
  bool fits = size.size() == x.type.shape.size();
  for (std::size_t i = 0; fits && i < size.size(); ++i) fits = size[i] >= 0 && size[i] <= x.type.shape[i];
  if (fits) return true;
  call.mismatch(parameter,
                "a shape of " + plural(x.type.rank(), "dim") + " that fits into `" + printType(x.type) + "`");
  return false;
}

}  // namespace

Datum buildConstantTensor(BuiltinCall& call) {
  const std::vector<std::int64_t> shape = call.shapeArgument();
  const DType dtype = call.dtypeArgument();
  if (call.failed() || !call.canEmit()) return {};
  const bool one = call.name() == "ones";
  return call.ops().full(shape, dtype == DType::Bool ? makeBool(one) : makeInt(one ? 1 : 0), dtype, call.range());
}

Datum buildFull(BuiltinCall& call) {
  const std::vector<std::int64_t> shape = call.shapeArgument();
  const Datum value = call.datum("value");
  DType dtype = call.dtypeArgument();
  if (const auto* tensor = value.as<TensorDatum>();
      tensor != nullptr && !call.given("dtype") && !call.context().declared) {
    dtype = tensor->type.dtype;
  }
  if (call.failed() || !call.canEmit()) return {};
  return call.ops().full(shape, value, dtype, call.range());
}

Datum buildLike(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  if (call.failed() || !call.canEmit()) return {};
  const bool one = call.name() == "ones_like";
  const Datum value = x.type.dtype == DType::Bool ? makeBool(one) : makeInt(one ? 1 : 0);
  return call.ops().full(x.type.shape, value, x.type.dtype, call.range());
}

Datum buildIota(BuiltinCall& call) {
  const std::vector<std::int64_t> shape = call.shapeArgument();
  if (call.failed() || !call.canEmit()) return {};
  const std::int64_t axis = call.axis("axis", Type{DType::I32, shape}, 0);
  return call.failed() ? Datum{} : call.ops().iota(shape, axis, call.range());
}

Datum buildTake(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const Datum& written = call.datum("i");
  if (call.failed() || !call.canEmit()) return {};
  const std::int64_t batch = call.integer("batch", 0);
  const std::int64_t axis = call.axis("axis", x.type, 0);
  if (call.failed()) return {};
  TensorDatum index;
  if (written.is<IntDatum>()) {
    const std::int64_t i = written.as<IntDatum>()->value, size = x.type.shape[static_cast<std::size_t>(axis)];
    if (i < 0 || i >= size) {
      call.sink().emit(call.range("i"), diag::IndexOutOfRange, i,
                       "dim " + std::to_string(axis) + " of size " + std::to_string(size));
      return {};
    }
    const auto constant = call.ops().constant(written, DType::I64, call.range("i"));
    if (!constant) return {};
    index = *constant;
  } else {
    index = call.tensor("i");
  }
  if (call.failed() || !checkIndex(call, "i", index)) return {};
  if (!takeShape(call, x, index, axis, batch)) return {};
  const Datum wide = widenIndex(call, index);
  return wide.isError() ? Datum{} : call.ops().take(x, *wide.as<TensorDatum>(), axis, batch, call.range());
}

Datum buildScatterAdd(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x"), index = call.tensor("i");
  const Datum written = call.datum("u");
  if (call.failed() || !call.canEmit()) return {};
  const std::int64_t batch = call.integer("batch", 0);
  const std::int64_t axis = call.axis("axis", x.type, 0);
  if (call.failed() || !checkIndex(call, "i", index)) return {};
  const std::optional<std::vector<std::int64_t>> wanted = takeShape(call, x, index, axis, batch);
  if (!wanted) return {};
  const auto updates = call.ops().adapt(written, x.type.dtype, call.range("u"));
  if (!updates) return {};
  TensorDatum rows = *updates;
  if (rows.type.isScalar()) {
    const Datum stretched = call.ops().broadcastTo(rows, *wanted, call.range("u"));
    if (stretched.isError()) return {};
    rows = *stretched.as<TensorDatum>();
  }
  if (rows.type.shape != *wanted) {
    call.sink()
        .emit(call.range("u"), diag::UpdatesShape, printType(rows.type), printShape(*wanted))
        .note("updates have the shape of `take(x, i, axis: …, batch: …)`");
    return {};
  }
  const Datum wide = widenIndex(call, index);
  if (wide.isError()) return {};
  return call.ops().create(OpKind::ScatterAdd, {x, *wide.as<TensorDatum>(), rows}, {{"axis", axis}, {"batch", batch}},
                           call.range());
}

Datum buildOneHot(BuiltinCall& call) {
  const TensorDatum index = call.tensor("i");
  const std::int64_t n = call.integer("n");
  const DType dtype = call.dtypeArgument();
  if (call.failed() || !call.canEmit() || !checkIndex(call, "i", index)) return {};
  if (n < 0) {
    call.sink().emit(call.range("n"), diag::NegativeSize, index.type.rank(), n);
    return {};
  }
  // Compares with every index, so that one outside 0 … n - 1 gives zeros and a split of n needs nothing from elsewhere.
  TensorOps& ops = call.ops();
  const Datum wide = widenIndex(call, index);
  if (wide.isError()) return {};
  std::vector<std::int64_t> shape = index.type.shape;
  shape.push_back(1);
  const Datum column = ops.reshape(*wide.as<TensorDatum>(), shape, call.range());
  Datum classes = ops.iota({n}, 0, call.range());
  if (column.isError() || classes.isError()) return {};
  classes = ops.cast(*classes.as<TensorDatum>(), column.as<TensorDatum>()->type.dtype, call.range());
  if (classes.isError()) return {};
  const Datum hit = ops.map("eq", {*column.as<TensorDatum>(), *classes.as<TensorDatum>()}, call.range());
  return hit.isError() ? Datum{} : ops.cast(*hit.as<TensorDatum>(), dtype, call.range());
}

Datum buildDynamicSlice(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const std::vector<std::int64_t> size = call.integers("size");
  if (call.failed() || !call.canEmit() || !checkWindow(call, "size", x, size)) return {};
  const auto starts = windowStarts(call, x, size);
  if (!starts) return {};
  std::vector<TensorDatum> operands{x};
  operands.insert(operands.end(), starts->begin(), starts->end());
  return call.ops().create(OpKind::DynamicSlice, operands, {{"size", size}}, call.range());
}

Datum buildDynamicUpdate(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const Datum written = call.datum("u");
  if (call.failed() || !call.canEmit()) return {};
  const auto update = call.ops().adapt(written, x.type.dtype, call.range("u"));
  if (!update || !checkWindow(call, "u", x, update->type.shape)) return {};
  const auto starts = windowStarts(call, x, update->type.shape);
  if (!starts) return {};
  std::vector<TensorDatum> operands{x, *update};
  operands.insert(operands.end(), starts->begin(), starts->end());
  return call.ops().create(OpKind::DynamicUpdate, operands, {}, call.range());
}

}  // namespace gshard::sema
