// Shared rules of sort, argsort and top_k; see sort_op.h.
#include "ir/sort_op.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace gshard {

bool checkSort(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const std::int64_t axis = op.intAttr("axis");
  if (!checkAxis(op, diag, axis, x)) return false;
  if (x.dtype == DType::Bool) {
    diag.emit(op.range(), diag::DtypeNotAccepted, std::string(*opDef(op.op().kind).name), "numbers", "bool")
        .label(op.operandRange(0), "this operand");
    return false;
  }
  const std::int64_t size = x.shape[static_cast<std::size_t>(axis)];
  if (size - 1 > std::numeric_limits<std::int32_t>::max()) {  // places are i32
    diag.emit(op.range(), diag::IotaSize, printType(x), size - 1).label(op.operandRange(0), "this operand");
    return false;
  }
  return true;
}

void sortFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const std::int64_t size = x.shape[static_cast<std::size_t>(dim)];
    if (dim != op.intAttr("axis")) {
      const int factor = factors.add(FactorKind::Pass, size);
      factors.operandDim(0, dim, factor);
      for (std::size_t r = 0; r < op.op().results.size(); ++r) factors.resultDim(r, dim, factor);
      continue;
    }
    // Not one letter: no part of a result follows from a part of the operand.
    const std::string reason = "the order of a dim depends on all its elements";
    factors.operandDim(0, dim, factors.add(FactorKind::Whole, size, "", reason));
    for (std::size_t r = 0; r < op.op().results.size(); ++r) {
      const std::int64_t results = op.resultType(r).shape[static_cast<std::size_t>(dim)];
      factors.resultDim(r, dim, factors.add(FactorKind::Whole, results, "", reason));
    }
  }
}

namespace {
// Strictly: neither of two NaNs, and neither of -0 and +0, is less.
bool isLess(double a, double b) {
  return std::isnan(b) ? !std::isnan(a) : a < b;
}
bool isLess(const Tensor& x, std::int64_t a, std::int64_t b) {
  const Number left = numberAt(x, a), right = numberAt(x, b);
  return x.isFloat() ? isLess(left.real, right.real) : left.integer < right.integer;
}
}  // namespace

void forEachSorted(const OpView& op, EvalFrame& frame, bool descending,
                   const std::function<void(Index, const std::vector<std::int64_t>&)>& visit) {
  const Tensor& x = frame.in(0);
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  const std::vector<Tile>& tiles = frame.operandTiles[0];
  std::vector<std::int64_t> lanes = liveSizes(tiles);
  std::vector<std::int64_t> order(static_cast<std::size_t>(op.operandType(0).shape[axis]));
  lanes[axis] = 1;
  forEachIndex(lanes, [&](const Index& lane) {
    Index index = toGlobal(lane, tiles);
    std::vector<std::int64_t> places;
    for (std::size_t i = 0; i < order.size(); ++i) {
      index[axis] = static_cast<std::int64_t>(i);
      places.push_back(placeOf(index, x, tiles));
    }
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      if (descending) std::swap(a, b);
      return isLess(x, places[static_cast<std::size_t>(a)], places[static_cast<std::size_t>(b)]);
    });
    index[axis] = 0;
    visit(index, order);
  });
}

ValueId scatterAlong(GradBuilder& b, ValueId gradient, ValueId index, const Type& x, std::int64_t axis,
                     SourceRange range) {
  // scatter_add has one index per row of batch dims: the axis goes last, and all dims before it are batch dims.
  const std::int64_t last = x.rank() - 1;
  std::vector<std::int64_t> swapped(x.shape.size());
  std::iota(swapped.begin(), swapped.end(), std::int64_t{0});
  std::swap(swapped[static_cast<std::size_t>(axis)], swapped.back());
  const auto swap = [&](ValueId value) { return axis == last ? value : b.transpose(value, swapped, range); };
  Type wide{accumulatorOf(x.dtype), x.shape};
  std::swap(wide.shape[static_cast<std::size_t>(axis)], wide.shape.back());
  const ValueId updates = b.cast(swap(gradient), wide.dtype, range);
  const ValueId sum = b.create(OpKind::ScatterAdd, {zerosLike(b, wide, range), swap(index), updates},
                               {{"axis", last}, {"batch", last}}, range);
  return b.cast(swap(sum), x.dtype, range);
}

}  // namespace gshard
