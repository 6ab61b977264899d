// What the backward pass computes again (codegen/recompute.h): which values, which never, and that results stay the
// same to the bit. The cut that decides it, apart.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/min_cut.h"
#include "codegen/recompute.h"
#include "codegen_harness.h"

namespace gshard::testing_codegen {
namespace {

using Names = std::vector<std::string>;

TEST(MinCut, TakesTheCheapestEdgesAndOfEqualsThoseNextToTheSink) {
  MinCut chain(5);  // 0 -> 2 -> 3 -> 4 -> 1
  chain.addEdge(MinCut::kSource, 2, MinCut::kEndless);
  chain.addEdge(2, 3, 4);
  chain.addEdge(3, 4, 7);
  chain.addEdge(4, MinCut::kSink, 4);
  EXPECT_EQ(chain.sinkSide(), (std::vector<bool>{false, true, false, false, false}));

  MinCut apart(6);  // two ways that share their first edge and part: 5 before, or 2 + 2 behind
  apart.addEdge(MinCut::kSource, 2, 5);
  apart.addEdge(2, 3, MinCut::kEndless);
  apart.addEdge(2, 4, MinCut::kEndless);
  apart.addEdge(3, 5, 2);
  apart.addEdge(4, 5, 2);
  apart.addEdge(5, MinCut::kSink, MinCut::kEndless);
  EXPECT_EQ(apart.sinkSide(), (std::vector<bool>{false, true, false, false, false, true}));
}

TEST(MinCut, FindsFlowsThatTakeBackWhatOthersTook) {
  // The shortest path 2 -> 5 must give its edge up for 2 -> 4 and 3 -> 5 to carry 1 each.
  MinCut graph(6);
  graph.addEdge(MinCut::kSource, 2, 1);
  graph.addEdge(MinCut::kSource, 3, 1);
  graph.addEdge(2, 5, 1);
  graph.addEdge(2, 4, 1);
  graph.addEdge(3, 5, 1);
  graph.addEdge(4, MinCut::kSink, 1);
  graph.addEdge(5, MinCut::kSink, 1);
  const std::vector<bool> side = graph.sinkSide();
  EXPECT_EQ(side, (std::vector<bool>{false, true, false, false, false, false}));
}

// Names of the values that the function computes twice, in the order of the copies.
Names repeatedIn(const Module& module) {
  ExtentTable extents;
  const Function& function = module.functions[0];
  const FunctionViews views(module, function, extents);
  const std::optional<Function> result = recomputeInBackward(views);
  Names names;
  if (!result) return names;
  for (const Op& op : result->ops) {
    for (const ValueId value : op.results) {
      if (value.index >= function.values.size()) names.push_back(result->value(value).name);
    }
  }
  return names;
}

// A product, a gate as in gelu, a product, and the way back.
const char* const kGate = R"(module m
mesh [a: 1]

func @f(%x: f32[64, 48], %w: f32[48, 80], %u: f32[80, 48], %b: f32[80], %g: f32[64, 48]) -> (f32[64, 48], f32[80], f32[80, 48]) {
  %p = contract "ij,jk->ik" %x, %w : f32[64, 80]
  %y = add %p, %b : f32[64, 80]
  %square = mul %y, %y : f32[64, 80]
  %t = tanh %square : f32[64, 80]
  %h = mul %y, %t : f32[64, 80]
  %z = contract "ij,jk->ik" %h, %u : f32[64, 48]
  %dh = contract "ik,jk->ij" %g, %u : f32[64, 80] backward
  %du = contract "ij,ik->jk" %h, %g : f32[80, 48] backward
  %a = mul %dh, %y : f32[64, 80] backward
  %tt = mul %t, %square : f32[64, 80] backward
  %dy = mul %a, %tt : f32[64, 80] backward
  %db = reduce sum %dy {dims = [0]} : f32[80] backward
  return %z, %db, %du
}
)";

TEST(Recompute, MapsOfWhatIsKeptAnyway) {
  const auto module = moduleOf(kGate);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(repeatedIn(*module), (Names{"square", "t"}));  // %y is kept; %h too, a product reads it from memory
  const auto compiled = Compiled::compile(*module);
  ASSERT_NE(compiled, nullptr);
  CodegenOptions unfused;
  unfused.fuse = false;
  const auto plain = Compiled::compile(*module, unfused);
  ASSERT_NE(plain, nullptr);
  EXPECT_LT(compiled->result().arenaBytes, plain->result().arenaBytes);
  const std::vector<Tensor> arguments = drawAll(module->functions[0], 1, 2);
  const RunResult one = compiled->run("f", arguments), other = plain->run("f", arguments);
  ASSERT_EQ(one.results.size(), 3u);
  ASSERT_EQ(other.results.size(), 3u);
  for (std::size_t i = 0; i < one.results.size(); ++i) EXPECT_EQ(difference(one.results[i], other.results[i], 0), "");
  EXPECT_EQ(one.highestByte, compiled->result().arenaBytes);
  expectLikeEvaluator(*module, "f", arguments, 1e-5);
}

TEST(Recompute, TheFewestBytesAreKept) {
  // Both of %a and %b follow from %n, which is half as large as the two.
  const auto module = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: f32[40, 30], %w: f32[30, 50]) -> (f32[50], f32[50]) {
  %p = contract "ij,jk->ik" %x, %w : f32[40, 50]
  %n = tanh %p : f32[40, 50]
  %a = sin %n : f32[40, 50]
  %b = cos %n : f32[40, 50]
  %s = reduce sum %a {dims = [0]} : f32[50]
  %c = mul %a, %b : f32[40, 50] backward
  %r = reduce sum %c {dims = [0]} : f32[50] backward
  return %s, %r
}
)");
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(repeatedIn(*module), (Names{"a", "b"}));
  expectLikeEvaluator(*module, "f", drawAll(module->functions[0], 1, 2), 1e-5);
}

TEST(Recompute, ThroughViewsButNotThroughSumsAndSmallValuesAreKept) {
  // %m is a row's mean: to find it again would take the sum, to keep it next to nothing.
  const auto module = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: f32[40, 256], %w: f32[256, 256]) -> (f32[40, 256], f32[256]) {
  %p = contract "ij,jk->ik" %x, %w : f32[40, 256]
  %s = reduce sum %p {dims = [1]} : f32[40]
  %m = exp %s : f32[40]
  %wide = broadcast %m {dims = [0]} : f32[40, 256]
  %n = mul %p, %wide : f32[40, 256]
  %turned = transpose %n {perm = [1, 0]} : f32[256, 40]
  %z = contract "ij,jk->ik" %p, %w : f32[40, 256]
  %e = exp %turned : f32[256, 40] backward
  %r = reduce sum %e {dims = [1]} : f32[256] backward
  return %z, %r
}
)");
  ASSERT_NE(module, nullptr);
  const Names names = repeatedIn(*module);
  EXPECT_EQ(std::count(names.begin(), names.end(), "m"), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), "s"), 0);
  expectLikeEvaluator(*module, "f", drawAll(module->functions[0], 1, 2), 1e-5);
}

TEST(Recompute, NothingThatMayFailAndNothingWithoutABackwardPass) {
  const auto faulty = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: i32[300], %y: i32[300], %z: i32[300]) -> (i32[300], i32[300]) {
  %q = floordiv %x, %y : i32[300]
  %n = add %q, %z : i32[300]
  %d = mul %n, %n : i32[300] backward
  %e = mul %n, %q : i32[300] backward
  return %d, %e
}
)");
  ASSERT_NE(faulty, nullptr);
  const Names names = repeatedIn(*faulty);
  EXPECT_EQ(std::count(names.begin(), names.end(), "q"), 0);
  const auto forward = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: f32[300]) -> f32[300] {
  %q = exp %x : f32[300]
  %n = add %q, %q : f32[300]
  return %n
}
)");
  ASSERT_NE(forward, nullptr);
  EXPECT_EQ(repeatedIn(*forward), Names{});
}

TEST(Recompute, AChainAsLongAsAProgramIsNotRepeatedAndNeedsNoStack) {
  std::string text =
      "module m\nmesh [a: 1]\n\nfunc @f(%x: f32[8, 8], %w: f32[8, 8]) -> f32[8, 8] {\n"
      "  %v0 = contract \"ij,jk->ik\" %x, %w : f32[8, 8]\n";
  const int length = 20000;
  for (int i = 1; i <= length; ++i) {
    const std::string before = "%v" + std::to_string(i - 1);
    text += "  %v" + std::to_string(i) + " = add " + before + ", " + before + " : f32[8, 8]\n";
  }
  text += "  %d = exp %v" + std::to_string(length) +
          " : f32[8, 8] backward\n  %e = mul %d, %v0 : f32[8, 8] backward\n" + "  return %e\n}\n";
  const auto module = moduleOf(text);
  ASSERT_NE(module, nullptr);
  // %v0 is kept anyway, and all of the chain follows from it; but not as a part of every kernel that reads its end.
  EXPECT_LE(repeatedIn(*module).size(), 100u);
}

}  // namespace
}  // namespace gshard::testing_codegen
