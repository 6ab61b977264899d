// Element types and tensor types. A shape is always static: elaboration leaves no unknown size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gshard {

enum class DType : std::uint8_t { F32, F64, BF16, F16, I32, I64, U8, Bool };

std::string_view dtypeName(DType dtype);  // "f32"
std::optional<DType> dtypeFromName(std::string_view name);
std::int64_t byteSize(DType dtype);
bool isFloat(DType dtype);
bool isInteger(DType dtype);  // i32 i64 u8, not bool
// The type in which sums of `dtype` are kept: f32 for bf16 and f16, else the type itself.
DType accumulatorOf(DType dtype);

struct Type {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;

  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  bool isScalar() const { return shape.empty(); }
  std::int64_t elements() const;  // product of the shape; 1 for a scalar
  std::int64_t bytes() const { return elements() * byteSize(dtype); }
  friend bool operator==(const Type&, const Type&) = default;
};

std::string printType(const Type& type);                         // "f32[64, 256]"; a scalar is "f32"
std::string printShape(const std::vector<std::int64_t>& shape);  // "[64, 256]"

}  // namespace gshard
