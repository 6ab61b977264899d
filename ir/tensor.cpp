// Tensors of the evaluator: rounding to the narrow formats and wrapping of integers.
#include "ir/tensor.h"

#include <bit>
#include <cmath>
#include <limits>

#include "support/check.h"

namespace gshard {

namespace {
// Rounds to a binary format with `precision` significant bits, ties to even; below 2^minExponent the spacing is fixed.
double roundToFormat(double value, int precision, int minExponent, double largest) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), minExponent);
  const double unit = std::ldexp(1.0, exponent - precision + 1);
  const double rounded = std::nearbyint(value / unit) * unit;  // value / unit is exact: a power of two
  if (std::abs(rounded) > largest) return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded == 0 ? std::copysign(0.0, value) : rounded;
}
}  // namespace

double roundTo(DType dtype, double value) {
  if (dtype == DType::F32) return static_cast<double>(static_cast<float>(value));
  if (dtype == DType::BF16) return roundToFormat(value, 8, -126, 0x1.FEp127);
  if (dtype == DType::F16) return roundToFormat(value, 11, -14, 65504);
  return value;
}

std::int64_t wrapTo(DType dtype, std::int64_t value) {
  if (dtype == DType::I32)
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value)));
  if (dtype == DType::U8) return static_cast<std::uint8_t>(static_cast<std::uint64_t>(value));
  if (dtype == DType::Bool) return value != 0 ? 1 : 0;
  return value;
}

std::vector<std::int64_t> stridesOf(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Tensor Tensor::zeros(Type type) {
  return filled(std::move(type), 0);
}

Tensor Tensor::filled(Type type, double value) {
  Tensor tensor;
  tensor.type = std::move(type);
  const std::size_t count = static_cast<std::size_t>(tensor.type.elements());
  if (tensor.isFloat()) {
    tensor.floats.assign(count, roundTo(tensor.type.dtype, value));
  } else {
    tensor.ints.assign(count, wrapTo(tensor.type.dtype, static_cast<std::int64_t>(value)));
  }
  return tensor;
}

Tensor Tensor::ofLiteral(const Type& type, const Literal& literal) {
  Tensor tensor = zeros(type);
  const std::size_t count = static_cast<std::size_t>(type.elements());
  const std::size_t given = tensor.isFloat() ? literal.floats.size() : literal.ints.size();
  GSHARD_CHECK(given == count || given == 1, "a literal of another size than " + printType(type));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = given == 1 ? 0 : i;
    if (tensor.isFloat()) {
      tensor.floats[i] = roundTo(type.dtype, literal.floats[from]);
    } else {
      tensor.ints[i] = wrapTo(type.dtype, literal.ints[from]);
    }
  }
  return tensor;
}

bool Tensor::isFloat() const {
  return gshard::isFloat(type.dtype);
}

double Tensor::number(std::int64_t flat) const {
  const std::size_t place = static_cast<std::size_t>(flat);
  return isFloat() ? floats[place] : static_cast<double>(ints[place]);
}

void Tensor::setNumber(std::int64_t flat, double value) {
  const std::size_t place = static_cast<std::size_t>(flat);
  if (isFloat()) {
    floats[place] = roundTo(type.dtype, value);
  } else {
    ints[place] = wrapTo(type.dtype, static_cast<std::int64_t>(value));
  }
}

bool sameBits(const Tensor& a, const Tensor& b) {
  if (a.type != b.type || a.ints != b.ints || a.floats.size() != b.floats.size()) return false;
  for (std::size_t i = 0; i < a.floats.size(); ++i) {
    const bool bothNan = a.floats[i] != a.floats[i] && b.floats[i] != b.floats[i];
    if (!bothNan && std::bit_cast<std::uint64_t>(a.floats[i]) != std::bit_cast<std::uint64_t>(b.floats[i]))
      return false;
  }
  return true;
}

}  // namespace gshard
