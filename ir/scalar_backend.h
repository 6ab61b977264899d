// The math backend: the small set of operations in which every scalar function is written ONCE (ir/scalar_math*.h,
// ir/scalar_emit.h). ScalarBackend below computes with plain C++ values, for the evaluator and constant folding;
// codegen/ has a backend of the same members on an LLVM IRBuilder. Both round every operation alike (no contraction, no
// fast-math), so compiled code and evaluator agree to the bit, NaN payloads excepted.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <variant>

#include "ir/type.h"

namespace gshard {

// A backend B has lanes of five kinds: F32, F64, I32, I64 (signed, wrapping) and Bool. In ScalarBackend they are float,
// double, int32_t, int64_t and bool; in an LLVM backend each is an llvm::Value* (scalar or vector), and `like`
// arguments give type and width. u8 tensors are lanes of I32 holding 0 … 255; f16 and bf16 tensors are lanes of F32
// that hold a value of the format: loads widen, stores narrow, both exactly.
//
//   kinds      isDouble(x): is the float lane F64?  isLong(n): is the integer lane I64? (known while emitting)
//   constants  constant(like, double): float of like's type, rounded to it.  integer(like, int64_t)
//   float      add sub mul div (IEEE, to nearest even), fma (one rounding), neg, abs (sign bit only: work on NaN and 0
//   too),
//              sqrt, floor, ceil, roundEven; maximum, minimum (IEEE-754 2019: NaN wins, -0 < +0)
//   compare    less(a, b), lessEqual(a, b), equal(a, b): ordered, false with a NaN;  isNan(x)
//   integer    addInt subInt mulInt (wrap), andInt orInt xorInt, shiftLeft(n, int), shiftRight(n, int) (arithmetic),
//              shiftRightLogical(n, int), divInt, remInt (truncating; callers see to it that b != 0 and that it is not
//              min / -1); lessInt(a, b) (signed), equalInt(a, b); shiftLeftBy(n, m), shiftRightLogicalBy(n, m): lane by
//              lane, 0 <= m < width
//   bool       logicalAnd logicalOr logicalXor logicalNot
//   choice     select(p, a, b): lane by lane, a and b of any one kind
//   bits       bitsOf(x): F32 -> I32, F64 -> I64;  floatOf(n): back
//   conversion toF32 (from F64, I32, I64), toF64 (from F32, I32, I64): to nearest even; toI32, toI64 from floats:
//   truncate, the
//              value is in range (callers clamp first); toI32 from I64 wraps, toI64 from I32 extends the sign;
//              boolToI32(p): 0 or 1. A conversion to the kind that a lane already has returns it.
//   access     Value holds any lane; f32(v) f64(v) i32(v) i64(v) boolean(v) take it out as the kind that the caller
//   knows it
//              to have (in an LLVM backend all of them return v)
class ScalarBackend {
 public:
  using Value = std::variant<float, double, std::int32_t, std::int64_t, bool>;

  template <class F>
  static constexpr bool isDouble(F) {
    return std::is_same_v<F, double>;
  }
  template <class I>
  static constexpr bool isLong(I) {
    return std::is_same_v<I, std::int64_t>;
  }

  template <class F>
  F constant(F, double value) const {
    return static_cast<F>(value);
  }
  template <class I>
  I integer(I, std::int64_t value) const {
    return static_cast<I>(value);
  }

  template <class F>
  F add(F a, F b) const {
    return a + b;
  }
  template <class F>
  F sub(F a, F b) const {
    return a - b;
  }
  template <class F>
  F mul(F a, F b) const {
    return a * b;
  }
  template <class F>
  F div(F a, F b) const {
    return a / b;
  }
  template <class F>
  F fma(F a, F b, F c) const {
    return std::fma(a, b, c);
  }
  template <class F>
  F neg(F a) const {
    return floatOf(xorInt(bitsOf(a), signBit(a)));
  }
  template <class F>
  F abs(F a) const {
    return floatOf(andInt(bitsOf(a), static_cast<decltype(signBit(a))>(~signBit(a))));
  }
  template <class F>
  F sqrt(F a) const {
    return std::sqrt(a);
  }
  template <class F>
  F floor(F a) const {
    return std::floor(a);
  }
  template <class F>
  F ceil(F a) const {
    return std::ceil(a);
  }
  template <class F>
  F roundEven(F a) const {
    return std::nearbyint(a);
  }  // nobody here changes the rounding mode
  template <class F>
  F maximum(F a, F b) const {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    if (a == b) return floatOf(andInt(bitsOf(a), bitsOf(b)));  // +0 and -0: the bits of +0
    return a > b ? a : b;
  }
  template <class F>
  F minimum(F a, F b) const {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    if (a == b) return floatOf(orInt(bitsOf(a), bitsOf(b)));
    return a < b ? a : b;
  }

  template <class F>
  bool less(F a, F b) const {
    return a < b;
  }
  template <class F>
  bool lessEqual(F a, F b) const {
    return a <= b;
  }
  template <class F>
  bool equal(F a, F b) const {
    return a == b;
  }
  template <class F>
  bool isNan(F a) const {
    return std::isnan(a);
  }

  template <class I>
  I addInt(I a, I b) const {
    return static_cast<I>(u(a) + u(b));
  }
  template <class I>
  I subInt(I a, I b) const {
    return static_cast<I>(u(a) - u(b));
  }
  template <class I>
  I mulInt(I a, I b) const {
    return static_cast<I>(u(a) * u(b));
  }
  template <class I>
  I andInt(I a, I b) const {
    return a & b;
  }
  template <class I>
  I orInt(I a, I b) const {
    return a | b;
  }
  template <class I>
  I xorInt(I a, I b) const {
    return a ^ b;
  }
  template <class I>
  I shiftLeft(I a, int n) const {
    return static_cast<I>(u(a) << n);
  }
  template <class I>
  I shiftRight(I a, int n) const {
    return a >> n;
  }
  template <class I>
  I shiftRightLogical(I a, int n) const {
    return static_cast<I>(u(a) >> n);
  }
  template <class I>
  I divInt(I a, I b) const {
    return a / b;
  }
  template <class I>
  I remInt(I a, I b) const {
    return a % b;
  }
  template <class I>
  bool lessInt(I a, I b) const {
    return a < b;
  }
  template <class I>
  bool equalInt(I a, I b) const {
    return a == b;
  }
  template <class I>
  I shiftLeftBy(I a, I n) const {
    return static_cast<I>(u(a) << n);
  }
  template <class I>
  I shiftRightLogicalBy(I a, I n) const {
    return static_cast<I>(u(a) >> n);
  }

  bool logicalAnd(bool a, bool b) const { return a && b; }
  bool logicalOr(bool a, bool b) const { return a || b; }
  bool logicalXor(bool a, bool b) const { return a != b; }
  bool logicalNot(bool a) const { return !a; }
  template <class L>
  L select(bool p, L a, L b) const {
    return p ? a : b;
  }

  std::int32_t bitsOf(float a) const { return std::bit_cast<std::int32_t>(a); }
  std::int64_t bitsOf(double a) const { return std::bit_cast<std::int64_t>(a); }
  float floatOf(std::int32_t n) const { return std::bit_cast<float>(n); }
  double floatOf(std::int64_t n) const { return std::bit_cast<double>(n); }

  template <class L>
  float toF32(L a) const {
    return static_cast<float>(a);
  }
  template <class L>
  double toF64(L a) const {
    return static_cast<double>(a);
  }
  template <class L>
  std::int32_t toI32(L a) const {
    return static_cast<std::int32_t>(a);
  }
  template <class L>
  std::int64_t toI64(L a) const {
    return static_cast<std::int64_t>(a);
  }
  std::int32_t boolToI32(bool p) const { return p ? 1 : 0; }

  float f32(const Value& v) const { return std::get<float>(v); }
  double f64(const Value& v) const { return std::get<double>(v); }
  std::int32_t i32(const Value& v) const { return std::get<std::int32_t>(v); }
  std::int64_t i64(const Value& v) const { return std::get<std::int64_t>(v); }
  bool boolean(const Value& v) const { return std::get<bool>(v); }

 private:
  template <class I>
  static std::make_unsigned_t<I> u(I a) {
    return static_cast<std::make_unsigned_t<I>>(a);
  }
  static std::int32_t signBit(float) { return std::numeric_limits<std::int32_t>::min(); }
  static std::int64_t signBit(double) { return std::numeric_limits<std::int64_t>::min(); }
};

}  // namespace gshard
