// Builtins against NumPy's answers, worked out by hand.
#include <cmath>

#include "sema_harness.h"

namespace gshard {
namespace {

using namespace testing_sema;
using Numbers = std::vector<double>;

const char* const kBefore = R"(
fn a() { return reshape(cast(iota(6), f32), [2, 3]) }
fn i(values: [int]) { return stack([cast(v, i32) for v in values]) }
)";

Numbers value(const std::string& expression, const std::string& type) {
  return numbers(evaluateExpression(expression, type, kBefore));
}

TEST(SemaBuiltins, Elementwise) {
  EXPECT_EQ(value("floordiv(i([7, -7]), 2)", "i32[2]"), (Numbers{3, -4}));
  EXPECT_EQ(value("ceildiv(i([7, -7]), 2)", "i32[2]"), (Numbers{4, -3}));
  EXPECT_EQ(value("ceildiv(cast(i([7, 8]), u8), 4)", "u8[2]"), (Numbers{2, 2}));
  EXPECT_EQ(value("i([7, -7]) % 3", "i32[2]"), (Numbers{1, 2}));
  EXPECT_EQ(value("clamp(a(), 1.0, 3)", "f32[2, 3]"), (Numbers{1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(value("maximum(a(), 2) - minimum(a(), 2)", "f32[2, 3]"), (Numbers{2, 1, 0, 1, 2, 3}));
  EXPECT_EQ(value("where(a() > 2.0, a(), -1)", "f32[2, 3]"), (Numbers{-1, -1, -1, 3, 4, 5}));
  EXPECT_EQ(value("not (a() > 2.0 and a() != 4.0)", "bool[2, 3]"), (Numbers{1, 1, 1, 0, 1, 0}));
  EXPECT_EQ(value("round(cast(i([1, 3, 5]), f32) / 2)", "f32[3]"), (Numbers{0, 2, 2}));
  EXPECT_EQ(value("cast(a() * 1.7, i32)", "i32[2, 3]"), (Numbers{0, 1, 3, 5, 6, 8}));
  EXPECT_EQ(value("abs(i([-3, 2])) + sign(i([-3, 2]))", "i32[2]"), (Numbers{2, 3}));
}

TEST(SemaBuiltins, Reductions) {
  EXPECT_EQ(value("sum(a())", "f32"), (Numbers{15}));
  EXPECT_EQ(value("sum(a(), axis: -1, keepdims: true)", "f32[2, 1]"), (Numbers{3, 12}));
  EXPECT_EQ(value("prod(a() + 1.0, axis: [0])", "f32[3]"), (Numbers{4, 10, 18}));
  EXPECT_EQ(value("mean(a(), axis: 0)", "f32[3]"), (Numbers{1.5, 2.5, 3.5}));
  EXPECT_EQ(value("variance(a(), axis: 1)", "f32[2]")[0], numbers(floats({1}, {2.0 / 3}))[0]);
  EXPECT_EQ(value("variance(a(), axis: 1, correction: 1)", "f32[2]"), (Numbers{1, 1}));
  EXPECT_EQ(value("variance(a(), keepdims: true)", "f32[1, 1]")[0], numbers(floats({1}, {17.5 / 6}))[0]);
  EXPECT_EQ(value("max(a(), axis: 1) + min(a(), axis: 1)", "f32[2]"), (Numbers{2, 8}));
  EXPECT_EQ(value("any(a() > 4.0, axis: 1)", "bool[2]"), (Numbers{0, 1}));
  EXPECT_EQ(value("all(a() > 4.0)", "bool[]"), (Numbers{0}));
  EXPECT_EQ(value("argmax(a(), axis: 0, keepdims: true)", "i32[1, 3]"), (Numbers{1, 1, 1}));
  EXPECT_EQ(value("argmin(i([2, 1, 1]), axis: 0)", "i32"), (Numbers{1}));
  EXPECT_EQ(value("sum(a()[0:0])", "f32"), (Numbers{0}));
  EXPECT_EQ(value("sum(i([2147483647, 1]))", "i32"), (Numbers{-2147483648.0}));
}

TEST(SemaBuiltins, Products) {
  EXPECT_EQ(value("matmul(a(), transpose(a()))", "f32[2, 2]"), (Numbers{5, 14, 14, 50}));
  EXPECT_EQ(value("matmul(a(), cast(iota(3), f32))", "f32[2]"), (Numbers{5, 14}));
  EXPECT_EQ(value("matmul(cast(iota(2), f32), a())", "f32[3]"), (Numbers{3, 4, 5}));
  EXPECT_EQ(value("matmul(cast(iota(3), f32), cast(iota(3), f32))", "f32"), (Numbers{5}));
  // Leading dims broadcast: [2, 1, 1, 3] with [3, 1] and [2, 3, 2].
  EXPECT_EQ(value("matmul(reshape(a(), [2, 1, 1, 3]), ones([2, 3, 1]))", "f32[2, 2, 1, 1]"), (Numbers{3, 3, 12, 12}));
  EXPECT_EQ(value("einsum(\"ij,ij->i\", a(), a())", "f32[2]"), (Numbers{5, 50}));
  EXPECT_EQ(value("einsum(\"ii->i\", matmul(a(), transpose(a())))", "f32[2]"), (Numbers{5, 50}));
  EXPECT_EQ(value("einsum(\"ij,jk,k->i\", a(), transpose(a()), cast(iota(2), f32))", "f32[2]"), (Numbers{14, 50}));
  EXPECT_EQ(value("einsum(\"i,j->ij\", i([1, 2]), i([3, 4]))", "i32[2, 2]"), (Numbers{3, 4, 6, 8}));
}

TEST(SemaBuiltins, Shapes) {
  EXPECT_EQ(value("reshape(a(), [3, -1])", "f32[3, 2]"), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(value("transpose(reshape(a(), [1, 2, 3]), [2, 0, 1])", "f32[3, 1, 2]"), (Numbers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(value("broadcast(cast(iota(2), f32), [2, 2])", "f32[2, 2]"), (Numbers{0, 1, 0, 1}));
  EXPECT_EQ(value("concat([a(), a()[:, 0:1]], axis: 1)", "f32[2, 4]"), (Numbers{0, 1, 2, 0, 3, 4, 5, 3}));
  EXPECT_EQ(value("stack([a()[0], a()[1]], axis: 1)", "f32[3, 2]"), (Numbers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(value("split(a(), 3, axis: 1)[1]", "f32[2, 1]"), (Numbers{1, 4}));
  EXPECT_EQ(value("split(a(), [1, 2], axis: -1)[1]", "f32[2, 2]"), (Numbers{1, 2, 4, 5}));
  EXPECT_EQ(value("pad(a()[0], low: 1, high: -1, interior: 1, value: 9)", "f32[5]"), (Numbers{9, 0, 9, 1, 9}));
  EXPECT_EQ(value("pad(a(), low: [0, 1], high: [0, 0], value: a()[1, 2])", "f32[2, 4]"),
            (Numbers{5, 0, 1, 2, 5, 3, 4, 5}));
  EXPECT_EQ(value("reverse(a(), axis: [0, 1])", "f32[2, 3]"), (Numbers{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(value("full([2], 0.5) + zeros([2]) + ones_like(a()[0, 0:2])", "f32[2]"), (Numbers{1.5, 1.5}));
  EXPECT_EQ(value("iota([2, 2], axis: 1)", "i32[2, 2]"), (Numbers{0, 1, 0, 1}));
}

TEST(SemaBuiltins, Indexing) {
  EXPECT_EQ(value("take(a(), i([1, 0, 1]))", "f32[3, 3]"), (Numbers{3, 4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(value("take(a(), i([2]), axis: 1)", "f32[2, 1]"), (Numbers{2, 5}));
  EXPECT_EQ(value("take(a(), i([2, 0]), axis: 1, batch: 1)", "f32[2]"), (Numbers{2, 3}));
  EXPECT_EQ(value("take(a(), 1)", "f32[3]"), (Numbers{3, 4, 5}));
  EXPECT_EQ(value("scatter_add(zeros([4]), i([1, 3, 1]), ones([3]))", "f32[4]"), (Numbers{0, 2, 0, 1}));
  EXPECT_EQ(value("scatter_add(a(), cast(i([1]), u8), 10.0)", "f32[2, 3]"), (Numbers{0, 1, 2, 13, 14, 15}));
  EXPECT_EQ(value("one_hot(i([1, 5, -1]), 2)", "f32[3, 2]"), (Numbers{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(value("one_hot(i([1]), 2, dtype: i32)", "i32[1, 2]"), (Numbers{0, 1}));
}

TEST(SemaBuiltins, SixteenBitSumsRoundByACast) {
  const auto program = elaborateText(
      "entry fn f(x: bf16[3]) -> bf16 { return sum(x) }\nentry fn g(x: bf16[2, 2]) -> bf16[2, 2] { return matmul(x, x) "
      "}\n");
  ASSERT_TRUE(program->module) << program->rendered();
  const std::string text = printModule(*program->module);
  EXPECT_NE(text.find("reduce sum %x {dims = [0]} : f32"), std::string::npos) << text;
  EXPECT_NE(text.find("cast %reduce"), std::string::npos) << text;
  // Rounded once: 256 + 1 + 1 is 258 in bf16, while 256 + 1 alone stays 256.
  EXPECT_EQ(numbers(run(*program->module, "f", {{"x", tensor(DType::BF16, {3}, {256, 1, 1})}}).at("result")),
            (Numbers{258}));
}

TEST(SemaBuiltins, RandomValuesKeepTheirRanges) {
  const Numbers uniform = value("random_uniform([1000], low: 2.0, high: 3.0)", "f32[1000]");
  double sum = 0;
  for (const double x : uniform) {
    EXPECT_GE(x, 2);
    EXPECT_LT(x, 3);
    sum += x;
  }
  EXPECT_NEAR(sum / 1000, 2.5, 0.05);
  double squares = 0;
  for (const double x : value("random_normal([1000])", "f32[1000]")) squares += x * x;
  EXPECT_NEAR(squares / 1000, 1, 0.15);
  Numbers counts(3, 0);
  for (const double x : value("random_int([300], -1, 2)", "i32[300]")) ++counts.at(static_cast<std::size_t>(x + 1));
  for (const double count : counts) EXPECT_GT(count, 60);
}

}  // namespace
}  // namespace gshard
