// What code generation promises beyond right values: what is fused, what is made in place, bits that depend on nothing
// but the program, faults with their place, short blocks of rows, all targets, equal objects for equal input.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "codegen_harness.h"
#include "ir/text.h"

namespace gshard::testing_codegen {
namespace {

std::vector<std::string> stepsOf(const CodegenResult& result, const std::string& kind) {
  std::vector<std::string> texts;
  for (const StepSummary& step : result.steps) {
    if (step.kind == kind) texts.push_back(step.text);
  }
  return texts;
}

const char* const kAdam = R"(module adam
mesh [a: 1]
param w: f32[33, 7]
state w.m: f32[33, 7]
state w.v: f32[33, 7]

func @step(%w: f32[33, 7] param w, %m: f32[33, 7] state w.m, %v: f32[33, 7] state w.v, %g: f32[33, 7]) -> (f32[33, 7], f32[33, 7], f32[33, 7]) {
  %b1 = constant {value = 0.9} : f32
  %c1 = constant {value = 0.1} : f32
  %b2 = constant {value = 0.999} : f32
  %c2 = constant {value = 0.001} : f32
  %lr = constant {value = 0.01} : f32
  %eps = constant {value = 1e-08} : f32
  %m0 = mul %b1, %m : f32[33, 7]
  %m1 = mul %c1, %g : f32[33, 7]
  %m2 = add %m0, %m1 : f32[33, 7]
  %v0 = mul %b2, %v : f32[33, 7]
  %g2 = mul %g, %g : f32[33, 7]
  %v1 = mul %c2, %g2 : f32[33, 7]
  %v2 = add %v0, %v1 : f32[33, 7]
  %root = sqrt %v2 : f32[33, 7]
  %down = add %root, %eps : f32[33, 7]
  %up = mul %lr, %m2 : f32[33, 7]
  %move = div %up, %down : f32[33, 7]
  %w2 = sub %w, %move : f32[33, 7]
  return %w2 param w, %m2 state w.m, %v2 state w.v
}
)";

TEST(Fusion, AnAdamUpdateIsOneKernelInPlace) {
  const auto module = moduleOf(kAdam);
  ASSERT_NE(module, nullptr);
  const auto compiled = Compiled::compile(*module);
  ASSERT_NE(compiled, nullptr);
  EXPECT_EQ(stepsOf(compiled->result(), "kernel").size(), 1u);
  EXPECT_EQ(stepsOf(compiled->result(), "copy").size(), 0u);
  // Parameters, states and the gradient: nothing else is ever alive.
  const std::int64_t part = 33 * 7 * 4, aligned = (part + 63) / 64 * 64;
  EXPECT_EQ(compiled->result().persistentBytes, 3 * aligned);
  EXPECT_EQ(compiled->result().arenaBytes, 3 * aligned + part);
  std::vector<Tensor> arguments = drawAll(module->functions[0], 0, 1);
  expectLikeEvaluator(*module, "step", arguments, 0);
}

TEST(Fusion, BiasAndReluAreOneKernelWithTheirMask) {
  const auto module = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: f32[64, 64], %w: f32[64, 64], %b: f32[64]) -> (f32[64, 64], bool[64, 64]) {
  %y = contract "ij,jk->ik" %x, %w : f32[64, 64]
  %s = add %y, %b : f32[64, 64]
  %h = relu %s : f32[64, 64]
  %zero = constant {value = 0.0} : f32
  %on = gt %s, %zero : bool[64, 64]
  return %h, %on
}
)");
  ASSERT_NE(module, nullptr);
  const auto compiled = Compiled::compile(*module);
  ASSERT_NE(compiled, nullptr);
  EXPECT_EQ(stepsOf(compiled->result(), "gemm").size(), 1u);
  EXPECT_EQ(stepsOf(compiled->result(), "kernel").size(), 1u);
  expectLikeEvaluator(*module, "f", drawAll(module->functions[0]), 1e-5);
}

TEST(Fusion, NoGroupWaitsForItself) {
  // `e` feeds the sum and the quotient; the sum comes back into the space of `e`.
  const auto module = moduleOf(R"(module m
mesh [a: 1]

func @softmax(%x: f32[5, 17]) -> (f32[5, 17], f32[5, 17]) {
  %top = reduce max %x {dims = [1]} : f32[5]
  %tops = broadcast %top {dims = [0]} : f32[5, 17]
  %d = sub %x, %tops : f32[5, 17]
  %e = exp %d : f32[5, 17]
  %s = reduce sum %e {dims = [1]} : f32[5]
  %ss = broadcast %s {dims = [0]} : f32[5, 17]
  %p = div %e, %ss : f32[5, 17]
  %l = log %ss : f32[5, 17]
  %q = sub %d, %l : f32[5, 17]
  return %p, %q
}
)");
  ASSERT_NE(module, nullptr);
  expectLikeEvaluator(*module, "softmax", drawAll(module->functions[0]), 1e-6);
}

TEST(Fusion, WhatIsReadAtOtherIndicesIsFinishedFirst) {
  const auto module = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: f32[4, 6], %i: i32[4]) -> (f32[4, 6], f32[24]) {
  %y = exp %x : f32[4, 6]
  %t = take %y, %i {axis = 0} : f32[4, 6]
  %s = add %y, %t : f32[4, 6]
  %flat = reshape %y : f32[24]
  %back = reverse %flat {dims = [0]} : f32[24]
  %sum = add %flat, %back : f32[24]
  return %s, %sum
}
)");
  ASSERT_NE(module, nullptr);
  std::vector<Tensor> arguments = drawAll(module->functions[0]);
  arguments[1].ints = {3, 0, 1, 2};
  expectLikeEvaluator(*module, "f", arguments, 0);
}

const char* const kSums = R"(module m
mesh [a: 1]

func @f(%x: f32[37, 1003], %y: f32[2000, 3], %z: f32[4099]) -> (f32[37], f32[1003], f32, f32[3], f32[2000], f32, f32) {
  %xx = mul %x, %x : f32[37, 1003]
  %rows = reduce sum %xx {dims = [1]} : f32[37]
  %columns = reduce sum %x {dims = [0]} : f32[1003]
  %all = reduce sum %x {dims = [0, 1]} : f32
  %thin = reduce sum %y {dims = [0]} : f32[3]
  %short = reduce max %y {dims = [1]} : f32[2000]
  %line = reduce sum %z {dims = [0]} : f32
  %least = reduce min %z {dims = [0]} : f32
  return %rows, %columns, %all, %thin, %short, %line, %least
}
)";

TEST(Bits, DependOnNeitherThreadsNorFusion) {
  const auto module = moduleOf(kSums);
  ASSERT_NE(module, nullptr);
  const std::vector<Tensor> arguments = drawAll(module->functions[0]);
  std::vector<RunResult> runs;
  for (const bool fuse : {true, false}) {
    for (const std::int64_t threads : {1, 2, 3}) {
      CodegenOptions options;
      options.fuse = fuse;
      options.threads = threads;
      const auto compiled = Compiled::compile(*module, options);
      ASSERT_NE(compiled, nullptr);
      RunOptions run;
      run.threads = threads;
      runs.push_back(compiled->run("f", arguments, run));
    }
  }
  for (const RunResult& run : runs) {
    for (std::size_t i = 0; i < run.results.size(); ++i)
      EXPECT_EQ(difference(run.results[i], runs[0].results[i], 0), "") << i;
  }
  expectLikeEvaluator(*module, "f", arguments, 2e-6);
}

TEST(Memory, OldValuesAreKeptWhereTheyAreStillNeeded) {
  const auto module = moduleOf(R"(module m
mesh [a: 1]
param p: f32[5]
param q: f32[5]

func @swap(%p: f32[5] param p, %q: f32[5] param q) -> (f32[5], f32[5], f32[5]) {
  return %q param p, %p param q, %p
}

func @late(%p: f32[5] param p, %q: f32[5] param q) -> (f32[5], f32[5], f32[5]) {
  %one = constant {value = 1.0} : f32
  %p2 = add %p, %one : f32[5]
  %r = reverse %p2 {dims = [0]} : f32[5]
  %s = reverse %p {dims = [0]} : f32[5]
  %t = mul %r, %s : f32[5]
  return %p2 param p, %t param q, %p
}
)");
  ASSERT_NE(module, nullptr);
  for (const char* name : {"swap", "late"}) {
    SCOPED_TRACE(name);
    expectLikeEvaluator(*module, name, drawAll(*module->find(name)), 0);
  }
}

TEST(Memory, DyingValuesLendTheirPlace) {
  const auto module = moduleOf(R"(module m
mesh [a: 2]

func @f(%x: f32[64, 32] {[a, _]}) -> f32[64, 32] {
  %a = exp %x : f32[64, 32] {[a, _]}
  %b = reduce sum %a {dims = [1]} : f32[64] {[a]}
  %c = broadcast %b {dims = [0]} : f32[64, 32] {[a, _]}
  %d = div %a, %c : f32[64, 32] {[a, _]}
  %e = reduce max %d {dims = [1]} : f32[64] {[a]}
  %f = broadcast %e {dims = [0]} : f32[64, 32] {[a, _]}
  %g = sub %d, %f : f32[64, 32] {[a, _]}
  return %g
}
)");
  ASSERT_NE(module, nullptr);
  const auto compiled = Compiled::compile(*module);
  ASSERT_NE(compiled, nullptr);
  // The input, one buffer of its size that every map takes over from the one before, and one of sums.
  EXPECT_EQ(compiled->result().arenaBytes, 2 * 32 * 32 * 4 + 32 * 4);
  expectLikeEvaluator(*module, "f", drawAll(module->functions[0]), 1e-6);
}

TEST(Rows, ShortBlocksTouchNothingElse) {
  const auto module = moduleOf(R"(module m
mesh [a: 2]

func @f(%x: f32[8, 3] {[a, _]} row 0, %w: f32[3, 64] {[_, _]}) -> (f32[8, 64], f32, f32) accumulate rows 8 blocks 0 {
  %y = contract "bi,ij->bj" %x, %w : f32[8, 64] {[a, _]} row 0
  %s = reduce sum %y {dims = [0, 1]} : f32 {[], sum: a}
  %n = dim_size %y {dims = [0]} : f32 {[]}
  return %y, %s, %n
}
)");
  if (module == nullptr) return;
  for (const std::int64_t rows : {8, 5, 4, 3, 1}) {
    SCOPED_TRACE(rows);
    RunOptions options;
    options.rows = rows;
    options.totalRows = 100 + rows;
    expectLikeEvaluator(*module, "f", drawAll(module->functions[0], 0.5, 2), 1e-6, options);
  }
}

TEST(Faults, NameTheLeastElement) {
  const auto module = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: f32[4, 16], %i: i32[6], %n: i32[40]) -> (f32[6, 16], i32[40]) {
  %rows = take %x, %i {axis = 0} : f32[6, 16]
  %k = constant {value = 7} : i32
  %q = floordiv %k, %n : i32[40]
  return %rows, %q
}
)");
  ASSERT_NE(module, nullptr);
  const auto compiled = Compiled::compile(*module);
  ASSERT_NE(compiled, nullptr);
  const Function& function = module->functions[0];
  std::vector<Tensor> arguments = drawAll(function, 1, 3);
  EXPECT_EQ(compiled->run("f", arguments).fault, "");
  arguments[1].ints[4] = -1;
  arguments[1].ints[2] = 4;
  EXPECT_EQ(compiled->run("f", arguments).fault, "take `rows` of `x`: 4 of 4 at 2");
  arguments[1].ints[4] = arguments[1].ints[2] = 0;
  arguments[2].ints[39] = arguments[2].ints[21] = 0;
  EXPECT_EQ(compiled->run("f", arguments).fault, "floordiv `q`: 0 of -1 at 21");
}

TEST(Targets, AllMakeObjectsAndTheSameOnesTwice) {
  const auto module = moduleOf(kAdam);
  const auto sums = moduleOf(kSums);
  ASSERT_TRUE(module != nullptr && sums != nullptr);
  SourceManager sources;
  sources.addFile("case.ir", "");
  const std::vector<std::pair<std::string, std::string>> targets = {{"", ""},
                                                                    {"x86_64-linux-gnu", "x86-64"},
                                                                    {"x86_64-linux-gnu", "x86-64-v3"},
                                                                    {"x86_64-linux-gnu", "x86-64-v4"},
                                                                    {"aarch64-linux-gnu", ""}};
  for (const auto& [triple, cpu] : targets) {
    SCOPED_TRACE(triple + " " + cpu);
    CodegenOptions options;
    options.target.triple = triple;
    options.target.cpu = cpu;
    CollectingSink sink;
    for (const Module* each : {module.get(), sums.get()}) {
      const auto first = generate(*each, nullptr, options, sources, sink);
      const auto second = generate(*each, nullptr, options, sources, sink);
      ASSERT_TRUE(first && second);
      EXPECT_GT(first->bytes.size(), 1000u);
      EXPECT_EQ(first->bytes, second->bytes);
    }
  }
  CodegenOptions unknown;
  unknown.target.cpu = "i8086";
  CollectingSink sink;
  EXPECT_FALSE(generate(*module, nullptr, unknown, sources, sink));
  ASSERT_EQ(sink.diagnostics().size(), 1u);
  EXPECT_EQ(sink.diagnostics()[0].code, "E0502");
}

// Not wider ones: the sanitizer does not follow them.
TEST(Targets, KernelsTellTheThreadSanitizerAllTheirAccesses) {
  const auto module = moduleOf(kAdam);
  ASSERT_NE(module, nullptr);
  SourceManager sources;
  sources.addFile("case.ir", "");
  CodegenOptions options;
  options.output = CodegenOutput::Assembly;
  CollectingSink sink;
  const auto plain = generate(*module, nullptr, options, sources, sink);
  options.target.threadSanitizer = true;
  const auto told = generate(*module, nullptr, options, sources, sink);
  ASSERT_TRUE(plain && told);
  EXPECT_EQ(plain->bytes.find("__tsan"), std::string::npos);
  for (const char* call : {"__tsan_unaligned_read16", "__tsan_unaligned_write16", "__tsan_write4", "__tsan_init"})
    EXPECT_NE(told->bytes.find(call), std::string::npos) << call;
  EXPECT_EQ(told->bytes.find("ymm"), std::string::npos);
}

TEST(Kernels, EqualOnesAreEmittedOnce) {
  const auto module = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: f32[64], %y: f32[64], %z: f32[32]) -> (f32[64], f32[64], f32[32]) {
  %a = exp %x : f32[64]
  %b = exp %y : f32[64]
  %c = exp %z : f32[32]
  return %a, %b, %c
}
)");
  ASSERT_NE(module, nullptr);
  const auto shared = Compiled::compile(*module);
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->result().kernels, 2);
  CodegenOptions debug;
  debug.debug = true;
  const auto apart = Compiled::compile(*module, debug);
  ASSERT_NE(apart, nullptr);
  EXPECT_EQ(apart->result().kernels, 3);
}

TEST(Linking, MakesAnExecutable) {
  const auto module = moduleOf(kAdam);
  ASSERT_NE(module, nullptr);
  SourceManager sources;
  sources.addFile("case.ir", "");
  CollectingSink sink;
  const auto result = generate(*module, nullptr, {}, sources, sink);
  ASSERT_TRUE(result);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("gshard_link_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string out = (folder / "program").string();
  // A runtime with a sanitizer in it needs the compiler that it came from.
  const char* set = std::getenv("GSHARD_CXX");
  const std::string cxx = set != nullptr ? set : "c++";
  EXPECT_TRUE(linkExecutable({result->bytes}, out, {GSHARD_RUNTIME_ARCHIVE, cxx}, sink));
  EXPECT_EQ(std::system((out + " info > " + out + ".txt").c_str()), 0);
  EXPECT_GT(std::filesystem::file_size(out + ".txt"), 0u);
  EXPECT_FALSE(linkExecutable({result->bytes}, out, {"/nowhere/libgshard_runtime.a", cxx}, sink));
  EXPECT_FALSE(linkExecutable({result->bytes}, out, {GSHARD_RUNTIME_ARCHIVE, "no-such-compiler"}, sink));
  EXPECT_FALSE(linkExecutable({"no object"}, out + "2", {GSHARD_RUNTIME_ARCHIVE, cxx}, sink));
  std::vector<std::string> codes;
  for (const Diagnostic& diagnostic : sink.diagnostics()) codes.push_back(diagnostic.code);
  EXPECT_EQ(codes, (std::vector<std::string>{"E0506", "E0504", "E0505"}));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    left.push_back(entry.path().filename().string());
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"program", "program.txt"}));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gshard::testing_codegen
