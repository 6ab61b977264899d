// Functions that take their rows in blocks: accumulators may stay pending over device axes from block to block, and are
// completed once, in the second half (T27 of cases.md).
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "ir/passes.h"
#include "partition_harness.h"

namespace gshard {
namespace {

using namespace testing_partition;
using Strings = std::vector<std::string>;
using Tensors = std::map<std::string, Tensor>;

double identityOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::Sum:
    case Reduction::Any:
      return 0;
    case Reduction::Prod:
    case Reduction::All:
      return 1;
    case Reduction::Max:
      return -std::numeric_limits<double>::infinity();
    case Reduction::Min:
      return std::numeric_limits<double>::infinity();
  }
  return 0;
}

Tensor rowsOf(const Tensor& whole, std::int64_t first, std::int64_t count) {
  Type type = whole.type;
  const std::int64_t row = type.elements() / type.shape[0];
  type.shape[0] = count;
  Tensor tensor = Tensor::zeros(type);
  for (std::int64_t i = 0; i < tensor.type.elements(); ++i) tensor.setNumber(i, whole.number(first * row + i));
  return tensor;
}

// Runs NAME.accumulate over the blocks, then NAME.finish. The results of the latter.
std::vector<Tensor> runInBlocks(const Module& module, const std::string& name, const Tensors& given) {
  const Function& accumulate = *module.find(name + ".accumulate");
  const Function& finish = *module.find(name + ".finish");
  std::map<std::int64_t, Tensor> kept;
  for (const Result& result : accumulate.results) {
    kept.emplace(result.index, Tensor::filled(accumulate.type(result.value), identityOf(result.reduction)));
  }
  const auto argumentsOf = [&](const Function& function, std::int64_t block) {
    std::vector<Tensor> arguments;
    for (const Argument& argument : function.arguments) {
      if (argument.kind == ArgumentKind::Accumulator) {
        arguments.push_back(kept.at(argument.index));
      } else if (function.value(argument.value).rowDim == 0) {
        arguments.push_back(rowsOf(given.at(argument.name), block * function.rows, function.rows));
      } else {
        arguments.push_back(given.at(argument.name));
      }
    }
    return arguments;
  };
  for (std::int64_t block = 0; block < accumulate.blocks; ++block) {
    const EvalResult result = evaluate(module, accumulate, argumentsOf(accumulate, block));
    for (std::size_t r = 0; r < accumulate.results.size(); ++r)
      kept.at(accumulate.results[r].index) = result.results[r];
  }
  return evaluate(module, finish, argumentsOf(finish, 0)).results;
}

struct Blocks {
  Module global, spmd;
};

std::unique_ptr<Blocks> splitText(const std::string& text) {
  auto result = std::make_unique<Blocks>();
  SourceManager sources;
  CollectingSink sink;
  std::optional<Module> module = parseModule(sources.addFile("case.ir", text), sources, sink);
  for (const Diagnostic& diagnostic : sink.diagnostics()) ADD_FAILURE() << diagnostic.message << "\n" << text;
  if (!module) return nullptr;
  PassOptions options;
  PassContext context{options, sink};
  const Pass split[] = {pass::splitRows, pass::eliminateDeadCode};
  for (const auto& passes : {std::span<const Pass>(split), partitionPipeline()}) {
    const PassRun run = runPasses(*module, passes, context, {});
    if (run.failure) {
      ADD_FAILURE() << run.failure->pass << ": " << run.failure->fault << "\n"
                    << run.failure->textBefore << printModule(*module);
      return nullptr;
    }
    if (result->global.functions.empty()) result->global = *module;
  }
  for (const Diagnostic& diagnostic : sink.diagnostics())
    EXPECT_NE(diagnostic.severity, Severity::Error) << diagnostic.message;
  result->spmd = *std::move(module);
  return result;
}

TEST(Blocks, MeanGradientIsReducedOnceAfterTheLoop) {
  const std::string text = R"(mesh [x: N] declared
param w: f32 trained
func @loss(%w: f32 param w, %x: f32[8] row 0 @{[x]}) -> (f32, f32) train rows 8 blocks 4 {
  %p = mul %x, %w : f32[8]
  %s = reduce sum %p {dims = [0]} : f32
  %n = dim_size %p {dims = [0]} : f32
  %loss = div %s, %n : f32
  %one = constant {value = 1} : f32 backward
  %scale = div %one, %n : f32 backward
  %d = broadcast %scale {dims = []} : f32[8] backward
  %t = mul %d, %x : f32[8] backward
  %dw = reduce sum %t {dims = [0]} : f32 backward
  %w1 = sub %w, %dw : f32 update
  return %loss, %w1 param w
}
)";
  for (const char* n : {"1", "2", "4"}) {
    const auto blocks = splitText(replaceAll(text, "N", n));
    ASSERT_TRUE(blocks);
    const Tensors given = {{"w", tensorOf({DType::F32, {}}, {1})}, {"x", iotaOf({DType::F32, {8}}, 1)}};
    const std::vector<Tensor> results = runInBlocks(blocks->spmd, "loss", given);
    EXPECT_EQ(results[0].number(0), 4.5);
    EXPECT_EQ(results[1].number(0), 1 - 4.5);
    EXPECT_EQ(collectivesOf(blocks->spmd, "loss.accumulate"), Strings{});
    if (*n != '1') {
      EXPECT_EQ(collectivesOf(blocks->spmd, "loss.finish"), (Strings{"all_reduce f32+f32"}))
          << printModule(blocks->spmd);
    }
  }
}

TEST(Blocks, TableGradient) {
  const std::string text = R"(mesh [x: N] declared
param t: f32[4] trained @{[SPLIT]}
func @loss(%t: f32[4] param t, %ids: i32[8] row 0 @{[IDS]}, %u: f32[8] row 0) -> (f32, f32[4]) train rows 8 blocks 4 {
  %r = take %t, %ids {axis = 0, batch = 0} : f32[8]
  %p = mul %r, %u : f32[8]
  %loss = reduce sum %p {dims = [0]} : f32
  %z = constant {value = 0} : f32[4] backward
  %dt = scatter_add %z, %ids, %u {axis = 0, batch = 0} : f32[4] backward
  %t1 = sub %t, %dt : f32[4] update
  return %loss, %t1 param t
}
)";
  for (const char* n : {"2", "4"}) {
    for (const auto& [split, ids] : {std::pair{"_", "x"}, std::pair{"x", "_"}, std::pair{"_", "_"}}) {
      const auto blocks = splitText(replaceAll(replaceAll(replaceAll(text, "IDS", ids), "N", n), "SPLIT", split));
      ASSERT_TRUE(blocks);
      const Tensors given = {{"t", Tensor::filled({DType::F32, {4}}, 1)},
                             {"ids", tensorOf({DType::I32, {8}}, {0, 1, 2, 3, 0, 1, 0, 0})},
                             {"u", iotaOf({DType::F32, {8}}, 1)}};
      const std::vector<Tensor> results = runInBlocks(blocks->spmd, "loss", given);
      EXPECT_EQ(results[0].number(0), 36);
      EXPECT_EQ(numbersOf(results[1]), (std::vector<double>{1 - 21, 1 - 8, 1 - 3, 1 - 4})) << printModule(blocks->spmd);
      for (const std::string& each : collectivesOf(blocks->spmd, "loss.accumulate")) {
        EXPECT_EQ(each.find("f32[4]"), std::string::npos) << each;  // the gradient is not reduced per block
      }
    }
  }
}

TEST(Blocks, EveryReduction) {
  for (const char* mesh : {"x: 2", "x: 3", "x: 2, y: 2"}) {
    const auto blocks = splitText("mesh [" + std::string(mesh) + R"(] declared
param w: f32[3, 2] trained
func @loss(%x: f32[8, 3] row 0 @{[x, _]}, %w: f32[3, 2] param w) -> (f32, f32, f32[2]) train rows 8 blocks 2 {
  %y = contract "bi,ij->bj" %x, %w : f32[8, 2]
  %max = reduce max %y {dims = [0, 1]} : f32
  %min = reduce min %y {dims = [0, 1]} : f32
  %sum = reduce sum %y {dims = [0]} : f32[2]
  %a = mul %max, %min : f32
  %b = exp %min : f32
  %c = mul %sum, %a : f32[2]
  return %a, %b, %c
}
)");
    ASSERT_TRUE(blocks);
    const Tensors given = {{"x", iotaOf({DType::F32, {8, 3}}, -7)}, {"w", iotaOf({DType::F32, {3, 2}}, -2)}};
    const std::vector<Tensor> expected = runInBlocks(blocks->global, "loss", given);
    const std::vector<Tensor> actual = runInBlocks(blocks->spmd, "loss", given);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(sameBits(actual[i], expected[i])) << mesh << " result " << i;
    EXPECT_EQ(collectivesOf(blocks->spmd, "loss.accumulate"), Strings{});
  }
}

// The last block of eval or predict is short: its live rows are set at run time, and what lies beyond must not count.
TEST(Blocks, ShortLastBlock) {
  const std::string text = R"(mesh [MESH] declared
param w: f32[3, 5] trained @{[_, SPLIT]}
func @f(%x: f32[8, 3] row 0 @{[x, _]}, %w: f32[3, 5] param w) -> (f32[5], f32, f32[8], i32[8], f32) rows 8 blocks 0 {
  %y = contract "bi,ij->bj" %x, %w : f32[8, 5]
  %sum = reduce sum %y {dims = [0]} : f32[5]
  %max = reduce max %y {dims = [0, 1]} : f32
  %rows = reduce sum %y {dims = [1]} : f32[8]
  %best = argmax %y {axis = 1} : i32[8]
  %all = reduce sum %y {dims = [0, 1]} : f32
  %n = dim_size %y {dims = [0]} : f32
  %mean = div %all, %n : f32
  return %sum, %max, %rows, %best, %mean
}
)";
  for (const auto& [mesh, split] :
       {std::pair{"x: 2", "_"}, std::pair{"x: 3", "_"}, std::pair{"x: 4", "_"}, std::pair{"x: 2, y: 2", "y"}}) {
    const auto blocks = splitText(replaceAll(replaceAll(text, "SPLIT", split), "MESH", mesh));
    ASSERT_TRUE(blocks);
    Tensor x = iotaOf({DType::F32, {8, 3}}, -7);
    for (std::int64_t i = 3 * 3; i < x.type.elements(); ++i) x.setNumber(i, std::nan(""));
    const Tensor w = iotaOf({DType::F32, {3, 5}}, -2);
    EvalOptions options;
    options.rows = 3;
    options.totalRows = 11;
    const auto run = [&](const Module& module) {
      const Function& function = *module.find("f.accumulate");
      std::vector<Tensor> arguments;
      for (const Argument& argument : function.arguments) {
        const Type& type = function.type(argument.value);
        if (argument.kind == ArgumentKind::Accumulator) {
          const bool isMax = argument.name.find("max") != std::string::npos;
          arguments.push_back(Tensor::filled(type, isMax ? -std::numeric_limits<double>::infinity() : 0));
        } else {
          arguments.push_back(argument.name == "x" ? x : w);
        }
      }
      return evaluate(module, function, arguments, options).results;
    };
    const std::vector<Tensor> expected = run(blocks->global), actual = run(blocks->spmd);
    const Function& function = *blocks->global.find("f.accumulate");
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t r = 0; r < expected.size(); ++r) {
      const bool perRow = function.value(function.results[r].value).rowDim == 0;
      const std::int64_t count = perRow ? 3 : expected[r].type.elements();
      for (std::int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(actual[r].number(i), expected[r].number(i))
            << mesh << " " << function.results[r].name << " [" << i << "]";
        EXPECT_FALSE(std::isnan(actual[r].number(i)));
      }
    }
  }
}

}  // namespace
}  // namespace gshard
