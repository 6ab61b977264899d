// 16-bit floats in compiled code: memory, arithmetic and products, on CPUs with and without instructions for them. That
// every op computes every dtype as the evaluator does is tested in codegen_ops_test.cpp.
#include <gtest/gtest.h>

#include "codegen_harness.h"
#include "runtime/element_type.h"

namespace gshard::testing_codegen {
namespace {

// CPUs that this machine can play.
std::vector<std::string> cpus() {
#if defined(__x86_64__)
  std::vector<std::string> known = {"", "x86-64"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) known.emplace_back("x86-64-v3");
  return known;
#else
  return {""};
#endif
}

TEST(Dtypes, SixteenBitFloats) {
  const auto module = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: bf16[9, 40], %y: f16[9, 40], %w: bf16[40, 33]) -> (bf16[9, 40], f16[40], f32[9], f32[9, 33]) {
  %e = exp %x : bf16[9, 40]
  %s = reduce max %y {dims = [0]} : f16[40]
  %t = reduce sum %x {dims = [1]} : f32[9]
  %c = contract "ij,jk->ik" %x, %w : f32[9, 33]
  return %e, %s, %t, %c
}
)");
  ASSERT_NE(module, nullptr);
  expectLikeEvaluator(*module, "f", drawAll(module->functions[0]), 1e-5);
}

// Large enough for packed products, in every order of strides and with sizes that fill no vector; on CPUs with and
// without instructions for f16.
TEST(Dtypes, ProductsOfSixteenBitOperands) {
  std::string text = "module m\nmesh [a: 1]\n\nfunc @f(";
  std::string body, results, types;
  int number = 0;
  for (const std::string dtype : {"bf16", "f16"}) {
    for (const std::string spec : {"ik,kj", "ki,kj", "ik,jk", "ki,jk", "bik,bkj", "kib,bkj"}) {
      const auto shapeOf = [](const std::string& letters) {
        std::string shape;
        for (const char c : letters) {
          const std::string size = c == 'i' ? "35" : c == 'j' ? "21" : c == 'k' ? "67" : "3";
          shape += (shape.empty() ? "" : ", ") + size;
        }
        return "[" + shape + "]";
      };
      const std::size_t comma = spec.find(',');
      const std::string left = spec.substr(0, comma), right = spec.substr(comma + 1);
      const std::string result = left.find('b') == std::string::npos ? "ij" : "bij";
      const std::string n = std::to_string(number++);
      text +=
          (n == "0" ? "%x" : ", %x") + n + ": " + dtype + shapeOf(left) + ", %y" + n + ": " + dtype + shapeOf(right);
      body += "  %c" + n + " = contract \"" + spec + "->" + result + "\" %x" + n + ", %y" + n + " : f32" +
              shapeOf(result) + "\n";
      results += (n == "0" ? "%c" : ", %c") + n;
      types += (n == "0" ? "f32" : ", f32") + shapeOf(result);
    }
  }
  const auto module = moduleOf(text + ") -> (" + types + ") {\n" + body + "  return " + results + "\n}\n");
  ASSERT_NE(module, nullptr);
  for (const std::string& cpu : cpus()) {
    SCOPED_TRACE(cpu);
    CodegenOptions options;
    options.target.cpu = cpu;
    expectLikeEvaluator(*module, "f", drawAll(module->functions[0]), 1e-5, {}, options);
  }
}

// Every f16 there is, there and back, and every bf16; without instructions for them, too.
TEST(Dtypes, EverySixteenBitValueSurvivesMemory) {
  const auto module = moduleOf(R"(module m
mesh [a: 1]

func @f(%x: f16[65536], %y: bf16[65536]) -> (f16[65536], bf16[65536], f32[65536], f32[65536]) {
  %a = neg %x : f16[65536]
  %b = neg %y : bf16[65536]
  %c = cast %x : f32[65536]
  %d = cast %y : f32[65536]
  return %a, %b, %c, %d
}
)");
  ASSERT_NE(module, nullptr);
  std::vector<Tensor> all = drawAll(module->functions[0]);
  for (std::size_t i = 0; i < 65536; ++i) {
    all[0].floats[i] = static_cast<double>(runtime::halfToFloat(static_cast<std::uint16_t>(i)));
    all[1].floats[i] = static_cast<double>(runtime::bfloatToFloat(static_cast<std::uint16_t>(i)));
  }
  for (const std::string& cpu : cpus()) {
    SCOPED_TRACE(cpu);
    CodegenOptions options;
    options.target.cpu = cpu;
    expectLikeEvaluator(*module, "f", all, 0, {}, options);
  }
}

}  // namespace
}  // namespace gshard::testing_codegen
