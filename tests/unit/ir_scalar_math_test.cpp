// The elementary functions against the C library in a wider type, on points spread over all magnitudes and on the
// edges; and the 16-bit roundings against arithmetic that cannot share a mistake with them.
#include <gtest/gtest.h>

#include <random>

#include "ir/scalar_math.h"
#include "ir/scalar_math_basic.h"

namespace gshard {
namespace {

using scalar_math::kInfinity;
using scalar_math::kNan;

// Error of `actual` in units in the last place of the exact value.
template <class F>
double ulps(F actual, long double exact) {
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : 1e30;
  if (std::isinf(static_cast<F>(exact)) || std::isinf(actual)) return static_cast<F>(exact) == actual ? 0 : 1e30;
  int exponent = 0;
  std::frexp(static_cast<double>(exact), &exponent);
  const int lowest = std::numeric_limits<F>::min_exponent;
  const int scale = std::max(exponent, lowest) - std::numeric_limits<F>::digits;
  return static_cast<double>(std::fabs(static_cast<long double>(actual) - exact) / std::ldexp(1.0L, scale));
}

// Points over [low, high], half of them evenly, half with evenly spread exponents, both signs where the range has them.
template <class F>
std::vector<F> pointsBetween(double low, double high, int count) {
  std::mt19937_64 random(7);
  std::vector<F> points;
  std::uniform_real_distribution<double> even(low, high);
  const double limit = std::log2(std::max(std::fabs(low), std::fabs(high)));
  std::uniform_real_distribution<double> exponent(std::max(-300.0, 1.0 * std::numeric_limits<F>::min_exponent - 20),
                                                  limit);
  while (static_cast<int>(points.size()) < count) {
    points.push_back(static_cast<F>(even(random)));
    const double magnitude = std::exp2(exponent(random));
    const double sign = random() % 2 == 0 ? 1 : -1;
    if (sign * magnitude >= low && sign * magnitude <= high) points.push_back(static_cast<F>(sign * magnitude));
  }
  return points;
}

template <class F, class Ours, class Theirs>
void expectClose(double low, double high, double bound, Ours ours, Theirs theirs) {
  ScalarBackend b;
  double worst = 0;
  F worstAt = 0;
  for (const F x : pointsBetween<F>(low, high, 60000)) {
    const double error = ulps<F>(ours(b, x), theirs(static_cast<long double>(x)));
    if (error > worst) worst = error, worstAt = x;
  }
  ::testing::Test::RecordProperty("worst", std::to_string(worst));
  EXPECT_LE(worst, bound) << "at " << worstAt;
}

#define GSHARD_CLOSE(fn, low, high, bound32, bound64)                                                   \
  TEST(ScalarMath, fn##IsClose) {                                                                       \
    const auto ours = [](ScalarBackend& b, auto x) { return scalar_math::fn(b, x); };                   \
    const auto theirs = [](long double x) { return std::fn(x); };                                       \
    expectClose<float>(std::max(low, -1.0 * std::numeric_limits<float>::max()),                         \
                       std::min(high, 1.0 * std::numeric_limits<float>::max()), bound32, ours, theirs); \
    expectClose<double>(low, high, bound64, ours, theirs);                                              \
  }
GSHARD_CLOSE(exp, -760.0, 720.0, 1.0, 1.0)
GSHARD_CLOSE(expm1, -760.0, 720.0, 1.8, 1.8)
GSHARD_CLOSE(log, 0.0, 1e300, 1.0, 1.0)
GSHARD_CLOSE(log1p, -0.999999, 1e300, 1.5, 1.5)
GSHARD_CLOSE(tanh, -40.0, 40.0, 2.5, 2.5)
GSHARD_CLOSE(erf, -7.0, 7.0, 1.5, 2.0)

#define GSHARD_CLOSE_NEAR(fn, low, high, bound32, bound64)                            \
  TEST(ScalarMath, fn##IsCloseNear) {                                                 \
    const auto ours = [](ScalarBackend& b, auto x) { return scalar_math::fn(b, x); }; \
    const auto theirs = [](long double x) { return std::fn(x); };                     \
    expectClose<float>(low, high, bound32, ours, theirs);                             \
    expectClose<double>(low, high, bound64, ours, theirs);                            \
  }
GSHARD_CLOSE_NEAR(exp, -2.0, 2.0, 1.0, 1.0)
GSHARD_CLOSE_NEAR(expm1, -2.0, 2.0, 1.8, 1.8)
GSHARD_CLOSE_NEAR(log, 0.4, 3.0, 1.0, 1.0)
GSHARD_CLOSE_NEAR(log1p, -0.6, 2.0, 1.5, 1.5)
GSHARD_CLOSE_NEAR(tanh, -2.0, 2.0, 2.5, 2.5)
GSHARD_CLOSE_NEAR(erf, -2.0, 2.0, 1.5, 2.0)
GSHARD_CLOSE_NEAR(sin, -1e4, 1e4, 0.6, 1.0)
GSHARD_CLOSE_NEAR(cos, -1e4, 1e4, 0.6, 1.0)
GSHARD_CLOSE_NEAR(tan, -1e4, 1e4, 0.6, 2.0)

// Angles of any size. (The C library's f64 cos is 8 ulp off at 0x1.6ac5b262ca1ffp+849; its wider one is not.)
TEST(ScalarMath, HugeAngles) {
  ScalarBackend b;
  for (const double x : pointsBetween<double>(-1.7e308, 1.7e308, 30000)) {
    EXPECT_LE(ulps<double>(scalar_math::sin(b, x), std::sin(static_cast<long double>(x))), 2.0) << x;
    EXPECT_LE(ulps<double>(scalar_math::cos(b, x), std::cos(static_cast<long double>(x))), 2.0) << x;
    const float narrow = static_cast<float>(x * 1e-270);
    if (!std::isfinite(narrow)) continue;
    EXPECT_LE(ulps<float>(scalar_math::sin(b, narrow), std::sin(static_cast<double>(narrow))), 0.6) << narrow;
  }
  for (const double x : {0x1p51, 0x1p52, 0x1.8p52, 0x1p53, 0x1.fffffffffffffp53, 0x1p54,
                         6381956970095103.0 * 0x1p797}) {  // the last: nearest to a multiple of pi/2
    EXPECT_LE(ulps<double>(scalar_math::sin(b, x), std::sin(static_cast<long double>(x))), 2.0) << x;
    EXPECT_LE(ulps<double>(scalar_math::cos(b, x), std::cos(static_cast<long double>(x))), 2.0) << x;
  }
}

TEST(ScalarMath, PowIsClose) {
  ScalarBackend b;
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> logBase(-700, 700), logResult(-740, 709), near(-0.01, 0.01);
  for (int i = 0; i < 60000; ++i) {
    const double base = i % 2 == 0 ? std::exp(logBase(random)) : std::exp(near(random));
    const double exponent = logResult(random) / std::log(base);
    const long double exact = std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
    ASSERT_LE(ulps<double>(scalar_math::pow(b, base, exponent), exact), 1.5) << base << " ** " << exponent;
    const float base32 = static_cast<float>(std::exp(logBase(random) / 8.2)),
                exponent32 = static_cast<float>(logResult(random) / 8.2 / std::log(base32));
    ASSERT_LE(ulps<float>(scalar_math::pow(b, base32, exponent32),
                          std::pow(static_cast<long double>(base32), static_cast<long double>(exponent32))),
              0.6)
        << base32 << " ** " << exponent32;
  }
}

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

TEST(ScalarMath, PowEdges) {
  ScalarBackend b;
  const double values[] = {0.0,        -0.0,      1.0,        -1.0, 2.0,    -2.0,   0.5,    -0.5,
                           3.0,        -3.0,      2.5,        -2.5, 1e300,  -1e300, 0x1p53, -0x1p53,
                           0x1p53 - 1, kInfinity, -kInfinity, kNan, 5e-324, -5e-324};
  for (const double x : values) {
    for (const double y : values) {
      EXPECT_TRUE(same(scalar_math::pow(b, x, y), std::pow(x, y)) ||
                  ulps<double>(scalar_math::pow(b, x, y), std::pow(x, y)) <= 1)
          << x << " ** " << y << " = " << scalar_math::pow(b, x, y);
      const float x32 = static_cast<float>(x), y32 = static_cast<float>(y);
      EXPECT_TRUE(same(scalar_math::pow(b, x32, y32), std::pow(x32, y32)) ||
                  ulps<float>(scalar_math::pow(b, x32, y32), std::pow(x32, y32)) <= 1)
          << x32 << " ** " << y32 << " (f32)";
    }
  }
}

template <class F>
void expectNear(const char* name, F x, F ours, F theirs) {
  EXPECT_TRUE(same(ours, theirs) || ulps<F>(ours, theirs) <= 2.5) << name << " " << x << " = " << ours;
}

template <class F>
void checkEdges() {
  ScalarBackend b;
  const F values[] = {F(0),
                      F(-0.0),
                      std::numeric_limits<F>::denorm_min(),
                      -std::numeric_limits<F>::denorm_min(),
                      std::numeric_limits<F>::min(),
                      std::numeric_limits<F>::max(),
                      -std::numeric_limits<F>::max(),
                      F(kInfinity),
                      F(-kInfinity),
                      F(kNan),
                      F(1),
                      F(-1),
                      F(-2)};
  for (const F x : values) {
    expectNear("exp", x, scalar_math::exp(b, x), std::exp(x));
    expectNear("expm1", x, scalar_math::expm1(b, x), std::expm1(x));
    expectNear("log", x, scalar_math::log(b, x), std::log(x));
    expectNear("log1p", x, scalar_math::log1p(b, x), std::log1p(x));
    expectNear("tanh", x, scalar_math::tanh(b, x), std::tanh(x));
    expectNear("erf", x, scalar_math::erf(b, x), std::erf(x));
    expectNear("sin", x, scalar_math::sin(b, x), std::sin(x));
    expectNear("cos", x, scalar_math::cos(b, x), std::cos(x));
    expectNear("tan", x, scalar_math::tan(b, x), std::tan(x));
    EXPECT_TRUE(std::signbit(scalar_math::sin(b, x)) == std::signbit(std::sin(x)) || std::isnan(std::sin(x)))
        << "sign of sin " << x;
  }
}

TEST(ScalarMath, EdgesF32) {
  checkEdges<float>();
}
TEST(ScalarMath, EdgesF64) {
  checkEdges<double>();
}

TEST(ScalarMath, Bf16RoundsToNearestEven) {
  ScalarBackend b;
  const auto round = [&](float x) { return scalar_math::roundToBf16(b, x); };
  EXPECT_EQ(round(1.0f), 1.0f);
  EXPECT_EQ(round(1.0f + 0x1p-8f), 1.0f);  // a tie, to even
  EXPECT_EQ(round(1.0f + 0x1p-8f + 0x1p-20f), 1.0f + 0x1p-7f);
  EXPECT_EQ(round(1.0f + 3 * 0x1p-8f), 1.0f + 0x1p-6f);
  EXPECT_EQ(round(-3.14159265f), -3.140625f);
  EXPECT_EQ(round(std::numeric_limits<float>::max()), static_cast<float>(kInfinity));
  EXPECT_EQ(round(static_cast<float>(-kInfinity)), static_cast<float>(-kInfinity));
  EXPECT_TRUE(std::isnan(round(static_cast<float>(kNan))));
}

TEST(ScalarMath, F16RoundsToNearestEven) {
  ScalarBackend b;
  const auto round = [&](float x) { return scalar_math::roundToF16(b, x); };
  std::mt19937_64 random(3);
  for (int i = 0; i < 60000; ++i) {
    const float x = static_cast<float>(
        std::ldexp(1.0 + static_cast<double>(random() >> 11) * 0x1p-53, static_cast<int>(random() % 46) - 28));
    int exponent = 0;
    std::frexp(x, &exponent);
    const double unit = std::ldexp(1.0, std::max(exponent, -13) - 11);
    const double expected = std::nearbyint(x / unit) * unit;
    EXPECT_EQ(round(x), expected >= 65520 ? kInfinity : expected) << x;
    EXPECT_EQ(round(-x), -round(x));
  }
  EXPECT_EQ(round(65519.0f), 65504.0f);
  EXPECT_EQ(round(65520.0f), static_cast<float>(kInfinity));
  EXPECT_TRUE(std::signbit(round(-0.0f)));
  EXPECT_TRUE(std::isnan(round(static_cast<float>(kNan))));
}

TEST(ScalarMath, RoundingToOddAvoidsDoubleRounding) {
  ScalarBackend b;
  const double x = 1.0 + 0x1p-8 + 0x1p-40;  // just above a tie of bf16, which f32 would turn into the tie
  EXPECT_EQ(scalar_math::roundToBf16(b, scalar_math::toF32RoundedToOdd(b, x)), 1.0f + 0x1p-7f);
  EXPECT_EQ(scalar_math::toF32RoundedToOdd(b, 1.5), 1.5f);
  EXPECT_EQ(scalar_math::toF32RoundedToOdd(b, -kInfinity), static_cast<float>(-kInfinity));
}

TEST(ScalarMath, IntegersDivideTowardNegativeInfinity) {
  ScalarBackend b;
  for (int x = -9; x <= 9; ++x) {
    for (int y = -4; y <= 4; ++y) {
      const auto result = scalar_math::divModInt(b, x, y);
      EXPECT_EQ(result.quotient, y == 0 ? 0 : static_cast<int>(std::floor(static_cast<double>(x) / y)))
          << x << " / " << y;
      EXPECT_EQ(result.remainder, y == 0 ? 0 : x - result.quotient * y) << x << " % " << y;
    }
  }
  const auto lowest = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(scalar_math::divModInt(b, lowest, -1).quotient, lowest);
  EXPECT_EQ(scalar_math::divModInt(b, lowest, -1).remainder, 0);
}

TEST(ScalarMath, FloatsDivideTowardNegativeInfinity) {
  ScalarBackend b;
  const double cases[][4] = {{7, 2, 3, 1},
                             {-7, 2, -4, 1},
                             {7, -2, -4, -1},
                             {-7, -2, 3, -1},
                             {1, 0.1, 9, 1 - 9 * 0.1},
                             {6, 3, 2, 0},
                             {-1, kInfinity, -1, kInfinity},
                             {1, kInfinity, 0, 1}};
  for (const auto& c : cases) {
    EXPECT_EQ(scalar_math::floorDivFloat(b, c[0], c[1]), c[2]) << c[0] << " // " << c[1];
    const double remainder = scalar_math::modFloat(b, c[0], c[1]);
    EXPECT_TRUE(remainder == c[3] || std::fabs(remainder - c[3]) < 1e-15) << c[0] << " % " << c[1];
  }
}

TEST(ScalarMath, FloatsToIntegersSaturate) {
  ScalarBackend b;
  EXPECT_EQ(scalar_math::clampedToI32(b, 3e9, -0x1p31, 0x1p31, 0x7fffffff), 0x7fffffff);
  EXPECT_EQ(scalar_math::clampedToI32(b, -3e9f, -0x1p31, 0x1p31, 0x7fffffff), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(scalar_math::clampedToI32(b, -2.9, -0x1p31, 0x1p31, 0x7fffffff), -2);
  EXPECT_EQ(scalar_math::clampedToI32(b, kNan, -0x1p31, 0x1p31, 0x7fffffff), 0);
  EXPECT_EQ(scalar_math::clampedToI32(b, 255.9, 0, 256, 255), 255);
  EXPECT_EQ(scalar_math::clampedToI32(b, 300.0, 0, 256, 255), 255);
  EXPECT_EQ(scalar_math::clampedToI32(b, -0.5, 0, 256, 255), 0);
  EXPECT_EQ(scalar_math::clampedToI64(b, 1e30), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(scalar_math::clampedToI64(b, static_cast<float>(-kInfinity)), std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace gshard
