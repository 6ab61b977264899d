// Indices: `x[1:, :, ::2, none, i]` on tensors and lists.
#include <algorithm>

#include "sema/diagnostics.h"
#include "sema/elaborator.h"
#include "support/text.h"

namespace gshard::sema {

namespace {
bool isNone(const ast::Expr& expr) {
  return ast::is<ast::NoneLiteral>(expr);
}
}  // namespace

Datum Elaborator::evalIndex(const ast::Index& index, SourceRange range, Scope& scope) {
  const std::optional<std::string> outer = std::exchange(naming_, std::nullopt);
  const Datum object = eval(*index.object, scope);
  Datum result;
  if (const auto* tensor = object.as<TensorDatum>()) {
    result = indexTensor(*tensor, index, range, scope);
  } else if (const auto* list = object.as<ListDatum>()) {
    result = indexList(*list->items, index, range, scope);
  } else if (const auto* tuple = object.as<TupleDatum>()) {
    result = indexList(*tuple->items, index, range, scope);
  } else if (!object.isError()) {
    sink_.emit(range, diag::NotIndexable, describe(object)).label(index.object->range, kindOf(object));
  }
  naming_ = outer;
  return result;
}

// NumPy's rule: negative bounds count from the end, bounds outside clip.
std::optional<Elaborator::SliceBounds> Elaborator::sliceBounds(const ast::IndexItem& item, std::int64_t size,
                                                               Scope& scope) {
  const auto part = [&](const ast::ExprPtr& expr, std::int64_t fallback) -> std::optional<std::int64_t> {
    if (expr == nullptr || isNone(*expr)) return fallback;
    return evalInt(*expr, scope, "a slice bound");
  };
  const std::optional<std::int64_t> step = part(item.step, 1);
  if (!step) return std::nullopt;
  if (*step == 0) {
    sink_.emit(item.step->range, diag::SliceStep, std::int64_t{0});
    return std::nullopt;
  }
  const bool forward = *step > 0;
  const std::int64_t lowest = forward ? 0 : -1, highest = forward ? size : size - 1;
  const auto clip = [&](std::int64_t bound) {
    if (bound < 0) bound = bound < -size ? lowest : bound + size;
    return std::clamp(bound, lowest, highest);
  };
  std::int64_t start = forward ? 0 : size - 1, stop = forward ? size : -1;
  if (item.low != nullptr && !isNone(*item.low)) {
    const std::optional<std::int64_t> low = part(item.low, 0);
    if (!low) return std::nullopt;
    start = clip(*low);
  }
  if (item.high != nullptr && !isNone(*item.high)) {
    const std::optional<std::int64_t> high = part(item.high, 0);
    if (!high) return std::nullopt;
    stop = clip(*high);
  }
  SliceBounds bounds;
  bounds.start = start;
  bounds.step = *step;
  const std::int64_t distance = forward ? stop - start : start - stop, stride = forward ? *step : -*step;
  bounds.count = distance <= 0 ? 0 : 1 + (distance - 1) / stride;
  return bounds;
}

Datum Elaborator::indexTensor(TensorDatum x, const ast::Index& index, SourceRange range, Scope& scope) {
  std::int64_t dims = 0;
  for (const ast::IndexItem& item : index.items) dims += item.isSlice || !isNone(*item.index) ? 1 : 0;
  if (dims > x.type.rank()) {
    sink_.emit(range, diag::TooManyIndices, dims, printType(x.type), plural(x.type.rank(), "dim"))
        .label(index.object->range, printType(x.type));
    return {};
  }
  // First the slices and compile-time indices (one slice op), then run-time indices (take), then `none`.
  const std::size_t rank = x.type.shape.size();
  std::vector<std::int64_t> start(rank, 0), limit = x.type.shape, step(rank, 1), reversed;
  std::vector<bool> dropped(rank, false);
  struct RunTime {
    std::int64_t dim;
    TensorDatum index;
    SourceRange range;
  };
  std::vector<RunTime> runTime;
  std::size_t dim = 0;
  for (const ast::IndexItem& item : index.items) {
    if (!item.isSlice && isNone(*item.index)) continue;
    const std::int64_t size = x.type.shape[dim];
    if (item.isSlice) {
      const std::optional<SliceBounds> bounds = sliceBounds(item, size, scope);
      if (!bounds) return {};
      if (bounds->count == 0) {
        start[dim] = limit[dim] = 0;
      } else if (bounds->step > 0) {
        start[dim] = bounds->start;
        limit[dim] = bounds->start + (bounds->count - 1) * bounds->step + 1;
        step[dim] = bounds->step;
      } else {
        start[dim] = bounds->start + (bounds->count - 1) * bounds->step;
        limit[dim] = bounds->start + 1;
        step[dim] = -bounds->step;
        reversed.push_back(static_cast<std::int64_t>(dim));
      }
    } else {
      const Datum at = eval(*item.index, scope);
      if (at.isError()) return {};
      if (const auto* i = at.as<IntDatum>()) {
        const std::int64_t place = i->value < 0 ? i->value + size : i->value;
        if (place < 0 || place >= size) {
          sink_
              .emit(item.range, diag::IndexOutOfRange, i->value,
                    "dim " + std::to_string(dim) + " of size " + std::to_string(size))
              .label(index.object->range, printType(x.type));
          return {};
        }
        start[dim] = place;
        limit[dim] = place + 1;
        dropped[dim] = true;
      } else if (const auto* tensor = at.as<TensorDatum>();
                 tensor != nullptr && tensor->type.isScalar() && isInteger(tensor->type.dtype)) {
        runTime.push_back({static_cast<std::int64_t>(dim), *tensor, item.range});
      } else {
        sink_
            .emit(item.range, diag::StandsWhere, describe(at),
                  std::string("an index: an int, a slice, `none` or an integer scalar,"))
            .help("rows at a tensor of indices: `take(x, i, axis: …)`");
        return {};
      }
    }
    ++dim;
  }
  Datum value = x;
  const std::vector<std::int64_t> ones(rank, 1), zeros(rank, 0);
  if (start != zeros || limit != x.type.shape || step != ones) {
    value = ops()->create(OpKind::Slice, {x}, {{"start", start}, {"limit", limit}, {"step", step}}, range);
  }
  if (!value.isError() && !reversed.empty()) value = ops()->reverse(*value.as<TensorDatum>(), reversed, range);
  for (auto at = runTime.rbegin(); at != runTime.rend(); ++at) {
    if (value.isError()) return {};
    Datum position = at->index;
    if (at->index.type.dtype == DType::U8) position = ops()->cast(at->index, DType::I32, at->range);
    if (position.isError()) return {};
    value = ops()->take(*value.as<TensorDatum>(), *position.as<TensorDatum>(), at->dim, 0, range);
    dropped.erase(dropped.begin() + at->dim);
  }
  if (value.isError()) return {};
  // The shape that is asked for: without dropped dims, with new ones.
  const std::vector<std::int64_t> sizes = value.as<TensorDatum>()->type.shape;
  std::vector<std::int64_t> shape;
  std::size_t source = 0, written = 0;
  for (const ast::IndexItem& item : index.items) {
    if (!item.isSlice && isNone(*item.index)) {
      shape.push_back(1);
      continue;
    }
    const bool taken = std::any_of(runTime.begin(), runTime.end(),
                                   [&](const RunTime& r) { return r.dim == static_cast<std::int64_t>(written); });
    ++written;
    if (taken) continue;
    if (!dropped[source]) shape.push_back(sizes[source]);
    ++source;
  }
  for (; source < sizes.size(); ++source) shape.push_back(sizes[source]);
  return ops()->reshape(*value.as<TensorDatum>(), shape, range);
}

Datum Elaborator::indexList(const std::vector<Datum>& items, const ast::Index& index, SourceRange range, Scope& scope) {
  const auto size = static_cast<std::int64_t>(items.size());
  if (index.items.size() != 1) {
    sink_.emit(range, diag::ListIndices, static_cast<std::int64_t>(index.items.size()));
    return {};
  }
  const ast::IndexItem& item = index.items.front();
  if (item.isSlice) {
    const std::optional<SliceBounds> bounds = sliceBounds(item, size, scope);
    if (!bounds) return {};
    std::vector<Datum> part;
    for (std::int64_t i = 0; i < bounds->count; ++i)
      part.push_back(items[static_cast<std::size_t>(bounds->start + i * bounds->step)]);
    return makeList(std::move(part));
  }
  const std::optional<std::int64_t> written = evalInt(*item.index, scope, "the index of a list");
  if (!written) return {};
  const std::int64_t at = *written < 0 ? *written + size : *written;
  if (at >= 0 && at < size) return read(items[static_cast<std::size_t>(at)]);
  sink_.emit(item.range, diag::IndexOutOfRange, *written, "a list of " + std::to_string(size));
  return {};
}

}  // namespace gshard::sema
