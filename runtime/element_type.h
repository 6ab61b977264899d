// Element types of tensors as the runtime sees them, their sizes and names, and the two 16-bit float formats.
#pragma once
#include <bit>
#include <cstdint>
#include <string_view>

namespace gshard::runtime {

// In the order of abi.h.
enum class ElementType : std::uint8_t { F32, F64, BF16, F16, I32, I64, U8, Bool };

constexpr std::int64_t elementBytes(ElementType type) {
  switch (type) {
    case ElementType::F32:
      return 4;
    case ElementType::F64:
      return 8;
    case ElementType::I32:
      return 4;
    case ElementType::I64:
      return 8;
    case ElementType::U8:
      return 1;
    case ElementType::Bool:
      return 1;
    case ElementType::F16:
      return 2;
    case ElementType::BF16:
      return 2;
  }
  return 0;
}

constexpr std::string_view elementName(ElementType type) {
  switch (type) {
    case ElementType::F32:
      return "f32";
    case ElementType::F64:
      return "f64";
    case ElementType::I32:
      return "i32";
    case ElementType::I64:
      return "i64";
    case ElementType::U8:
      return "u8";
    case ElementType::Bool:
      return "bool";
    case ElementType::F16:
      return "f16";
    case ElementType::BF16:
      return "bf16";
  }
  return "";
}

constexpr bool isFloat(ElementType type) {
  return type == ElementType::F32 || type == ElementType::F64 || type == ElementType::F16 || type == ElementType::BF16;
}

// As f32, rounded to odd where it is inexact: rounding that to 16 bits gives what one rounding would.
inline float roundedToOdd(float value) {
  return value;
}
inline float roundedToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (back == value || value != value) return nearest;
  const bool isAbove = (value < 0 ? -value : value) < (back < 0 ? -back : back);
  const std::uint32_t truncated = std::bit_cast<std::uint32_t>(nearest) - (isAbove ? 1u : 0u);
  return std::bit_cast<float>(truncated | 1u);
}
inline float roundedToOdd(std::int64_t value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53, kBelow = 0x7ff;
  if (-kExact <= value && value <= kExact) return roundedToOdd(static_cast<double>(value));
  const std::int64_t sticky = (value & kBelow) != 0 ? 0x400 : 0;
  return roundedToOdd(static_cast<double>((value & ~kBelow) | sticky));
}
inline float roundedToOdd(std::int32_t value) {
  return roundedToOdd(static_cast<double>(value));
}
inline float roundedToOdd(std::uint8_t value) {
  return static_cast<float>(value);
}

inline float bfloatToFloat(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

inline std::uint16_t floatToBfloat(float value) {  // to nearest, ties to even
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline float halfToFloat(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t fraction = bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // subnormal or zero; exact
  return sign != 0 ? -magnitude : magnitude;
}

inline std::uint16_t floatToHalf(float value) {  // to nearest, ties to even
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // rounds past the largest
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 aligns the last kept bit with the last bit of the fraction, rounding on the way.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace gshard::runtime
