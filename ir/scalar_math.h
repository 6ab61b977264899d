// Elementary functions over a math backend (ir/scalar_backend.h): shared helpers, exp, expm1, tanh, and the other files
// of the family. Everything is branch-free, so a vector of lanes and a single lane take the same path. `auto` stands
// for lanes throughout: their type belongs to the backend. Errors (measured by ir_scalar_math_test.cpp) are at most 1
// ulp of exp, log, erf, sin, cos, pow, 2 of expm1, log1p, tan, and 2.5 of tanh.
#pragma once

#include <initializer_list>

#include "ir/scalar_backend.h"

namespace gshard::scalar_math {

// c[0] + x (c[1] + x (c[2] + ...)), each step one fma.
template <class B, class F>
F polynomial(B& b, F x, std::initializer_list<double> coefficients) {
  const double* c = coefficients.end() - 1;
  F sum = b.constant(x, *c);
  while (c != coefficients.begin()) sum = b.fma(sum, x, b.constant(x, *--c));
  return sum;
}

// The number a where positive, with the sign bit of b.
template <class B, class F>
F withSignOf(B& b, F a, F sign) {
  const auto bits = b.bitsOf(sign);
  const auto mask = b.shiftLeft(b.integer(bits, 1), b.isDouble(sign) ? 63 : 31);
  return b.floatOf(b.orInt(b.bitsOf(b.abs(a)), b.andInt(bits, mask)));
}

// The integer lane of the same width as float lane x, for |x| small enough.
template <class B, class F>
auto toIntSameWidth(B& b, F x) {
  if constexpr (std::is_same_v<F, float>) {
    return b.toI32(x);
  } else if constexpr (std::is_same_v<F, double>) {
    return b.toI64(x);
  } else {
    return b.isDouble(x) ? b.toI64(x) : b.toI32(x);
  }
}
template <class B, class F, class I>
F toFloatSameWidth(B& b, F like, I n) {
  if constexpr (std::is_same_v<F, float>) {
    return b.toF32(n);
  } else if constexpr (std::is_same_v<F, double>) {
    return b.toF64(n);
  } else {
    return b.isDouble(like) ? b.toF64(n) : b.toF32(n);
  }
}

// An F32 lane as F64 and back; `like` is the lane whose type is wanted. F64 lanes stay.
template <class B, class F>
auto widened(B& b, F x) {
  return b.toF64(x);
}
template <class B, class F, class W>
F narrowed(B& b, F like, W x) {
  if constexpr (std::is_same_v<F, float>) {
    return b.toF32(x);
  } else if constexpr (std::is_same_v<F, double>) {
    return x;
  } else {
    return b.isDouble(like) ? x : b.toF32(x);
  }
}

// 2 to the integer n as a float like `like`; n within the normal exponents.
template <class B, class F, class I>
F powerOfTwo(B& b, F like, I n) {
  const bool wide = b.isDouble(like);
  return b.floatOf(b.shiftLeft(b.addInt(n, b.integer(n, wide ? 1023 : 127)), wide ? 52 : 23));
}

// x * 2^n for n up to twice the exponent range: in two steps, so that only the last can round (into the subnormals).
template <class B, class F, class I>
F scaleByPowerOfTwo(B& b, F x, I n) {
  const auto half = b.shiftRight(n, 1);
  return b.mul(b.mul(x, powerOfTwo(b, x, half)), powerOfTwo(b, x, b.subInt(n, half)));
}

struct ExpConstants {
  double lowest, highest;  // below: 0, above: inf; between, 2^n needs no more than two steps
  double log2e, ln2High, ln2Low;
};
constexpr ExpConstants kExp32 = {-104.0, 89.0, 0x1.715476p+0, 0x1.62e4p-1, 0x1.7f7d1cp-20};
constexpr ExpConstants kExp64 = {-746.0, 710.0, 0x1.71547652b82fep+0, 0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};

// exp(high + low) for a small correction `low`. Cody and Waite's reduction to |r| <= ln(2)/2, then a polynomial.
template <class B, class F>
F expOfSum(B& b, F high, F low) {
  const ExpConstants& c = b.isDouble(high) ? kExp64 : kExp32;
  // A NaN is replaced by a number while integers are made of it, and comes back by the last addition.
  const auto isNan = b.isNan(high);
  const F x = b.select(isNan, b.constant(high, 0),
                       b.minimum(b.maximum(high, b.constant(high, c.lowest)), b.constant(high, c.highest)));
  const F k = b.roundEven(b.mul(x, b.constant(x, c.log2e)));
  F r = b.fma(k, b.constant(x, -c.ln2High), x);
  r = b.fma(k, b.constant(x, -c.ln2Low), r);
  r = b.add(r, low);
  F p;
  if (b.isDouble(x)) {
    p = polynomial(b, r,
                   {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
                    1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800});
  } else {
    p = polynomial(b, r, {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040});
  }
  // 1 + (r + r^2 p): the 1 is added last, so its rounding is the only large one.
  const F y = b.add(b.constant(x, 1), b.fma(b.mul(r, r), p, r));
  const F scaled = scaleByPowerOfTwo(b, y, toIntSameWidth(b, k));
  return b.select(isNan, high, scaled);
}

template <class B, class F>
F exp(B& b, F x) {
  return expOfSum(b, x, b.constant(x, 0));
}

template <class B, class F>
F expm1(B& b, F value) {
  const bool wide = b.isDouble(value);
  const ExpConstants& c = wide ? kExp64 : kExp32;
  const auto isNan = b.isNan(value);
  // Below the lower bound the result rounds to -1.
  const F x = b.select(isNan, b.constant(value, 0),
                       b.minimum(b.maximum(value, b.constant(value, wide ? -40 : -20)), b.constant(value, c.highest)));
  const F k = b.roundEven(b.mul(x, b.constant(x, c.log2e)));
  F r = b.fma(k, b.constant(x, -c.ln2High), x);
  r = b.fma(k, b.constant(x, -c.ln2Low), r);
  F p;
  if (wide) {
    p = polynomial(b, r,
                   {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
                    1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800});
  } else {
    p = polynomial(b, r, {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040});
  }
  p = b.fma(b.mul(r, r), p, r);
  // 2^k p + (2^k - 1) with half of 2^k, which never overflows.
  const auto n = toIntSameWidth(b, k);
  const F s = powerOfTwo(b, x, b.subInt(n, b.integer(n, 1)));
  const F half = b.fma(p, s, b.sub(s, b.constant(x, 0.5)));
  const F y = b.add(half, half);
  // exp(x) - 1 = x for tiny x, with the sign of zero.
  const auto keeps = b.logicalOr(isNan, b.lessEqual(b.abs(value), b.constant(value, wide ? 0x1p-54 : 0x1p-25)));
  return b.select(keeps, value, y);
}

// tanh x = -t / (t + 2) with t = expm1(-2 |x|) in (-1, 0]: nothing cancels.
template <class B, class F>
F tanh(B& b, F x) {
  const F t = expm1(b, b.mul(b.abs(x), b.constant(x, -2)));
  const F y = b.div(t, b.add(t, b.constant(x, 2)));
  return b.select(b.isNan(x), x, withSignOf(b, y, x));
}

}  // namespace gshard::scalar_math

#include "ir/scalar_math_erf.h"
#include "ir/scalar_math_log.h"
#include "ir/scalar_math_trig.h"
