// The vjp of `map`: the scalar function's gradient has the shape of the result; an operand that was broadcast gets the
// sum over the dims along which it was stretched.
#include "ir/builder.h"
#include "ir/scalar_functions.h"
#include "support/check.h"

namespace gshard {

// Sums `gradient` down to `shape`, to which NumPy broadcasting (aligned at the end) had been applied.
static ValueId sumToShape(GradBuilder& builder, ValueId gradient, const std::vector<std::int64_t>& shape,
                          SourceRange range) {
  const std::vector<std::int64_t> full = builder.type(gradient).shape;
  const std::size_t missing = full.size() - shape.size();
  std::vector<std::int64_t> summed;
  for (std::size_t dim = 0; dim < full.size(); ++dim) {
    const bool isStretched = dim < missing || (shape[dim - missing] == 1 && full[dim] != 1);
    if (isStretched) summed.push_back(static_cast<std::int64_t>(dim));
  }
  if (summed.empty()) return gradient;
  const DType dtype = builder.type(gradient).dtype;
  ValueId sum = builder.reduce(Reduction::Sum, gradient, summed, range);
  if (builder.type(sum).dtype != dtype) sum = builder.cast(sum, dtype, range);     // 16-bit floats are summed in f32
  if (builder.type(sum).shape != shape) sum = builder.reshape(sum, shape, range);  // dims of size 1 come back
  return sum;
}

// A formula may be smaller than the result (its parts were all scalars): stretched first, so that the sum counts every
// use.
static ValueId stretchToShape(GradBuilder& builder, ValueId gradient, const std::vector<std::int64_t>& shape,
                              SourceRange range) {
  if (builder.type(gradient).shape == shape) return gradient;
  return builder.broadcastTo(gradient, shape, range);
}

void mapVjp(const OpView& op, std::span<const ValueId> resultGradients, GradBuilder& builder) {
  // Copies: building ops may move the function's op list.
  const std::vector<ValueId> operands = op.op().operands;
  const ValueId result = op.op().results[0];
  const SourceRange range = op.range();
  const std::optional<ScalarFn> fn = scalarFromName(op.stringAttr("fn"));
  GSHARD_CHECK(fn.has_value(), "unknown scalar function");
  const ScalarInfo& info = scalarInfo(*fn);
  if (info.gradient == nullptr || !resultGradients[0].known()) return;
  const ScalarGradientArgs args{builder, operands, result, resultGradients[0], range};
  const std::vector<std::int64_t> resultShape = builder.type(result).shape;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!builder.wants(i)) continue;
    const Type operand = builder.type(operands[i]);
    if (!isFloat(operand.dtype)) continue;
    const ValueId gradient = info.gradient(args, i);
    if (!gradient.known()) continue;
    builder.accumulate(
        i, sumToShape(builder, stretchToShape(builder, gradient, resultShape, range), operand.shape, range));
  }
}

}  // namespace gshard
