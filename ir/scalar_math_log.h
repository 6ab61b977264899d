// log, log1p and pow over a math backend. Reduction and polynomials of log after fdlibm (e_log.c, s_log1p.c); pow keeps
// the logarithm in two floats, since its error is multiplied by the exponent.
#pragma once

#include "ir/scalar_math.h"

namespace gshard::scalar_math {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); k as a float.
template <class F>
struct LogParts {
  F k, f;
};

// For positive finite x; others give some parts without harm.
template <class B, class F>
LogParts<F> splitForLog(B& b, F x) {
  const bool wide = b.isDouble(x);
  const int fractionBits = wide ? 52 : 23;
  const auto isSubnormal = b.less(x, b.constant(x, wide ? 0x1p-1022 : 0x1p-126));
  const F normal = b.select(isSubnormal, b.mul(x, b.constant(x, wide ? 0x1p54 : 0x1p25)), x);
  const auto bits = b.bitsOf(normal);
  // Adding the distance from sqrt(1/2) to 1 carries into the exponent exactly where the fraction reaches sqrt(2).
  const auto sqrtHalf = b.integer(bits, wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  const auto one = b.integer(bits, wide ? 0x3ff0000000000000 : 0x3f800000);
  const auto carried = b.addInt(bits, b.subInt(one, sqrtHalf));
  const auto exponent = b.subInt(b.shiftRight(carried, fractionBits), b.integer(bits, wide ? 1023 : 127));
  const auto fraction = b.andInt(carried, b.integer(bits, wide ? 0x000fffffffffffff : 0x007fffff));
  const F m = b.floatOf(b.addInt(fraction, sqrtHalf));
  const F k = toFloatSameWidth(b, x, exponent);
  return {b.select(isSubnormal, b.sub(k, b.constant(x, wide ? 54 : 25)), k), b.sub(m, b.constant(x, 1))};
}

// k ln 2 + log(1 + f) + correction
template <class B, class F>
F logOfParts(B& b, F k, F f, F correction) {
  const bool wide = b.isDouble(f);
  const ExpConstants& c = wide ? kExp64 : kExp32;
  const F s = b.div(f, b.add(f, b.constant(f, 2)));
  const F z = b.mul(s, s);
  F tail;
  if (wide) {
    tail = polynomial(
        b, z,
        {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
         1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01});
  } else {
    tail = polynomial(b, z, {0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841});
  }
  const F halfSquare = b.mul(b.mul(f, f), b.constant(f, 0.5));
  const F low = b.fma(k, b.constant(f, c.ln2Low), correction);
  const F inner = b.fma(s, b.fma(z, tail, halfSquare), low);
  return b.fma(k, b.constant(f, c.ln2High), b.sub(f, b.sub(halfSquare, inner)));
}

template <class B, class F>
F log(B& b, F x) {
  const LogParts<F> parts = splitForLog(b, x);
  const F zero = b.constant(x, 0);
  const F y = logOfParts(b, parts.k, parts.f, zero);
  const F atEdge = b.select(b.equal(x, zero), b.constant(x, -kInfinity), b.constant(x, kNan));
  const F upper = b.select(b.less(x, b.constant(x, kInfinity)), y, x);  // inf and NaN: themselves
  return b.select(b.lessEqual(x, zero), atEdge, upper);
}

template <class B, class F>
F log1p(B& b, F x) {
  const F one = b.constant(x, 1), zero = b.constant(x, 0);
  const F u = b.add(x, one);
  const LogParts<F> parts = splitForLog(b, u);
  // What rounding 1 + x lost, relative to it. Where no power of two is taken out, f is x itself and nothing is lost.
  const F lost = b.select(b.less(one, x), b.sub(one, b.sub(u, x)), b.sub(x, b.sub(u, one)));
  const auto direct = b.equal(parts.k, zero);
  const F y = logOfParts(b, parts.k, b.select(direct, x, parts.f), b.select(direct, zero, b.div(lost, u)));
  const F atEdge = b.select(b.equal(u, zero), b.constant(x, -kInfinity), b.constant(x, kNan));
  const auto keeps = b.logicalOr(b.equal(x, zero), b.logicalNot(b.less(x, b.constant(x, kInfinity))));  // -0, inf, NaN
  return b.select(b.lessEqual(u, zero), atEdge, b.select(keeps, x, y));
}

// An unevaluated sum high + low, |low| at most half an ulp of high.
template <class F>
struct TwoFloats {
  F high, low;
};
template <class B, class F>
TwoFloats<F> fastTwoSum(B& b, F larger, F smaller) {
  const F sum = b.add(larger, smaller);
  return {sum, b.sub(smaller, b.sub(sum, larger))};
}

// log of positive finite f64 lanes to about 2^-64: 2 atanh(s) + k ln 2, the first two terms of the series in two
// floats.
template <class B, class F>
TwoFloats<F> logInTwoFloats(B& b, F x) {
  const LogParts<F> parts = splitForLog(b, x);
  const F f = parts.f, two = b.constant(x, 2);
  const TwoFloats<F> t = fastTwoSum(b, two, f);
  const F s = b.div(f, t.high);
  const F remainder = b.fma(b.neg(s), t.low, b.fma(b.neg(s), t.high, f));
  const F sLow = b.div(remainder, t.high);
  const F z = b.mul(s, s);
  const F zLow = b.fma(b.add(s, s), sLow, b.fma(s, s, b.neg(z)));
  const F third = b.constant(x, 2.0 / 3), thirdLow = b.constant(x, 0x1.5555555555555p-55);
  const F w = b.mul(third, z);
  const F wLow = b.add(b.fma(third, z, b.neg(w)), b.fma(third, zLow, b.mul(thirdLow, z)));
  const F rest = b.mul(b.mul(z, z), polynomial(b, z,
                                               {2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                                2.0 / 19, 2.0 / 21, 2.0 / 23}));
  const TwoFloats<F> v = fastTwoSum(b, w, rest);
  const F vLow = b.add(v.low, wLow);
  const F p = b.mul(s, v.high);
  const F pLow = b.add(b.fma(s, v.high, b.neg(p)), b.fma(s, vLow, b.mul(sLow, v.high)));
  const TwoFloats<F> logM = fastTwoSum(b, b.add(s, s), p);
  const F logMLow = b.add(logM.low, b.fma(two, sLow, pLow));
  const TwoFloats<F> sum = fastTwoSum(b, b.mul(parts.k, b.constant(x, kExp64.ln2High)), logM.high);
  const F low = b.add(sum.low, b.fma(parts.k, b.constant(x, kExp64.ln2Low), logMLow));
  return fastTwoSum(b, sum.high, low);
}

// |x|^y for f64 lanes, apart from zeros, infinities and NaN of x.
template <class B, class F>
F powOfMagnitude(B& b, F magnitude, F y, bool exactLog) {
  const TwoFloats<F> logarithm =
      exactLog ? logInTwoFloats(b, magnitude) : TwoFloats<F>{log(b, magnitude), b.constant(y, 0)};
  const F product = b.mul(y, logarithm.high);
  const F low = b.fma(y, logarithm.low, b.fma(y, logarithm.high, b.neg(product)));
  const auto hasLow = b.less(b.abs(product), b.constant(y, 800));  // beyond, it overflows, and low may be NaN
  return expOfSum(b, product, b.select(hasLow, low, b.constant(y, 0)));
}

// As C's pow: pow(x, 0) = pow(1, y) = 1 even with NaN.
template <class B, class F>
F pow(B& b, F x, F y) {
  const F zero = b.constant(x, 0), one = b.constant(x, 1), infinity = b.constant(x, kInfinity);
  const F magnitude = b.abs(x);
  F result;
  if (b.isDouble(x)) {
    result = powOfMagnitude(b, magnitude, y, true);
  } else {
    result = narrowed(b, x, powOfMagnitude(b, widened(b, magnitude), widened(b, y), false));
  }
  const auto negativeY = b.less(y, zero);
  result = b.select(b.equal(magnitude, zero), b.select(negativeY, infinity, zero), result);
  result = b.select(b.equal(magnitude, infinity), b.select(negativeY, zero, infinity), result);
  result = b.select(b.equal(magnitude, one), one, result);  // (-1)^inf is 1
  const F half = b.mul(y, b.constant(y, 0.5));
  const auto isInteger = b.equal(b.floor(y), y);
  const auto isOdd = b.logicalAnd(isInteger, b.logicalNot(b.equal(b.floor(half), half)));
  result = b.select(isOdd, withSignOf(b, result, x), result);
  const auto undefined =
      b.logicalAnd(b.logicalAnd(b.less(x, zero), b.less(b.neg(infinity), x)), b.logicalNot(isInteger));
  const F nan = b.constant(x, kNan);
  result = b.select(b.logicalOr(undefined, b.logicalOr(b.isNan(x), b.isNan(y))), nan, result);
  return b.select(b.logicalOr(b.equal(x, one), b.equal(y, zero)), one, result);
}

}  // namespace gshard::scalar_math
