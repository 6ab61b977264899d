// Emitting ops for operators and builtins.
#include "sema/tensor_ops.h"

#include <algorithm>
#include <limits>

#include "sema/diagnostics.h"
#include "support/checked.h"

namespace gshard::sema {

namespace {

struct IntegerLimits {
  std::int64_t low = 0, high = 0;
};
IntegerLimits limitsOf(DType dtype) {
  switch (dtype) {
    case DType::I32:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    case DType::U8:
      return {0, 255};
    case DType::I64:
    case DType::F32:
    case DType::F64:
    case DType::BF16:
    case DType::F16:
    case DType::Bool:
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  }
  return {};
}

std::vector<ValueId> idsOf(const std::vector<TensorDatum>& tensors) {
  std::vector<ValueId> ids;
  for (const TensorDatum& tensor : tensors) ids.push_back(tensor.id);
  return ids;
}

}  // namespace

bool checkSize(const Type& type, SourceRange range, DiagSink& sink) {
  const std::optional<std::int64_t> elements = checkedProduct(type.shape);
  if (elements && checkedMul(*elements, byteSize(type.dtype))) return true;
  sink.emit(range, diag::SizeOverflow, printType(type));
  return false;
}

Datum TensorOps::make(ValueId id, SourceRange range) {
  if (!id.known()) return {};
  const Type& type = build_->type(id);
  if (!checkSize(type, range, *sink_)) return {};
  return TensorDatum{id, type, nullptr};
}

Datum TensorOps::create(OpKind kind, const std::vector<TensorDatum>& operands, Attributes attributes, SourceRange range,
                        std::string name) {
  return make(builder().create(kind, idsOf(operands), std::move(attributes), range, std::move(name)), range);
}

Datum TensorOps::createTuple(OpKind kind, const std::vector<TensorDatum>& operands, Attributes attributes,
                             SourceRange range) {
  std::vector<Datum> items;
  for (const ValueId id : builder().createAll(kind, idsOf(operands), std::move(attributes), range)) {
    items.push_back(make(id, range));
    if (items.back().isError()) return {};
  }
  return items.empty() ? Datum{} : makeTuple(std::move(items));
}

std::optional<Literal> TensorOps::literal(const Datum& value, DType dtype, SourceRange range) {
  if (const auto* i = value.as<IntDatum>()) {
    if (dtype == DType::Bool) {
      sink_->emit(range, diag::StandsWhere, describe(value), std::string("`bool`"))
          .help("compare it, or write `true` or `false`");
      return std::nullopt;
    }
    if (i->rows != RowsUse::None) {
      sink_->emit(range, diag::RowsKnownAtRunTime, i->value)
          .note("the last block of rows may be shorter than the block that is compiled")
          .help("`mean`, or the row dim itself, counts the rows there are");
      return std::nullopt;
    }
    if (isFloat(dtype)) return floatLiteral(static_cast<double>(i->value));
    const IntegerLimits limits = limitsOf(dtype);
    if (i->value >= limits.low && i->value <= limits.high) return intLiteral(i->value);
    sink_->emit(range, diag::NumberOutOfRange, printDatum(value), std::string(dtypeName(dtype)));
    return std::nullopt;
  }
  if (const auto* f = value.as<FloatDatum>()) {
    if (f->rows != RowsUse::None) {
      sink_->emit(range, diag::RowsKnownAtRunTime, static_cast<std::int64_t>(f->value))
          .note("the last block of rows may be shorter than the block that is compiled");
      return std::nullopt;
    }
    if (isFloat(dtype)) return floatLiteral(f->value);
    sink_->emit(range, diag::StandsWhere, describe(value), "`" + std::string(dtypeName(dtype)) + "`")
        .help("`cast` the tensor to a float type, or write a whole number");
    return std::nullopt;
  }
  if (const auto* b = value.as<BoolDatum>()) {
    if (dtype == DType::Bool) return intLiteral(b->value ? 1 : 0);
    sink_->emit(range, diag::StandsWhere, describe(value), "`" + std::string(dtypeName(dtype)) + "`");
    return std::nullopt;
  }
  if (!value.isError()) sink_->emit(range, diag::StandsWhere, describe(value), std::string("a tensor"));
  return std::nullopt;
}

std::optional<TensorDatum> TensorOps::constant(const Datum& value, DType dtype, SourceRange range) {
  const Type type{dtype, {}};
  const auto* i = value.as<IntDatum>();
  if (i != nullptr && i->rows == RowsUse::Exact && dtype != DType::Bool) {
    const ValueId id = builder().create(OpKind::DimSize, {build_->rowInput()},
                                        {{"dims", std::vector<std::int64_t>{0}}, {"dtype", dtype}}, range);
    return id.known() ? std::optional(TensorDatum{id, type, nullptr}) : std::nullopt;
  }
  std::optional<Literal> made = literal(value, dtype, range);
  if (!made) return std::nullopt;
  return TensorDatum{builder().constant(type, std::move(*made), range), type, nullptr};
}

std::optional<TensorDatum> TensorOps::adapt(const Datum& datum, DType dtype, SourceRange range) {
  if (const auto* tensor = datum.as<TensorDatum>()) {
    if (tensor->type.dtype == dtype) return *tensor;
    sink_->emit(range, diag::StandsWhere, describe(datum), "`" + std::string(dtypeName(dtype)) + "`")
        .help("tensors never convert by themselves: `cast(…, " + std::string(dtypeName(dtype)) + ")`");
    return std::nullopt;
  }
  if (const auto* choice = datum.as<ChoiceDatum>()) {
    const std::optional<TensorDatum> yes = constant(*choice->yes, dtype, range);
    const std::optional<TensorDatum> no = constant(*choice->no, dtype, range);
    if (!yes || !no) return std::nullopt;
    const Datum made = map("where", {*choice->condition, *yes, *no}, range);
    if (const auto* tensor = made.as<TensorDatum>()) return *tensor;
    return std::nullopt;
  }
  return constant(datum, dtype, range);
}

std::optional<std::vector<TensorDatum>> TensorOps::unify(const std::vector<Datum>& operands,
                                                         const std::vector<SourceRange>& ranges, std::string_view what,
                                                         SourceRange range) {
  const TensorDatum* first = nullptr;
  std::size_t firstIndex = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].isError()) return std::nullopt;
    const auto* tensor = operands[i].as<TensorDatum>();
    if (tensor == nullptr) continue;
    if (first == nullptr) {
      first = tensor;
      firstIndex = i;
    } else if (tensor->type.dtype != first->type.dtype) {
      sink_
          ->emit(range, diag::DtypesDiffer, std::string(what.substr(1, what.size() - 2)), printType(first->type),
                 printType(tensor->type))
          .label(ranges[firstIndex], printType(first->type))
          .label(ranges[i], printType(tensor->type))
          .help("tensors never convert by themselves: `cast(…, " + std::string(dtypeName(first->type.dtype)) + ")`");
      return std::nullopt;
    }
  }
  if (first == nullptr) {
    sink_->emit(range, diag::DTypeUnknown, std::string(what)).help("give the number a dtype: `cast(…, f32)`");
    return std::nullopt;
  }
  std::vector<TensorDatum> result;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::optional<TensorDatum> tensor = adapt(operands[i], first->type.dtype, ranges[i]);
    if (!tensor) return std::nullopt;
    result.push_back(*tensor);
  }
  return result;
}

std::optional<std::vector<std::int64_t>> TensorOps::broadcastShape(const std::vector<TensorDatum>& operands,
                                                                   SourceRange range) {
  std::size_t rank = 0;
  for (const TensorDatum& operand : operands) rank = std::max(rank, operand.type.shape.size());
  std::vector<std::int64_t> shape(rank, 1);
  for (const TensorDatum& operand : operands) {
    const std::vector<std::int64_t>& own = operand.type.shape;
    for (std::size_t i = 0; i < own.size(); ++i) {
      std::int64_t& size = shape[rank - own.size() + i];
      if (own[i] == 1 || own[i] == size) continue;
      if (size == 1) {
        size = own[i];
        continue;
      }
      const TensorDatum* other = &operands.front();  // one that has the other size
      for (const TensorDatum& each : operands) {
        const std::size_t fromEnd = own.size() - i;
        if (each.type.shape.size() < fromEnd || each.type.shape[each.type.shape.size() - fromEnd] != size) continue;
        other = &each;
        break;
      }
      DiagBuilder builder =
          sink_->emit(range, diag::ShapesDoNotBroadcast, printType(other->type), printType(operand.type),
                      static_cast<std::int64_t>(own.size() - i), size, own[i]);
      for (const TensorDatum& each : operands) {
        builder.label(build_->function().value(each.id).range, printType(each.type));
      }
      builder.note("dims are aligned at the end; sizes must be equal, or 1");
      return std::nullopt;
    }
  }
  return shape;
}

Datum TensorOps::map(std::string_view function, const std::vector<TensorDatum>& operands, SourceRange range) {
  if (!broadcastShape(operands, range)) return {};
  return make(builder().map(function, idsOf(operands), range), range);
}

Datum TensorOps::cast(const TensorDatum& x, DType to, SourceRange range) {
  if (x.type.dtype == to) return x;
  Datum result = make(builder().cast(x.id, to, range), range);
  return result;
}

Datum TensorOps::reduce(Reduction reduction, const TensorDatum& x, const std::vector<std::int64_t>& dims, bool keepDims,
                        SourceRange range) {
  Datum result = x;
  if (!dims.empty()) result = make(builder().reduce(reduction, x.id, dims, range), range);
  const auto* tensor = result.as<TensorDatum>();
  if (tensor == nullptr) return {};
  // Sums of 16-bit floats are f32 in the IR; the written type comes back by an explicit cast.
  if (tensor->type.dtype != x.type.dtype) {
    result = cast(*tensor, x.type.dtype, range);
    tensor = result.as<TensorDatum>();
    if (tensor == nullptr) return {};
  }
  if (!keepDims || dims.empty()) return result;
  std::vector<std::int64_t> shape = x.type.shape;
  for (const std::int64_t dim : dims) shape[static_cast<std::size_t>(dim)] = 1;
  return reshape(*tensor, shape, range);
}

Datum TensorOps::reshape(const TensorDatum& x, const std::vector<std::int64_t>& shape, SourceRange range) {
  if (x.type.shape == shape) return x;
  return make(builder().reshape(x.id, shape, range), range);
}

Datum TensorOps::transpose(const TensorDatum& x, const std::vector<std::int64_t>& permutation, SourceRange range) {
  return make(builder().transpose(x.id, permutation, range), range);
}

Datum TensorOps::broadcastTo(const TensorDatum& x, const std::vector<std::int64_t>& shape, SourceRange range) {
  if (x.type.shape == shape) return x;
  return make(builder().broadcastTo(x.id, shape, range), range);
}

Datum TensorOps::slice(const TensorDatum& x, std::int64_t dim, std::int64_t start, std::int64_t limit,
                       std::int64_t step, SourceRange range) {
  const std::size_t rank = x.type.shape.size();
  std::vector<std::int64_t> starts(rank, 0), limits = x.type.shape, steps(rank, 1);
  const auto at = static_cast<std::size_t>(dim);
  if (start == 0 && limit == x.type.shape[at] && step == 1) return x;
  starts[at] = start;
  limits[at] = limit;
  steps[at] = step;
  return create(OpKind::Slice, {x}, {{"start", starts}, {"limit", limits}, {"step", steps}}, range);
}

Datum TensorOps::reverse(const TensorDatum& x, const std::vector<std::int64_t>& dims, SourceRange range) {
  if (dims.empty()) return x;
  return create(OpKind::Reverse, {x}, {{"dims", dims}}, range);
}

Datum TensorOps::concat(const std::vector<TensorDatum>& parts, std::int64_t dim, SourceRange range) {
  if (parts.size() == 1) return parts.front();
  return create(OpKind::Concat, parts, {{"dim", dim}}, range);
}

Datum TensorOps::take(const TensorDatum& x, const TensorDatum& index, std::int64_t axis, std::int64_t batch,
                      SourceRange range) {
  return create(OpKind::Take, {x, index}, {{"axis", axis}, {"batch", batch}}, range);
}

Datum TensorOps::full(const std::vector<std::int64_t>& shape, const Datum& value, DType dtype, SourceRange range) {
  const Type type{dtype, shape};
  if (!checkSize(type, range, *sink_)) return {};
  if (const auto* tensor = value.as<TensorDatum>()) {
    if (!tensor->type.isScalar()) {
      sink_->emit(range, diag::NotAScalar, std::string("`value`"), describe(value));
      return {};
    }
    const std::optional<TensorDatum> scalar = adapt(value, dtype, range);
    return scalar ? broadcastTo(*scalar, shape, range) : Datum{};
  }
  if (const auto* i = value.as<IntDatum>(); i != nullptr && i->rows == RowsUse::Exact) {
    const std::optional<TensorDatum> scalar = constant(value, dtype, range);
    return scalar ? broadcastTo(*scalar, shape, range) : Datum{};
  }
  std::optional<Literal> made = literal(value, dtype, range);
  return made ? make(builder().constant(type, std::move(*made), range), range) : Datum{};
}

Datum TensorOps::iota(const std::vector<std::int64_t>& shape, std::int64_t dim, SourceRange range) {
  const Type type{DType::I32, shape};
  if (!checkSize(type, range, *sink_)) return {};
  return create(OpKind::Iota, {}, {{"shape", shape}, {"dim", dim}, {"dtype", DType::I32}}, range);
}

Datum TensorOps::count(const TensorDatum& x, const std::vector<std::int64_t>& dims, DType dtype, SourceRange range) {
  const std::int64_t rows = build_->rowDim(x.id);
  if (rows >= 0 && std::find(dims.begin(), dims.end(), rows) != dims.end()) {
    return create(OpKind::DimSize, {x}, {{"dims", dims}, {"dtype", dtype}}, range);
  }
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= x.type.shape[static_cast<std::size_t>(dim)];
  const std::optional<TensorDatum> made = constant(makeInt(count), dtype, range);
  return made ? Datum(*made) : Datum{};
}

Datum TensorOps::dimSize(const TensorDatum& x, std::int64_t dim) {
  IntDatum size{x.type.shape[static_cast<std::size_t>(dim)], RowsUse::None};
  if (build_->rowDim(x.id) == dim) {
    // A merged dim holds rows times something: it is no plain row count.
    const std::int64_t rows = build_->function().rows;
    size.rows = size.value == rows ? RowsUse::Exact : RowsUse::Derived;
  }
  return size;
}

}  // namespace gshard::sema
