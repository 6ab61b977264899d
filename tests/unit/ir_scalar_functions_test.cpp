// The table of scalar functions, and their values dtype by dtype through the one function that the evaluator calls.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/scalar_functions.h"

namespace gshard {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNotANumber = std::numeric_limits<double>::quiet_NaN();

double real(ScalarFn fn, const std::vector<double>& operands, DType dtype = DType::F32) {
  std::vector<ScalarNumber> numbers;
  for (const double operand : operands) numbers.push_back({operand, 0});
  return evaluateScalar(fn, dtype, dtype, numbers).real;
}
std::int64_t integer(ScalarFn fn, const std::vector<std::int64_t>& operands, DType dtype = DType::I32) {
  std::vector<ScalarNumber> numbers;
  for (const std::int64_t operand : operands) numbers.push_back({0, operand});
  return evaluateScalar(fn, dtype, scalarResultDtype(fn, dtype, dtype), numbers).integer;
}
bool holds(ScalarFn fn, const std::vector<double>& operands) {
  std::vector<ScalarNumber> numbers;
  for (const double operand : operands) numbers.push_back({operand, 0});
  return evaluateScalar(fn, DType::F32, DType::Bool, numbers).integer != 0;
}
double castReal(DType from, DType to, double value) {
  const ScalarNumber number{value, 0};
  return evaluateScalar(ScalarFn::Cast, from, to, {&number, 1}).real;
}
std::int64_t castToInteger(DType from, DType to, double value) {
  const ScalarNumber number{value, 0};
  return evaluateScalar(ScalarFn::Cast, from, to, {&number, 1}).integer;
}
ScalarNumber castInteger(DType from, DType to, std::int64_t value) {
  const ScalarNumber number{0, value};
  return evaluateScalar(ScalarFn::Cast, from, to, {&number, 1});
}

TEST(ScalarFunctions, TableIsSortedAndFoundByName) {
  std::string_view last;
  for (const ScalarInfo& info : allScalarFunctions()) {
    EXPECT_LT(last, info.name);
    last = info.name;
    EXPECT_EQ(scalarFromName(info.name), info.fn);
    EXPECT_FALSE(info.doc.empty());
    EXPECT_GE(info.arity, 1);
    EXPECT_LE(info.arity, 3);
  }
  EXPECT_EQ(scalarFromName("exq"), std::nullopt);
  EXPECT_EQ(scalarFromName(""), std::nullopt);
}

// Every function has a value for every dtype that it accepts (none is forgotten in emitFloat or emitInteger).
TEST(ScalarFunctions, EveryAcceptedDtypeHasAValue) {
  for (const ScalarInfo& info : allScalarFunctions()) {
    for (const DType dtype :
         {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I32, DType::I64, DType::U8, DType::Bool}) {
      if (!acceptsDtype(info.operands, dtype)) continue;
      const std::vector<ScalarNumber> ones(static_cast<std::size_t>(info.arity), ScalarNumber{1, 1});
      EXPECT_NO_THROW(evaluateScalar(info.fn, dtype, scalarResultDtype(info.fn, dtype, DType::F32), ones))
          << info.name << " " << dtypeName(dtype);
    }
  }
}

TEST(ScalarFunctions, ExtremesFollowIeee) {
  EXPECT_TRUE(std::isnan(real(ScalarFn::Maximum, {kNotANumber, 1})));
  EXPECT_TRUE(std::isnan(real(ScalarFn::Minimum, {1, kNotANumber})));
  EXPECT_FALSE(std::signbit(real(ScalarFn::Maximum, {-0.0, 0.0})));
  EXPECT_TRUE(std::signbit(real(ScalarFn::Minimum, {0.0, -0.0})));
  EXPECT_EQ(real(ScalarFn::Clamp, {5, 0, 3}), 3);
  EXPECT_EQ(real(ScalarFn::Clamp, {-5, 0, 3}), 0);
  EXPECT_TRUE(std::isnan(real(ScalarFn::Relu, {kNotANumber})));
  EXPECT_EQ(real(ScalarFn::Relu, {-2}), 0);
  EXPECT_EQ(integer(ScalarFn::Maximum, {-3, 2}), 2);
}

TEST(ScalarFunctions, RoundsHalvesToEven) {
  EXPECT_EQ(real(ScalarFn::Round, {0.5}), 0);
  EXPECT_EQ(real(ScalarFn::Round, {1.5}), 2);
  EXPECT_EQ(real(ScalarFn::Round, {-2.5}), -2);
  EXPECT_EQ(real(ScalarFn::Floor, {-0.5}), -1);
  EXPECT_EQ(real(ScalarFn::Ceil, {0.5}), 1);
}

TEST(ScalarFunctions, ComparisonsWithNan) {
  EXPECT_FALSE(holds(ScalarFn::Eq, {kNotANumber, kNotANumber}));
  EXPECT_TRUE(holds(ScalarFn::Ne, {kNotANumber, kNotANumber}));
  EXPECT_FALSE(holds(ScalarFn::Ge, {kNotANumber, 0}));
  EXPECT_TRUE(holds(ScalarFn::Eq, {0.0, -0.0}));
  EXPECT_TRUE(holds(ScalarFn::IsInf, {-kInf}));
  EXPECT_FALSE(holds(ScalarFn::IsFinite, {kNotANumber}));
  EXPECT_TRUE(holds(ScalarFn::IsNan, {kNotANumber}));
}

TEST(ScalarFunctions, IntegersWrap) {
  EXPECT_EQ(integer(ScalarFn::Add, {0x7fffffff, 1}), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(integer(ScalarFn::Mul, {std::int64_t{1} << 62, 4}, DType::I64), 0);
  EXPECT_EQ(integer(ScalarFn::Sub, {3, 5}, DType::U8), 254);
  EXPECT_EQ(integer(ScalarFn::Neg, {1}, DType::U8), 255);
  EXPECT_EQ(integer(ScalarFn::Floordiv, {-7, 2}), -4);
  EXPECT_EQ(integer(ScalarFn::Mod, {-7, 2}), 1);
  EXPECT_EQ(integer(ScalarFn::Mod, {200, 7}, DType::U8), 4);
  EXPECT_EQ(integer(ScalarFn::Sign, {-9}), -1);
  EXPECT_EQ(integer(ScalarFn::Sign, {200}, DType::U8), 1);
  EXPECT_EQ(integer(ScalarFn::Lt, {-1, 1}), 1);
  EXPECT_EQ(integer(ScalarFn::Lt, {200, 1}, DType::U8), 0);
}

TEST(ScalarFunctions, SixteenBitResultsAreRounded) {
  EXPECT_EQ(real(ScalarFn::Add, {1, 0x1p-9}, DType::BF16), 1);
  EXPECT_EQ(real(ScalarFn::Add, {1, 0x1p-12}, DType::F16), 1);
  EXPECT_EQ(real(ScalarFn::Mul, {256, 256}, DType::F16), kInf);
  EXPECT_EQ(real(ScalarFn::Exp, {1}, DType::BF16), 2.71875);
}

TEST(ScalarFunctions, Casts) {
  EXPECT_EQ(castToInteger(DType::F32, DType::I32, 3e9), 0x7fffffff);
  EXPECT_EQ(castToInteger(DType::F64, DType::I64, -1e300), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(castToInteger(DType::F32, DType::U8, -1), 0);
  EXPECT_EQ(castToInteger(DType::F32, DType::U8, 255.5), 255);
  EXPECT_EQ(castToInteger(DType::F32, DType::I32, kNotANumber), 0);
  EXPECT_EQ(castToInteger(DType::F32, DType::I32, -2.9), -2);
  EXPECT_EQ(castToInteger(DType::F32, DType::Bool, 0.5), 1);
  EXPECT_EQ(castToInteger(DType::F32, DType::Bool, -0.0), 0);
  EXPECT_EQ(castToInteger(DType::F32, DType::Bool, kNotANumber), 1);
  EXPECT_EQ(castReal(DType::F64, DType::F32, 0.1), static_cast<double>(0.1f));
  EXPECT_EQ(castReal(DType::F64, DType::BF16, 1.0 + 0x1p-8 + 0x1p-40), 1.0 + 0x1p-7);  // one rounding, not two
  EXPECT_EQ(castReal(DType::F32, DType::F16, 1e5), kInf);
  EXPECT_EQ(castInteger(DType::I32, DType::U8, 300).integer, 44);
  EXPECT_EQ(castInteger(DType::I64, DType::I32, (std::int64_t{1} << 32) + 5).integer, 5);
  EXPECT_EQ(castInteger(DType::I64, DType::F32, (std::int64_t{1} << 24) + 1).real, 0x1p24);
  EXPECT_EQ(castInteger(DType::I64, DType::BF16, (std::int64_t{257} << 50) + 1).real,
            258 * 0x1p50);  // above the tie by 1
  EXPECT_EQ(castInteger(DType::I64, DType::BF16, -((std::int64_t{257} << 50) + 1)).real, -258 * 0x1p50);
  EXPECT_EQ(castInteger(DType::Bool, DType::F32, 1).real, 1);
  EXPECT_EQ(castInteger(DType::I32, DType::Bool, -4).integer, 1);
}

TEST(ScalarFunctions, Where) {
  const std::vector<ScalarNumber> numbers{{0, 1}, {2.5, 0}, {3.5, 0}};
  EXPECT_EQ(evaluateScalar(ScalarFn::Where, DType::F32, DType::F32, numbers).real, 2.5);
  const std::vector<ScalarNumber> ints{{0, 0}, {0, 7}, {0, 9}};
  EXPECT_EQ(evaluateScalar(ScalarFn::Where, DType::U8, DType::U8, ints).integer, 9);
}

TEST(ScalarFunctions, Linearity) {
  const auto joint = [](ScalarFn fn, DType operand, DType result) {
    const auto linearity = scalarLinearity(fn, operand, result);
    return std::get_if<Joint>(&linearity) != nullptr;
  };
  EXPECT_TRUE(joint(ScalarFn::Add, DType::F32, DType::F32));
  EXPECT_TRUE(joint(ScalarFn::Cast, DType::BF16, DType::F32));
  EXPECT_FALSE(joint(ScalarFn::Cast, DType::F32, DType::BF16));
  EXPECT_FALSE(joint(ScalarFn::Cast, DType::I32, DType::I64));
  EXPECT_FALSE(joint(ScalarFn::Exp, DType::F32, DType::F32));
  EXPECT_TRUE(std::holds_alternative<Separate>(scalarLinearity(ScalarFn::Mul, DType::F32, DType::F32)));
}

}  // namespace
}  // namespace gshard
