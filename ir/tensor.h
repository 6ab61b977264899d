// Dense arrays of the reference evaluator: one buffer of wide elements (double for float dtypes, int64 for the others),
// rounded to the dtype after every op, so that every dtype runs through the same obvious code.
#pragma once

#include "ir/attribute.h"

namespace gshard {

struct Tensor {
  Type type;                       // for a tile: the local (ceil) shape
  std::vector<double> floats;      // float dtypes
  std::vector<std::int64_t> ints;  // i32 i64 u8 bool

  static Tensor zeros(Type type);
  static Tensor filled(Type type, double value);                      // NaN or a number, converted
  static Tensor ofLiteral(const Type& type, const Literal& literal);  // splat or dense
  bool isFloat() const;
  double number(std::int64_t flat) const;           // as double
  void setNumber(std::int64_t flat, double value);  // rounded to dtype
};

double roundTo(DType dtype, double value);                                    // f32, bf16, f16 rounding to nearest even
std::int64_t wrapTo(DType dtype, std::int64_t value);                         // i32, u8, bool
std::vector<std::int64_t> stridesOf(const std::vector<std::int64_t>& shape);  // row-major
bool sameBits(const Tensor& a, const Tensor& b);                              // NaN equals NaN, 0 differs from -0

}  // namespace gshard
