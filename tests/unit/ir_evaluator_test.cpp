// The evaluator on simulated devices: pending sums, collectives and their bytes, rows, run-time errors; and its checks.
#include <cmath>

#include "ir/random_values.h"
#include "ir_harness.h"
#include "runtime/element_type.h"
#include "runtime/random_values.h"
#include "support/check.h"

namespace gshard {
namespace {
using testing_ir::numbersOf;
using testing_ir::parseText;
using testing_ir::tensorOf;
using Numbers = std::vector<double>;

EvalResult run(const Module& module, const std::vector<Tensor>& arguments, const EvalOptions& options = {}) {
  return evaluate(module, module.functions[0], arguments, options);
}

TEST(Evaluator, PendingSumThroughCollectives) {
  const Module module = parseText(R"(mesh [x: 3]
func @f(%a: f32[4, 7] {[_, x]}, %b: f32[7, 5] {[x, _]}) {
  %p = contract "ik,kj->ij" %a, %b : f32[4, 5] {[_, _], sum: x}
  %r = all_reduce %p {axes = [x], reduction = "sum"} : f32[4, 5] {[_, _]}
  %s = reduce_scatter %p {axes = [x], reduction = "sum", dim = 1} : f32[4, 5] {[_, x]}
  %g = all_gather %s {axes = [x], dim = 1} : f32[4, 5] {[_, _]}
  %t = all_to_all %s {axes = [x], concat_dim = 1, split_dim = 0} : f32[4, 5] {[x, _]}
  return %r, %g, %t
})");
  ASSERT_EQ(verify(module, Form::Spmd), std::nullopt);
  Numbers a, b, expected(20, 0);
  for (int i = 0; i < 28; ++i) a.push_back(i % 5 - 2);
  for (int i = 0; i < 35; ++i) b.push_back(i % 7 - 3);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 5; ++j) {
      for (int k = 0; k < 7; ++k) expected[i * 5 + j] += a[i * 7 + k] * b[k * 5 + j];
    }
  }
  const EvalResult result = run(module, {tensorOf({DType::F32, {4, 7}}, a), tensorOf({DType::F32, {7, 5}}, b)});
  for (const Tensor& tensor : result.results) EXPECT_EQ(numbersOf(tensor), expected);
  // Columns 5 = 2 + 2 + 1. all_reduce of 20 elements, parts 7, 7, 6: 2 c + (20 - c). reduce_scatter: 2 * 4 * columns.
  // all_gather: 20 - own. all_to_all to rows 2 + 2 + 0: own rows * 5 - own rows * own columns.
  const auto bytes = [](std::int64_t part, std::int64_t columns, std::int64_t rows) {
    return 4 * ((2 * part + 20 - part) + 8 * columns + (20 - 4 * columns) + (rows * 5 - rows * columns));
  };
  EXPECT_EQ(result.bytesReceived, (std::vector<std::int64_t>{bytes(7, 2, 2), bytes(7, 2, 2), bytes(6, 1, 0)}));
}

TEST(Evaluator, ExchangeFetchesWhatItLacks) {
  const Module module = parseText(R"(mesh [x: 2]
func @f(%a: f32[7] {[x]}) {
  %s = exchange %a {move = "slice", start = [2], limit = [7], step = [1]} : f32[5] {[x]}
  %r = exchange %s {move = "reverse", dims = [0]} : f32[5] {[x]}
  return %s, %r
})");
  ASSERT_EQ(verify(module, Form::Spmd), std::nullopt);
  const EvalResult result = run(module, {tensorOf({DType::F32, {7}}, {0, 1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(numbersOf(result.results[0]), (Numbers{2, 3, 4, 5, 6}));
  EXPECT_EQ(numbersOf(result.results[1]), (Numbers{6, 5, 4, 3, 2}));
  // Device 0 holds a[0..3] and needs a[2..4]: one element; device 1 holds a[4..6] and needs a[5..6]: none. Then of s,
  // device 0 holds 2 3 4 and needs 6 5 4: two; device 1 holds 5 6 and needs 3 2: two.
  EXPECT_EQ(result.bytesReceived, (std::vector<std::int64_t>{4 * 3, 4 * 2}));
}

TEST(Evaluator, LiveRowsBoundReductionsOnEveryDevice) {
  const std::string text = R"(MESH
func @f(%x: f32[6, 2] SPLIT row 0) rows 6 blocks 0 {
  %s = reduce sum %x {dims = [0]} : f32[2] PENDING
  %m = reduce max %x {dims = [0]} : f32[2] PENDINGMAX
  %n = dim_size %x {dims = [0]} : f32 WHOLE
  return %s, %m, %n
})";
  const auto filled = [&](const std::vector<std::pair<std::string, std::string>>& replacements) {
    std::string result = text;
    for (const auto& [from, to] : replacements) result.replace(result.find(from), from.size(), to);
    return parseText(result);
  };
  const Module global = filled({{"MESH", ""}, {"SPLIT", ""}, {"PENDINGMAX", ""}, {"PENDING", ""}, {"WHOLE", ""}});
  const Module spmd = filled({{"MESH", "mesh [x: 4]"},
                              {"SPLIT", "{[x, _]}"},
                              {"PENDINGMAX", "{[_], max: x}"},
                              {"PENDING", "{[_], sum: x}"},
                              {"WHOLE", "{[]}"}});
  EvalOptions options;
  options.rows = 3;
  options.totalRows = 21;
  const Tensor x = tensorOf({DType::F32, {6, 2}}, {1, 2, 3, 4, 5, 6, 100, 100, 100, 100, 100, 100});
  for (const Module* module : {&global, &spmd}) {
    const EvalResult result = run(*module, {x}, options);
    EXPECT_EQ(numbersOf(result.results[0]), (Numbers{9, 12}));
    EXPECT_EQ(numbersOf(result.results[1]), (Numbers{5, 6}));
    EXPECT_EQ(numbersOf(result.results[2]), (Numbers{21}));
  }
}

TEST(Evaluator, SplitTableAnswersForItsRows) {
  const Module module = parseText(R"(mesh [x: 2, y: 2]
func @f(%t: f32[5, 2] {[x, _]}, %i: i32[3] {[y]}, %u: f32[3, 2] {[y, _]}) {
  %v = take %t, %i {axis = 0} : f32[3, 2] {[y, _], sum: x}
  %w = all_reduce %v {axes = [x], reduction = "sum"} : f32[3, 2] {[y, _]}
  %p = make_partial %t {axes = [y], reduction = "sum"} : f32[5, 2] {[x, _], sum: y}
  %s = scatter_add %p, %i, %u {axis = 0} : f32[5, 2] {[x, _], sum: y}
  %r = all_reduce %s {axes = [y], reduction = "sum"} : f32[5, 2] {[x, _]}
  return %w, %r
})");
  ASSERT_EQ(verify(module, Form::Spmd), std::nullopt);
  const Tensor table = tensorOf({DType::F32, {5, 2}}, {0, -0.0, 2, 3, 4, 5, 6, 7, 8, 9});
  const EvalResult result =
      run(module, {table, tensorOf({DType::I32, {3}}, {0, 4, 0}), tensorOf({DType::F32, {3, 2}}, {1, 1, 2, 2, 3, 3})});
  EXPECT_EQ(numbersOf(result.results[0]), (Numbers{0, 0, 8, 9, 0, 0}));
  EXPECT_TRUE(std::signbit(result.results[0].floats[1])) << "the bits of a looked-up -0 survive the masked sum";
  EXPECT_EQ(numbersOf(result.results[1]), (Numbers{4, 4, 2, 3, 4, 5, 6, 7, 10, 11}));
}

TEST(Evaluator, RunTimeErrorsAreTheSameOnEveryMesh) {
  for (const char* sharding : {"", "{[x]}"}) {
    const std::string s(sharding);
    const std::string whole = s.empty() ? "" : "{[_]}";
    const Module module = parseText("mesh [x: 2]\nfunc @f(%t: i32[4] " + whole + ", %i: i32[4] " + s +
                                    ") {\n %y = take %t, %i {axis = 0} : i32[4] " + s +
                                    "\n %d = floordiv %y, %i : i32[4] " + s + "\n return %d\n}");
    const EvalResult result =
        run(module, {tensorOf({DType::I32, {4}}, {5, 6, 7, 8}), tensorOf({DType::I32, {4}}, {1, 0, 9, -1})});
    EXPECT_EQ(numbersOf(result.results[0]), (Numbers{6, 0, 0, -5}));
    EXPECT_EQ(result.faults,
              (std::vector<std::string>{"index 9 is out of range for dim 0 of size 4", "integer division by zero"}));
  }
}

TEST(Evaluator, ABrokenTileRuleIsNoticed) {
  // The slice needs elements that another device holds: as a local op it must not pass, neither here nor in the
  // verifier.
  const Module module = parseText(
      "mesh [x: 2]\nfunc @f(%a: f32[4] {[x]}) {\n %s = slice %a {start = [2], limit = [4], step = [1]} : f32[2] "
      "{[x]}\n return %s\n}");
  EXPECT_NE(verify(module, Form::Spmd), std::nullopt);
  EXPECT_THROW(run(module, {tensorOf({DType::F32, {4}}, {0, 1, 2, 3})}), InternalError);
}

TEST(Evaluator, PendingAccumulatorsKeepTheirSum) {
  const Module module = parseText(R"(mesh [x: 2]
func @f(%acc: f32[2] {[_], sum: x} accumulator 0, %g: f32[4, 2] {[x, _]}) accumulate rows 4 blocks 2 {
  %s = reduce sum %g {dims = [0]} : f32[2] {[_], sum: x}
  %n = add %acc, %s : f32[2] {[_], sum: x}
  return %n accumulator 0 sum
})");
  ASSERT_EQ(verify(module, Form::Spmd), std::nullopt);
  const EvalResult result =
      run(module, {tensorOf({DType::F32, {2}}, {10, 20}), tensorOf({DType::F32, {4, 2}}, {1, 2, 3, 4, 5, 6, 7, 8})});
  EXPECT_EQ(numbersOf(result.results[0]), (Numbers{26, 40}));
}

TEST(Random, IsThatOfTheRuntime) {
  namespace rv = runtime::random_values;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const RandomStream mine{0x123456789abcdefULL, 77, 3};
    const rv::Stream theirs{0x123456789abcdefULL, 77, 3};
    EXPECT_EQ(randomUniform(mine, i, DType::F32, -0.3, 0.7),
              static_cast<double>(rv::uniformF32(theirs, i, -0.3f, 0.7f)));
    EXPECT_EQ(randomUniform(mine, i, DType::F64, -0.3, 0.7), rv::uniformF64(theirs, i, -0.3, 0.7));
    const rv::NormalInputs inputs = rv::normalInputs(theirs, i);
    EXPECT_EQ(randomNormal(mine, i, DType::F64),
              std::sqrt(-2.0 * std::log(inputs.radius)) * std::cos(6.283185307179586476925286766559 * inputs.angle));
  }
}

TEST(Tensor, NarrowFormatsRoundAsTheRuntimeDoes) {
  std::uint32_t bits = 1;
  for (int i = 0; i < 200000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    EXPECT_EQ(roundTo(DType::BF16, value), static_cast<double>(runtime::bfloatToFloat(runtime::floatToBfloat(value))))
        << value;
    EXPECT_EQ(roundTo(DType::F16, value), static_cast<double>(runtime::halfToFloat(runtime::floatToHalf(value))))
        << value;
  }
  EXPECT_EQ(roundTo(DType::F16, 65519.9), 65504);
  EXPECT_EQ(roundTo(DType::F16, 65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(roundTo(DType::F16, 0x1p-25), 0);
  EXPECT_EQ(roundTo(DType::F16, 0x1.8p-25), 0x1p-24);
}

}  // namespace
}  // namespace gshard
