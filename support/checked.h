// Arithmetic on sizes that notices overflow: products of dims beyond 64 bits are a user's error, never wrapped numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace gshard {

inline std::optional<std::int64_t> checkedAdd(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline std::optional<std::int64_t> checkedSub(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline std::optional<std::int64_t> checkedMul(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// The product of all; 1 of none.
inline std::optional<std::int64_t> checkedProduct(std::span<const std::int64_t> values) {
  std::int64_t result = 1;
  for (const std::int64_t value : values) {
    if (__builtin_mul_overflow(result, value, &result)) return std::nullopt;
  }
  return result;
}

/// `base` to the power `exponent` >= 0.
inline std::optional<std::int64_t> checkedPow(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  std::int64_t result = 1;
  for (;;) {
    if (exponent & 1) {
      if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
    }
    exponent >>= 1;
    if (exponent == 0) return result;
    if (__builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
}

/// Division rounding toward negative infinity; nullopt by zero and for the one quotient that overflows.
inline std::optional<std::int64_t> checkedFloorDiv(std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == std::numeric_limits<std::int64_t>::min() && b == -1)) return std::nullopt;
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// ceil(a / b), for a >= 0 and b > 0: the size of the parts when `a` is cut into `b`.
constexpr std::int64_t ceilDiv(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace gshard
