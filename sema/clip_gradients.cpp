// See clip_gradients.h.
#include "sema/clip_gradients.h"

#include <numeric>

namespace gshard::sema {

namespace {

// The sum of the squares of all elements, in `dtype`.
ValueId sumOfSquares(Builder& builder, ValueId gradient, DType dtype, SourceRange range) {
  ValueId sum = builder.map("mul", {gradient, gradient}, range);
  std::vector<std::int64_t> dims(builder.type(gradient).shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  if (!dims.empty()) sum = builder.reduce(Reduction::Sum, sum, dims, range);
  return builder.type(sum).dtype == dtype ? sum : builder.cast(sum, dtype, range);
}

}  // namespace

std::vector<ValueId> clipByGlobalNorm(Builder& builder, std::span<const ValueId> gradients, ValueId limit,
                                      SourceRange range) {
  const DType dtype = builder.type(limit).dtype;
  ValueId total;
  for (const ValueId gradient : gradients) {
    const ValueId square = sumOfSquares(builder, gradient, dtype, range);
    total = total.known() ? builder.map("add", {total, square}, range) : square;
  }
  const ValueId norm = builder.map("sqrt", {total}, range, "grad_norm");
  // limit / max(norm, limit) is exactly 1 up to the limit: gradients that are not clipped keep their bits.
  const ValueId scale = builder.map("div", {limit, builder.map("maximum", {norm, limit}, range)}, range, "clip");
  std::vector<ValueId> clipped;
  for (const ValueId gradient : gradients) {
    const DType own = builder.type(gradient).dtype;
    const ValueId factor = own == dtype ? scale : builder.cast(scale, own, range);
    clipped.push_back(builder.map("mul", {gradient, factor}, range));
  }
  return clipped;
}

}  // namespace gshard::sema
