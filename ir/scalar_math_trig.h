// sin, cos and tan over a math backend, exact to the last bit or two for every finite argument. Computed in f64 lanes,
// f32 too. Reduction by pi/2: Cody and Waite's in three parts up to 2^52; beyond, Payne and Hanek's with 192 bits of
// 1/(2 pi). Polynomials after fdlibm (k_sin.c, k_cos.c).
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "ir/scalar_math.h"
#include "ir/scalar_math_log.h"

namespace gshard::scalar_math {

// Bits of 1/(2 pi) after the point.
constexpr std::array<std::uint64_t, 19> kBitsOfTurn = {
    0x28be60db9391054a, 0x7f09d5f47d4d3770, 0x36d8a5664f10e410, 0x7f9458eaf7aef158, 0x6dc91b8e909374b8,
    0x01924bba82746487, 0x3f877ac72c4a69cf, 0xba208d7d4baed121, 0x3a671c09ad17df90, 0x4e64758e60d4ce7d,
    0x272117e2ef7e4a0e, 0xc7fe25fff7816603, 0xfbcbc462d6829b47, 0xdb4d9fb3c9f2c26d, 0xd3d18fd9a797fa8b,
    0x5d49eeb1faf97c5e, 0xcf41ce7de294a4ba, 0x9afed7ec47e35742, 0x1580cc11bf1edaea,
};

// x = n pi/2 + (high + low); only the last two bits of n count.
template <class F, class I>
struct ReducedAngle {
  I quadrant;
  F high, low;
};

// |x| < 2^52 f64 lanes.
template <class B, class F>
auto reduceSmallAngle(B& b, F x) {
  const F toQuadrants = b.constant(x, 0x1.45f306dc9c883p-1);
  const F halfPi = b.constant(x, 0x1.921fb54442d18p+0), second = b.constant(x, 0x1.1a62633145c07p-54);
  const F guess = b.roundEven(b.mul(x, toQuadrants));
  const F rough = b.fma(b.neg(guess), halfPi, x);  // exact: the leading bits cancel
  // From about 2^49 the guess may be off by one, which what is left of x shows.
  const F correction = b.roundEven(b.mul(b.fma(b.neg(guess), second, rough), toQuadrants));
  const F k = b.add(guess, correction);
  const F first = b.fma(b.neg(correction), halfPi, rough);
  // first - k second - k third, each rounding kept: near a multiple of pi/2 they are all that is left.
  const F product = b.mul(k, second);
  const F productLow = b.fma(k, second, b.neg(product));
  const F high = b.sub(first, product);
  const F back = b.sub(high, first);
  const F lost = b.sub(b.sub(first, b.sub(high, back)), b.add(product, back));
  const F low = b.fma(b.neg(k), b.constant(x, -0x1.f1976b7ed8fbcp-110), b.sub(lost, productLow));
  const auto n = b.toI64(k);
  const TwoFloats<F> sum = fastTwoSum(b, high, low);
  return ReducedAngle<F, decltype(n)>{n, sum.high, sum.low};
}

// table[index], by halving: selects only, since a gather would need another kind of backend operation.
template <class B, class I>
I selectWord(B& b, I index, int bits, std::size_t offset) {
  std::vector<I> words;
  for (std::size_t i = 0; i < std::size_t{1} << bits; ++i) {
    const std::size_t at = std::min(i + offset, kBitsOfTurn.size() - 1);
    words.push_back(b.integer(index, static_cast<std::int64_t>(kBitsOfTurn[at])));
  }
  for (int bit = 0; bit < bits; ++bit) {
    const auto isOdd = b.equalInt(b.andInt(b.shiftRightLogical(index, bit), b.integer(index, 1)), b.integer(index, 1));
    std::vector<I> kept;
    for (std::size_t i = 0; i < words.size(); i += 2) kept.push_back(b.select(isOdd, words[i + 1], words[i]));
    words = kept;
  }
  return words[0];
}

// f64 lanes, 2^52 <= x < 2^(64 * 2^indexBits).
template <class B, class F>
auto reduceLargeAngle(B& b, F x, int indexBits) {
  const auto bits = b.bitsOf(x);
  using I = std::remove_const_t<decltype(bits)>;
  const auto constant = [&](std::int64_t value) { return b.integer(bits, value); };
  const I low32 = constant(0xffffffff);
  const I mantissa = b.orInt(b.andInt(bits, constant(0x000fffffffffffff)), constant(0x0010000000000000));
  // x = mantissa 2^e. Bits of 1/(2 pi) down to 2^-e give whole turns: the window starts below them.
  const I start = b.subInt(b.shiftRightLogical(bits, 52), constant(1075));
  const I index = b.shiftRightLogical(start, 6);
  const I shift = b.andInt(start, constant(63));
  const I shiftBack = b.subInt(constant(63), shift);
  std::array<I, 4> words;
  for (std::size_t i = 0; i < 4; ++i) words[i] = selectWord(b, index, indexBits, i);
  std::array<I, 6> window;  // 32-bit limbs, least first
  for (std::size_t i = 0; i < 3; ++i) {
    const I next = b.shiftRightLogicalBy(b.shiftRightLogical(words[i + 1], 1), shiftBack);
    const I word = b.orInt(b.shiftLeftBy(words[i], shift), next);
    window[2 * (2 - i) + 1] = b.shiftRightLogical(word, 32);
    window[2 * (2 - i)] = b.andInt(word, low32);
  }
  // mantissa * window modulo 2^192.
  const I mantissaLow = b.andInt(mantissa, low32), mantissaHigh = b.shiftRightLogical(mantissa, 32);
  std::array<I, 6> product;
  std::array<I, 7> column;
  column.fill(constant(0));
  for (std::size_t i = 0; i < 6; ++i) {
    const I p = b.mulInt(mantissaLow, window[i]), q = b.mulInt(mantissaHigh, window[i]);
    column[i] = b.addInt(column[i], b.andInt(p, low32));
    column[i + 1] = b.addInt(column[i + 1], b.addInt(b.shiftRightLogical(p, 32), b.andInt(q, low32)));
    if (i + 2 < 6) column[i + 2] = b.addInt(column[i + 2], b.shiftRightLogical(q, 32));
    product[i] = b.andInt(column[i], low32);
    column[i + 1] = b.addInt(column[i + 1], b.shiftRightLogical(column[i], 32));
  }
  // The two top bits, rounded, are the quadrant; the rest is a signed fraction of one.
  const I top = b.orInt(b.shiftLeft(product[5], 32), product[4]);
  const I quadrant = b.shiftRightLogical(b.addInt(top, constant(std::int64_t{1} << 61)), 62);
  const I fraction = b.subInt(top, b.shiftLeft(quadrant, 62));
  const auto scaled = [&](I limb, double unit) { return b.mul(b.toF64(limb), b.constant(x, unit)); };
  const TwoFloats<F> upper =
      fastTwoSum(b, scaled(b.shiftRight(fraction, 32), 0x1p-30), scaled(b.andInt(fraction, low32), 0x1p-62));
  const F rest = b.add(upper.low, b.add(scaled(product[3], 0x1p-94), scaled(product[2], 0x1p-126)));
  const TwoFloats<F> turns = fastTwoSum(b, upper.high, rest);
  const F halfPi = b.constant(x, 0x1.921fb54442d18p+0);
  const F high = b.mul(turns.high, halfPi);
  const F error = b.fma(turns.high, halfPi, b.neg(high));
  const F low = b.fma(turns.low, halfPi, b.fma(turns.high, b.constant(x, 0x1.1a62633145c07p-54), error));
  return ReducedAngle<F, I>{quadrant, high, low};
}

template <class F, class I>
struct SinCos {
  F sin, cos;  // of the reduced angle
  I quadrant;
};

// Finite f64 lanes; `exponentBits`: 2^that bounds the exponent of |x| (7 for values of f32, 10 for f64).
template <class B, class F>
auto sinCosOfReduced(B& b, F x, int exponentBits) {
  const F magnitude = b.abs(x);
  const auto isLarge = b.lessEqual(b.constant(x, 0x1p52), magnitude);
  const auto small = reduceSmallAngle(b, b.select(isLarge, b.constant(x, 0), magnitude));
  const auto large = reduceLargeAngle(b, b.select(isLarge, magnitude, b.constant(x, 0x1p60)), exponentBits - 6);
  const F high = b.select(isLarge, large.high, small.high);
  const F low = b.select(isLarge, large.low, small.low);
  const auto quadrant = b.select(isLarge, large.quadrant, small.quadrant);
  const F z = b.mul(high, high);
  const F half = b.constant(x, 0.5);
  const F v = b.mul(z, high);
  const F s = polynomial(b, z,
                         {8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                          -2.50507602534068634195e-08, 1.58969099521155010221e-10});
  const F sinInner = b.sub(b.mul(z, b.sub(b.mul(half, low), b.mul(v, s))), low);
  const F sin = b.sub(high, b.sub(sinInner, b.mul(v, b.constant(x, -1.66666666666666324348e-01))));
  const F c =
      b.mul(z, polynomial(b, z,
                          {4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                           -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11}));
  const F halfSquare = b.mul(half, z);
  const F w = b.sub(b.constant(x, 1), halfSquare);
  const F lost = b.sub(b.sub(b.constant(x, 1), w), halfSquare);
  const F cos = b.add(w, b.add(lost, b.sub(b.mul(z, c), b.mul(high, low))));
  return SinCos<F, std::remove_const_t<decltype(quadrant)>>{sin, cos, quadrant};
}

enum class TrigFunction { Sin, Cos, Tan };

template <class B, class F>
F trigOfFinite(B& b, TrigFunction which, F x, int exponentBits) {
  const auto parts = sinCosOfReduced(b, x, exponentBits);
  const auto bit = [&](auto n, std::int64_t mask) {
    return b.logicalNot(b.equalInt(b.andInt(n, b.integer(n, mask)), b.integer(n, 0)));
  };
  const auto isOdd = bit(parts.quadrant, 1);
  switch (which) {
    case TrigFunction::Sin: {
      const F y = b.select(isOdd, parts.cos, parts.sin);
      const F signedY = b.select(bit(parts.quadrant, 2), b.neg(y), y);
      return b.select(b.less(x, b.constant(x, 0)), b.neg(signedY), signedY);
    }
    case TrigFunction::Cos: {
      const F y = b.select(isOdd, parts.sin, parts.cos);
      const auto quadrantAfter = b.addInt(parts.quadrant, b.integer(parts.quadrant, 1));
      return b.select(bit(quadrantAfter, 2), b.neg(y), y);
    }
    case TrigFunction::Tan: {
      const F y = b.div(b.select(isOdd, b.neg(parts.cos), parts.sin), b.select(isOdd, parts.sin, parts.cos));
      return b.select(b.less(x, b.constant(x, 0)), b.neg(y), y);
    }
  }
  return x;
}

template <class B, class F>
F trig(B& b, TrigFunction which, F x) {
  const auto isFinite = b.less(b.abs(x), b.constant(x, kInfinity));
  const F finite = b.select(isFinite, x, b.constant(x, 0));
  const F y = narrowed(b, x, trigOfFinite(b, which, widened(b, finite), b.isDouble(x) ? 10 : 7));
  const F result = b.select(isFinite, y, b.constant(x, kNan));
  if (which == TrigFunction::Cos) return result;
  // sin x = tan x = x for tiny x, with the sign of zero.
  return b.select(b.less(b.abs(x), b.constant(x, 0x1p-28)), x, result);
}

template <class B, class F>
F sin(B& b, F x) {
  return trig(b, TrigFunction::Sin, x);
}
template <class B, class F>
F cos(B& b, F x) {
  return trig(b, TrigFunction::Cos, x);
}
template <class B, class F>
F tan(B& b, F x) {
  return trig(b, TrigFunction::Tan, x);
}

}  // namespace gshard::scalar_math
