// The scalar functions that are no elementary functions: integer division, casts, rounding to the 16-bit formats.
#pragma once

#include "ir/scalar_math.h"

namespace gshard::scalar_math {

// ---- integer division toward negative infinity; by 0 it gives 0 (the run-time error is recorded elsewhere).
template <class I>
struct DivMod {
  I quotient, remainder;
};
template <class B, class I>
DivMod<I> divModInt(B& b, I x, I y) {
  const I zero = b.integer(x, 0), one = b.integer(x, 1), minusOne = b.integer(x, -1);
  const auto byZero = b.equalInt(y, zero);
  const auto byMinusOne = b.equalInt(y, minusOne);  // apart: the smallest integer / -1 traps
  const I safe = b.select(b.logicalOr(byZero, byMinusOne), one, y);
  const I quotient = b.divInt(x, safe);
  const I remainder = b.subInt(x, b.mulInt(quotient, safe));
  const auto isNegative = b.lessInt(b.xorInt(remainder, safe), zero);
  const auto adjust = b.logicalAnd(isNegative, b.logicalNot(b.equalInt(remainder, zero)));
  const I flooredQuotient = b.select(adjust, b.subInt(quotient, one), quotient);
  const I flooredRemainder = b.select(adjust, b.addInt(remainder, safe), remainder);
  const I q = b.select(byMinusOne, b.subInt(zero, x), flooredQuotient);
  return {b.select(byZero, zero, q), b.select(b.logicalOr(byZero, byMinusOne), zero, flooredRemainder)};
}

// ---- the same on floats, as Python has it: the remainder is exact as long as the quotient is (below 2^24, 2^53).
template <class B, class F>
F floorDivFloat(B& b, F x, F y) {
  const F quotient = b.div(x, y);
  const F floored = b.floor(quotient);
  // The division may have rounded up to an integer that is not reached: then y * floored lies beyond x.
  const F excess = b.fma(b.neg(floored), y, x);
  const auto beyond = b.logicalAnd(
      b.equal(floored, quotient),
      b.select(b.less(y, b.constant(x, 0)), b.less(b.constant(x, 0), excess), b.less(excess, b.constant(x, 0))));
  // A quotient below 0 that vanished (an infinite y, underflow) is still below 0.
  const F zero = b.constant(x, 0), minusOne = b.constant(x, -1);
  const auto vanished = b.logicalAnd(b.equal(quotient, zero), b.logicalNot(b.equal(x, zero)));
  const auto signsDiffer = b.logicalXor(b.less(x, zero), b.less(y, zero));
  const F result = b.select(beyond, b.add(floored, minusOne), floored);
  return b.select(b.logicalAnd(vanished, signsDiffer), minusOne, result);
}
template <class B, class F>
F modFloat(B& b, F x, F y) {
  const F remainder = b.fma(b.neg(floorDivFloat(b, x, y)), y, x);
  const F signedRemainder = b.select(b.equal(remainder, b.constant(x, 0)), withSignOf(b, remainder, y), remainder);
  // Of a finite x and an infinite y: x itself, or y when the signs differ.
  const auto isInfinite = b.equal(b.abs(y), b.constant(x, kInfinity));
  const auto isFinite = b.less(b.abs(x), b.constant(x, kInfinity));
  const auto sameSign = b.logicalOr(b.equal(x, b.constant(x, 0)), b.less(b.constant(x, 0), b.mul(x, y)));
  const F ofInfinite = b.select(sameSign, withSignOf(b, x, y), y);
  return b.select(b.logicalAnd(isInfinite, isFinite), ofInfinite, signedRemainder);
}

template <class B, class F>
F signFloat(B& b, F x) {
  const F one = withSignOf(b, b.constant(x, 1), x);
  return b.select(b.logicalOr(b.isNan(x), b.equal(x, b.constant(x, 0))), x, one);
}

// ---- 16-bit formats as F32 lanes.
// To nearest, halves to even, on the upper 16 bits.
template <class B, class F>
F roundToBf16(B& b, F x) {
  const auto bits = b.bitsOf(x);
  const auto lastKept = b.andInt(b.shiftRight(bits, 16), b.integer(bits, 1));
  const auto rounded = b.addInt(b.addInt(bits, b.integer(bits, 0x7fff)), lastKept);
  const F y = b.floatOf(b.andInt(rounded, b.integer(bits, static_cast<std::int32_t>(0xffff0000))));
  return b.select(b.isNan(x), x, y);
}
// Adding and subtracting 2^13 times the value's power of two (at least that of the smallest normal) drops 13 bits; the
// largest magnitude that stays finite is below 65520.
template <class B, class F>
F roundToF16(B& b, F x) {
  const F magnitude = b.abs(x);
  const F finite = b.minimum(magnitude, b.constant(x, 65536));
  const auto bits = b.bitsOf(finite);
  const auto exponent = b.andInt(bits, b.integer(bits, 0x7f800000));
  const auto smallest = b.integer(bits, 113 << 23);  // 2^-14
  const auto base = b.select(b.lessInt(exponent, smallest), smallest, exponent);
  const F step = b.floatOf(b.addInt(base, b.integer(bits, 13 << 23)));
  const F dropped = b.sub(b.add(finite, step), step);
  const F y = b.select(b.less(magnitude, b.constant(x, 65520)), dropped, b.constant(x, kInfinity));
  return b.select(b.isNan(x), x, withSignOf(b, y, x));
}
// f64 to f32 rounded to odd: a later rounding to fewer bits is then as if done at once.
template <class B, class F>
auto toF32RoundedToOdd(B& b, F x) {
  const auto nearest = b.toF32(x);
  const auto back = b.toF64(nearest);
  const auto bits = b.bitsOf(nearest);
  const auto one = b.integer(bits, 1), zero = b.integer(bits, 0);
  const auto isAbove = b.less(b.abs(x), b.abs(back));
  const auto isInexact = b.logicalAnd(b.logicalNot(b.equal(x, back)), b.logicalNot(b.isNan(x)));
  const auto truncated = b.subInt(bits, b.select(isAbove, one, zero));
  return b.floatOf(b.orInt(truncated, b.select(isInexact, one, zero)));
}

// ---- float to integer: truncates, saturates to [low, high], NaN gives 0. `upper` is the first float that is too
// large.
template <class B, class F>
auto clampedToI32(B& b, F x, double low, double upper, std::int64_t high) {
  const auto isLow = b.lessEqual(x, b.constant(x, low));
  const auto isHigh = b.lessEqual(b.constant(x, upper), x);
  const auto isOut = b.logicalOr(b.logicalOr(isLow, isHigh), b.isNan(x));
  const auto n = b.toI32(b.select(isOut, b.constant(x, 0), x));
  const auto saturated = b.select(isLow, b.integer(n, static_cast<std::int64_t>(low)), n);
  return b.select(isHigh, b.integer(n, high), saturated);
}
template <class B, class F>
auto clampedToI64(B& b, F x) {
  const auto isLow = b.lessEqual(x, b.constant(x, -0x1p63));
  const auto isHigh = b.lessEqual(b.constant(x, 0x1p63), x);
  const auto isOut = b.logicalOr(b.logicalOr(isLow, isHigh), b.isNan(x));
  const auto n = b.toI64(b.select(isOut, b.constant(x, 0), x));
  const auto saturated = b.select(isLow, b.integer(n, std::numeric_limits<std::int64_t>::min()), n);
  return b.select(isHigh, b.integer(n, std::numeric_limits<std::int64_t>::max()), saturated);
}

}  // namespace gshard::scalar_math
