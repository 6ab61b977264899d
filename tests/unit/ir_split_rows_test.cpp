// split-rows by running its result: blocks one after the other, then finish, must give what all rows at once give; with
// even blocks, a short last block, and more rows than one block.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/autodiff.h"
#include "ir/evaluator.h"
#include "ir/passes.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace gshard {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

Module parsed(const std::string& text) {
  SourceManager sources;
  CollectingSink sink;
  const FileId file = sources.addFile("test.ir", text);
  std::optional<Module> module = parseModule(file, sources, sink);
  EXPECT_FALSE(sink.hasErrors()) << (sink.diagnostics().empty() ? "" : sink.diagnostics()[0].message);
  return module ? *module : Module{};
}

void runPass(const Pass& pass, Module& module) {
  CollectingSink sink;
  PassOptions options;
  PassContext context{options, sink};
  pass.run(module, context);
  ASSERT_FALSE(sink.hasErrors()) << sink.diagnostics()[0].message;
  const std::optional<std::string> fault = verify(module, Form::Global);
  ASSERT_EQ(fault, std::nullopt) << *fault << "\n" << printModule(module);
}

Tensor numbers(Type type, int salt) {
  Tensor tensor = Tensor::zeros(std::move(type));
  for (std::int64_t i = 0; i < tensor.type.elements(); ++i) {
    const double value = std::sin(static_cast<double>(i * 7 + salt)) * 2;
    tensor.setNumber(i, isInteger(tensor.type.dtype) ? std::fabs(std::floor(value * 2)) : value);
  }
  return tensor;
}

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

// Rows [first, first + count) of `whole`, in a tensor of `type`, whose other rows are no numbers.
Tensor rowsOf(const Tensor& whole, const Type& type, std::int64_t first, std::int64_t count) {
  Tensor block = isFloat(type.dtype) ? Tensor::filled(type, std::nan("")) : Tensor::zeros(type);
  const std::int64_t width = type.elements() / type.shape[0];
  for (std::int64_t i = 0; i < count * width; ++i) block.setNumber(i, whole.number(first * width + i));
  return block;
}

// Runs both stages of `name` on `rows` rows, as the runtime does. Results by name.
std::map<std::string, Tensor> runStages(const Module& module, const std::string& name,
                                        const std::map<std::string, Tensor>& inputs, std::int64_t rows) {
  const Function& accumulate = *module.find(name + ".accumulate");
  const Function* finish = module.find(name + ".finish");
  std::map<std::int64_t, Tensor> accumulators;
  std::map<std::string, Tensor> results;
  for (const Result& result : accumulate.results) {
    if (result.kind == ResultKind::Accumulator) {
      accumulators[result.index] = Tensor::filled(accumulate.type(result.value), identityOf(result.reduction));
    }
  }
  for (std::int64_t first = 0; first < rows; first += accumulate.rows) {
    const std::int64_t live = std::min(accumulate.rows, rows - first);
    std::vector<Tensor> arguments;
    for (const Argument& argument : accumulate.arguments) {
      const Value& value = accumulate.value(argument.value);
      if (argument.kind == ArgumentKind::Accumulator) {
        arguments.push_back(accumulators.at(argument.index));
      } else if (value.rowDim == 0) {
        arguments.push_back(rowsOf(inputs.at(argument.name), value.type, first, live));
      } else {
        arguments.push_back(inputs.at(argument.name));
      }
    }
    EvalOptions options;
    options.rows = live;
    options.totalRows = rows;
    const EvalResult block = evaluate(module, accumulate, arguments, options);
    for (std::size_t i = 0; i < accumulate.results.size(); ++i) {
      const Result& result = accumulate.results[i];
      if (result.kind == ResultKind::Accumulator) {
        accumulators[result.index] = block.results[i];
        continue;
      }
      const Value& value = accumulate.value(result.value);
      EXPECT_EQ(value.rowDim, 0);
      Tensor& whole = results[result.name];
      const std::int64_t width = value.type.elements() / value.type.shape[0];
      if (whole.type.shape.empty()) {
        Type type = value.type;
        type.shape[0] = value.type.shape[0] / accumulate.rows * rows;
        whole = Tensor::zeros(type);
      }
      const std::int64_t scale = value.type.shape[0] / accumulate.rows;
      for (std::int64_t k = 0; k < live * scale * width; ++k)
        whole.setNumber(first * scale * width + k, block.results[i].number(k));
    }
  }
  if (finish == nullptr) return results;
  std::vector<Tensor> arguments;
  for (const Argument& argument : finish->arguments) {
    arguments.push_back(argument.kind == ArgumentKind::Accumulator ? accumulators.at(argument.index)
                                                                   : inputs.at(argument.name));
  }
  const EvalResult end = evaluate(module, *finish, arguments);
  for (std::size_t i = 0; i < finish->results.size(); ++i) results[finish->results[i].name] = end.results[i];
  return results;
}

void expectSame(const std::map<std::string, Tensor>& actual, const Function& whole, const std::vector<Tensor>& expected,
                double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Tensor& tensor = actual.at(whole.results[i].name);
    ASSERT_EQ(tensor.type, expected[i].type) << whole.results[i].name;
    for (std::int64_t k = 0; k < expected[i].type.elements(); ++k) {
      EXPECT_NEAR(tensor.number(k), expected[i].number(k), tolerance) << whole.results[i].name << "[" << k << "]";
    }
  }
}

// `text` with B for the rows: once with all rows as a whole, once with blocks of `block` rows.
void expectBlocksAgree(const std::string& text, std::int64_t rows, std::int64_t block) {
  SCOPED_TRACE(std::to_string(rows) + " rows in blocks of " + std::to_string(block));
  Module whole = parsed(replaced(replaced(text, "BLOCKS", ""), "B", std::to_string(rows)));
  Module cut = parsed(
      replaced(replaced(text, "BLOCKS", "rows " + std::to_string(block) + " blocks 0"), "B", std::to_string(block)));
  ASSERT_FALSE(whole.functions.empty());
  for (Argument& argument : whole.functions[0].arguments) whole.functions[0].value(argument.value).rowDim = -1;
  std::map<std::string, Tensor> inputs;
  std::vector<Tensor> arguments;
  int salt = 0;
  for (const Argument& argument : whole.functions[0].arguments) {
    arguments.push_back(numbers(whole.functions[0].type(argument.value), ++salt));
    inputs[argument.name] = arguments.back();
  }
  const std::vector<Tensor> expected = evaluate(whole, whole.functions[0], arguments).results;
  runPass(pass::splitRows, cut);
  expectSame(runStages(cut, whole.functions[0].name, inputs, rows), whole.functions[0], expected, 1e-12);
}

constexpr const char* kScores = R"(
func @f(%x: f64[B, 3] row 0, %y: i32[B] row 0, %w: f64[3, 4]) -> (f64, f64, f64[B, 4], i32[B], f64[4]) BLOCKS {
  %h = contract "bi,ij->bj" %x, %w : f64[B, 4]
  %max = reduce max %h {dims = [1]} : f64[B]
  %m = broadcast %max {dims = [0]} : f64[B, 4]
  %s = sub %h, %m : f64[B, 4]
  %e = exp %s : f64[B, 4]
  %z = reduce sum %e {dims = [1]} : f64[B]
  %log = log %z : f64[B]
  %picked = take %s, %y {axis = 1, batch = 1} : f64[B]
  %nll = sub %log, %picked : f64[B]
  %sum = reduce sum %nll {dims = [0]} : f64
  %n = dim_size %x {dims = [0]} : f64
  %loss = div %sum, %n : f64
  %best = argmax %h {axis = 1} : i32[B]
  %hit = eq %best, %y : bool[B]
  %hits = cast %hit : f64[B]
  %right = reduce sum %hits {dims = [0]} : f64
  %accuracy = div %right, %n : f64
  %top = reduce max %h {dims = [0]} : f64[4]
  return %loss, %accuracy, %h, %best, %top
}
)";

TEST(SplitRows, EvalIsExactOnAnyNumberOfRows) {
  for (const std::int64_t rows : {3, 4, 7, 8, 9}) expectBlocksAgree(kScores, rows, 4);
  expectBlocksAgree(kScores, 7, 2);
  expectBlocksAgree(kScores, 5, 1);
}

constexpr const char* kMerged = R"(
func @f(%x: f64[B, 2, 3] row 0) -> (f64[B, 6], f64[2], f64) BLOCKS {
  %flat = reshape %x {} : f64[B, 6]
  %t = transpose %x {perm = [1, 2, 0]} : f64[2, 3, B]
  %u = mul %t, %t : f64[2, 3, B]
  %prod = reduce sum %u {dims = [1, 2]} : f64[2]
  %ones = constant {value = 1.0} : f64[B, 6]
  %shifted = add %flat, %ones : f64[B, 6]
  %column = iota {dim = 1} : i32[B, 6]
  %c = cast %column : f64[B, 6]
  %scaled = mul %shifted, %c : f64[B, 6]
  %least = reduce min %scaled {dims = [0, 1]} : f64
  return %scaled, %prod, %least
}
)";

TEST(SplitRows, ShapesConstantsAndOtherReductions) {
  for (const std::int64_t rows : {4, 5, 11}) expectBlocksAgree(replaced(kMerged, " {} ", " "), rows, 4);
  expectBlocksAgree(replaced(kMerged, " {} ", " "), 3, 1);
}

constexpr const char* kPlaces = R"(
func @f(%x: f64[B, 3] row 0, %step: i32) -> (f64[B, 3], f64) BLOCKS {
  %r = random_uniform %step {high = 1.0, low = 0.0, site = 7} : f64[B, 3]
  %n = random_normal %step {site = 8} : f32[B]
  %wide = cast %n : f64[B]
  %column = reshape %wide : f64[B, 1]
  %y = mul %x, %r : f64[B, 3]
  %z = mul %y, %column : f64[B, 3]
  %i = iota {dim = 0} : i32[B, 3]
  %c = cast %i : f64[B, 3]
  %w = mul %z, %c : f64[B, 3]
  %s = reduce sum %w {dims = [0, 1]} : f64
  return %w, %s
}
)";

TEST(SplitRows, RandomNumbersAndPlacesAreThoseOfTheWhole) {
  for (const std::int64_t rows : {4, 6, 11}) expectBlocksAgree(kPlaces, rows, 4);
}

// A two-layer model with its gradients and an update, built as sema builds it.
Module trainModule(std::int64_t batch, std::int64_t blocks) {
  Module module;
  module.parameters.push_back({.name = "w", .type = {DType::F64, {3, 4}}, .trained = true});
  module.parameters.push_back({.name = "b", .type = {DType::F64, {4}}, .trained = true});
  module.states.push_back({.name = "w.m", .type = {DType::F64, {3, 4}}, .parameter = 0});
  module.functions.push_back(Function{.name = "loss", .kind = FunctionKind::Train, .rows = batch, .blocks = blocks});
  Function& f = module.functions[0];
  const auto add = [&](ArgumentKind kind, const std::string& name, std::int64_t index, Type type, std::int64_t rowDim) {
    const ValueId id = f.addValue({.type = std::move(type), .rowDim = rowDim, .name = name});
    f.arguments.push_back({.kind = kind, .name = name, .index = index, .value = id});
    return id;
  };
  const ValueId x = add(ArgumentKind::Input, "x", -1, {DType::F64, {batch, 3}}, 0);
  const ValueId y = add(ArgumentKind::Input, "y", -1, {DType::I32, {batch}}, 0);
  const ValueId w = add(ArgumentKind::Parameter, "w", 0, {DType::F64, {3, 4}}, -1);
  const ValueId bias = add(ArgumentKind::Parameter, "b", 1, {DType::F64, {4}}, -1);
  const ValueId m = add(ArgumentKind::State, "w.m", 0, {DType::F64, {3, 4}}, -1);
  CollectingSink sink;
  Builder b(module, f, sink);
  const ValueId h = b.map("tanh", {b.map("add", {b.contract("bi,ij->bj", {x, w}, {}), bias}, {})}, {});
  const ValueId picked = b.create(OpKind::Take, {h, y}, {{"axis", std::int64_t{1}}, {"batch", std::int64_t{1}}}, {});
  const ValueId z = b.reduce(Reduction::Sum, b.map("exp", {h}, {}), {1}, {});
  const ValueId nll = b.map("sub", {b.map("log", {z}, {}), picked}, {});
  const ValueId n =
      b.create(OpKind::DimSize, {nll}, {{"dims", std::vector<std::int64_t>{0}}, {"dtype", DType::F64}}, {});
  const ValueId loss = b.map("div", {b.reduce(Reduction::Sum, nll, {0}, {}), n}, {});
  const std::vector<ValueId> parameters{w, bias};
  const std::vector<ValueId> g = gradients(b, loss, parameters);
  b.setPhase(Phase::Update);
  const ValueId m1 =
      b.map("add", {b.map("mul", {m, b.scalar(DType::F64, 0.9, {})}, {}), b.map("mul", {g[0], g[0]}, {})}, {});
  const ValueId w1 = b.map("sub", {w, b.map("div", {g[0], b.map("sqrt", {m1}, {})}, {})}, {});
  const ValueId b1 = b.map("sub", {bias, g[1]}, {});
  f.results = {{ResultKind::Output, "result", -1, loss, Reduction::Sum, {}},
               {ResultKind::Parameter, "w", 0, w1, Reduction::Sum, {}},
               {ResultKind::Parameter, "b", 1, b1, Reduction::Sum, {}},
               {ResultKind::State, "w.m", 0, m1, Reduction::Sum, {}}};
  EXPECT_FALSE(sink.hasErrors());
  return module;
}

TEST(SplitRows, MicrobatchesTrainAsTheWholeBatch) {
  for (const auto& [batch, blocks] : {std::pair<int, int>{8, 2}, {8, 4}, {10, 4}, {7, 3}, {6, 6}}) {
    SCOPED_TRACE(std::to_string(batch) + " in " + std::to_string(blocks));
    Module whole = trainModule(batch, 1), cut = trainModule(batch, blocks);
    std::map<std::string, Tensor> inputs;
    std::vector<Tensor> arguments;
    int salt = 0;
    for (const Argument& argument : whole.functions[0].arguments) {
      arguments.push_back(numbers(whole.functions[0].type(argument.value), ++salt));
      if (argument.kind == ArgumentKind::State) {
        for (double& each : arguments.back().floats) each = std::fabs(each);
      }
      inputs[argument.name] = arguments.back();
    }
    runPass(pass::splitRows, whole);
    const std::vector<Tensor> expected = evaluate(whole, whole.functions[0], arguments).results;
    for (const Pass& pass : globalPipeline()) ASSERT_NO_FATAL_FAILURE(runPass(pass, cut));
    const Function& accumulate = *cut.find("loss.accumulate");
    EXPECT_EQ(accumulate.totalRows, batch);
    EXPECT_EQ(std::count_if(accumulate.results.begin(), accumulate.results.end(),
                            [](const Result& result) { return result.kind == ResultKind::Accumulator; }),
              3)
        << printModule(cut);
    expectSame(runStages(cut, "loss", inputs, batch), whole.functions[0], expected, 1e-9);
  }
}

}  // namespace
}  // namespace gshard
