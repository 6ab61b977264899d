// Training, rows, layouts, stdlib and the examples: elaborated and run by the evaluator.
#include <cmath>

#include "sema_harness.h"

namespace gshard {
namespace {

using namespace testing_sema;
using Numbers = std::vector<double>;

std::unique_ptr<Program> elaborateExample(const std::string& name, const ElaborateOptions& options = defaults()) {
  auto program = std::make_unique<Program>();
  std::string error;
  const std::optional<FileId> file =
      program->sources.addFileFromDisk(std::string(GSHARD_SOURCE_DIR "/examples/") + name, error);
  if (!file) {
    ADD_FAILURE() << error;
    return program;
  }
  const std::unique_ptr<ast::File> parsed = parseFile(*file, program->sources, program->sink);
  program->module = elaborate(*parsed, program->sources, options, program->sink);
  if (program->module) {
    EXPECT_EQ(verify(*program->module, Form::Global), std::nullopt);
  } else {
    ADD_FAILURE() << program->rendered();
  }
  return program;
}

TEST(SemaTrain, SgdWithMomentumByHand) {
  const std::string text = R"(
import optim
const batch = 2
model M() { param w: f32 = 2.0 }
let m = M()
entry fn loss(x: f32[batch]) -> f32 { return mean(m.w * x) }
train loss with optim.sgd(lr: 0.5, momentum: 0.5)
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  ASSERT_EQ(module.states.size(), 1u);
  EXPECT_EQ(module.states[0].name, "m.w.sgd.m");
  EXPECT_EQ(module.states[0].parameter, 0);
  Tensors values = initialValues(module);
  values["x"] = floats({2}, {1, 3});
  Tensors result = run(module, "loss", values);
  EXPECT_EQ(numbers(result.at("loss")), (Numbers{4}));
  EXPECT_EQ(numbers(result.at("m.w")), (Numbers{1}));  // 2 - 0.5 * 2
  EXPECT_EQ(numbers(result.at("m.w.sgd.m")), (Numbers{2}));
  values["m.w"] = result.at("m.w");
  values["m.w.sgd.m"] = result.at("m.w.sgd.m");
  result = run(module, "loss", values);
  EXPECT_EQ(numbers(result.at("m.w")), (Numbers{-0.5}));  // 1 - 0.5 * (0.5 * 2 + 2)
  EXPECT_EQ(numbers(run(module, "loss.eval", values).at("loss")), (Numbers{2}));
}

// Adam by its formulas, in double.
struct Adam {
  double m = 0, v = 0;
  double step(double w, double g, int t, double lr = 1e-3) {
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    return w - lr * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
};

TEST(SemaTrain, AdamAgreesWithItsFormulas) {
  const std::string text = R"(
import optim
model M() { param w: f32[2] = constant(2.0) }
let m = M()
entry fn loss(x: f32[2]) -> f32 { return sum(m.w * m.w * x) }
train loss with optim.adam(lr: 1e-3)
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  Tensors values = initialValues(*program->module);
  values["x"] = floats({2}, {1, -3});
  Adam first, second;
  double a = 2, b = 2;
  for (int step = 0; step < 5; ++step) {
    a = first.step(a, 2 * a, step + 1);
    b = second.step(b, -6 * b, step + 1);
    for (auto& [name, value] : run(*program->module, "loss", values, {.step = step, .steps = 5, .eval = {}})) {
      if (name != "loss") values[name] = value;
    }
    expectNear(values.at("m.w"), {a, b}, 5e-7);
  }
}

TEST(SemaTrain, ClipNormScalesAllGradientsByOneNumber) {
  const std::string text = R"(
import optim
const limit: wide = 1.0
model M() { param w: f32[3, 4] = zeros() param b: f64[4] = zeros() param frozen: f32 = 1.0 }
let m = M()
entry fn loss(x: f32[3, 4], y: f64[4]) -> f64 {
    return cast(sum(m.w * x) * m.frozen, f64) + sum(m.b * y)
}
train loss with optim.sgd(lr: 1.0) for m.w, m.b { clip_norm: LIMIT }
)";
  const auto with = [&](const std::string& limit) {
    std::string program = text;
    program.replace(program.find("LIMIT"), 5, limit);
    return elaborateText(program);
  };
  Numbers iota(12);
  for (std::size_t i = 0; i < 12; ++i) iota[i] = static_cast<double>(i);
  const auto step = [&](const std::string& limit) {
    const auto program = with(limit);
    EXPECT_TRUE(program->module) << program->rendered();
    Tensors values = initialValues(*program->module);
    values["x"] = floats({3, 4}, iota);
    values["y"] = tensor(DType::F64, {4}, {1, 1, 1, 1});
    return run(*program->module, "loss", values);
  };
  // T23 of the cases: the norm is sqrt(510); to 1, everything is multiplied by 0.04428074.
  for (const char* limit : {"1", "1.0", "limit"}) {
    const Tensors clipped = step(limit);
    EXPECT_NEAR(numbers(clipped.at("m.w"))[11], -11 * 0.0442807443, 1e-6) << limit;
    EXPECT_NEAR(numbers(clipped.at("m.b"))[3], -0.0442807443, 1e-7) << limit;
  }
  // Below the limit nothing changes, to the bit.
  EXPECT_EQ(numbers(step("22.6").at("m.w"))[11], -11);
  for (const char* limit : {"0", "-1.0", "nan", "true", "f32", "[1]"})
    EXPECT_EQ(with(limit)->codes(), "E0208") << limit;
}

TEST(SemaTrain, PrecisionIsReal) {
  const std::string text = R"(
import optim
model M() { param w: real[2] = constant(0.3) param f: f32[2] = zeros() }
let m = M()
entry fn loss(x: real[2]) -> real { return sum(m.w * x) }
entry fn wider(x: wide[2]) -> wide { return sum(x) }
train loss with optim.sgd(lr: 0.001) for m.w { precision: bf16 }
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  EXPECT_EQ(module.find("loss")->type(module.find("loss")->arguments[0].value).dtype, DType::BF16);
  EXPECT_EQ(module.find("wider")->type(module.find("wider")->arguments[0].value).dtype, DType::F32);
  EXPECT_EQ(module.parameters[0].type.dtype, DType::F32);  // trained: kept wide, read rounded
  EXPECT_EQ(module.parameters[1].type.dtype, DType::F32);
  Tensors values = initialValues(module);
  values["x"] = tensor(DType::BF16, {2}, {1, 2});
  double first = roundTo(DType::BF16, 0.3), second = first;
  for (int step = 0; step < 3; ++step) {
    const Tensors result = run(module, "loss", values);
    EXPECT_EQ(numbers(result.at("loss"))[0],
              roundTo(DType::BF16, roundTo(DType::BF16, first) + 2 * roundTo(DType::BF16, second)));
    first -= 0.001;  // steps that bf16 near 0.3 cannot hold
    second -= 0.002;
    EXPECT_NEAR(numbers(result.at("m.w"))[0], first, 1e-7);
    EXPECT_NEAR(numbers(result.at("m.w"))[1], second, 1e-7);
    values["m.w"] = result.at("m.w");
  }
  std::string other = text;
  other.replace(other.find("bf16"), 4, "i32 ");
  EXPECT_EQ(elaborateText(other)->codes(), "E0208");
  ElaborateOptions options = defaults();
  options.defines = {{"real", "f64"}};  // the command line is asked last
  const auto defined = elaborateText(text, options);
  ASSERT_TRUE(defined->module) << defined->rendered();
  EXPECT_EQ(defined->module->parameters[0].type.dtype, DType::F64);
}

TEST(SemaTrain, PatternsChooseOptimizersAndFreeze) {
  const std::string text = R"(
import optim
model Part() { param w: f32 = 1.0 param frozen: f32 = 1.0 }
let enc = Part()
let head = Part()
entry fn loss() -> f32 { return enc.w * head.w * enc.frozen * head.frozen }
train loss with optim.sgd(lr: 0.1) for enc.w with optim.sgd(lr: 0.2, momentum: 0.9) for head.w
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Tensors result = run(*program->module, "loss", initialValues(*program->module));
  EXPECT_NEAR(numbers(result.at("enc.w"))[0], 0.9, 1e-6);
  EXPECT_NEAR(numbers(result.at("head.w"))[0], 0.8, 1e-6);
  EXPECT_FALSE(result.contains("enc.frozen"));
  EXPECT_TRUE(program->module->parameters[0].trained);
  EXPECT_FALSE(program->module->parameters[1].trained);
  std::string wrong = text;
  wrong.replace(wrong.find("for head.w"), 10, "for **    ");
  EXPECT_EQ(elaborateText(wrong)->codes(), "E0264");
}

TEST(SemaTrain, SettingsAndSchedulesAreRunTimeScalars) {
  const std::string text = R"(
import optim
import schedule
const peak: wide = 0.5
model M() { param w: f32 = 1.0 }
let m = M()
entry fn loss() -> f32 { return m.w }
train loss with optim.sgd(lr: schedule.cosine(step, steps, peak: peak, warmup: 2))
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  ASSERT_EQ(module.settings.size(), 1u);
  EXPECT_EQ(module.settings[0].value, 0.5);
  const auto rate = [&](int step, double peak) {
    Tensors values = initialValues(module);
    values["peak"] = floats({}, {peak});
    return 1.0 - numbers(run(module, "loss", values, {.step = step, .steps = 10, .eval = {}}).at("m.w"))[0];
  };
  EXPECT_NEAR(rate(0, 0.5), 0.25, 1e-6);
  EXPECT_NEAR(rate(1, 0.5), 0.5, 1e-6);
  EXPECT_NEAR(rate(2, 0.5), 0.5, 1e-6);
  EXPECT_NEAR(rate(6, 0.5), 0.25, 1e-6);
  EXPECT_NEAR(rate(10, 0.5), 0.0, 1e-6);
  EXPECT_NEAR(rate(6, 1.0), 0.5, 1e-6);
}

TEST(SemaTrain, TrainingIsTrueOnlyInTrain) {
  const std::string text = R"(
import optim
const batch = 64
model M() { param w: f32 = 1.0 }
let m = M()
entry fn loss(x: f32[batch]) -> f32 {
    report extra = where(x[0] > 0.0, 1.0, 2.0)
    let y = dropout(x, rate: 0.5)
    if training { return m.w * sum(y) }
    return m.w * sum(y) * 10.0
}
train loss with optim.sgd(lr: 0.0)
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  Tensors values = initialValues(*program->module);
  values["x"] = floats({64}, Numbers(64, 1.0));
  EXPECT_EQ(numbers(run(*program->module, "loss.eval", values).at("loss")), (Numbers{640}));
  const Tensors trained = run(*program->module, "loss", values);
  const double sum = numbers(trained.at("loss"))[0];
  EXPECT_NE(sum, 64);
  EXPECT_EQ(std::fmod(sum, 2.0), 0);
  EXPECT_EQ(numbers(trained.at("extra")), (Numbers{1}));
}

TEST(SemaTrain, RowsOfTrainEvalAndPredict) {
  const std::string text = R"(
import optim
const batch = 6
model M() { param w: f32 = 1.0 }
let m = M()
entry fn loss(x: f32[batch, 2], y: i32[batch], table: f32[5]) -> f32 { return m.w * mean(x) + sum(table) + 0.0 * sum(cast(y, f32)) / batch }
entry fn predict[B](x: f32[B, 2]) -> f32[B] { return m.w * sum(x, axis: 1) }
entry fn share[B](x: f32[B]) -> f32 { return sum(x) / B }
entry fn whole(x: f32[4]) -> f32 { return sum(x) }
train loss with optim.sgd(lr: 0.1) { microbatches: 3 }
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  const Function& train = *module.find("loss");
  EXPECT_EQ(train.kind, FunctionKind::Train);
  EXPECT_EQ(train.rows, 6);
  EXPECT_EQ(train.blocks, 3);
  EXPECT_EQ(train.value(train.arguments[0].value).rowDim, 0);
  EXPECT_EQ(train.value(train.arguments[1].value).rowDim, 0);
  EXPECT_EQ(train.value(train.arguments[2].value).rowDim, -1);
  const Function& eval = *module.find("loss.eval");
  EXPECT_EQ(eval.kind, FunctionKind::Eval);
  EXPECT_EQ(eval.blocks, 0);
  const Function& predict = *module.find("predict");
  EXPECT_EQ(predict.rows, 6);
  EXPECT_EQ(predict.blocks, 0);
  EXPECT_EQ(module.find("whole")->rows, 0);
  // Rows set at run time are counted by dim_size, also where the program divides by B or by `batch`.
  for (const char* name : {"loss.eval", "share"}) {
    const std::string text = printFunction(module, *module.find(name));
    EXPECT_NE(text.find("dim_size"), std::string::npos) << text;
  }
  EXPECT_EQ(printFunction(module, train).find("dim_size"), std::string::npos);
  const std::string twice = "entry fn f[B](x: f32[B]) -> f32 { return sum(x) / (2 * B) }\n";
  EXPECT_NE(elaborateText(twice)->rendered().find("number of rows"), std::string::npos);
  ElaborateOptions options = defaults();
  options.rows = 17;
  EXPECT_EQ(elaborateText(text, options)->module->find("predict")->rows, 17);
}

TEST(SemaTrain, CrossEntropyOfTheCases) {  // cases.md T22
  const std::string text = R"(
import nn
entry fn loss(z: f32[1, 4], y: i32[1]) -> f32 { return mean(nn.cross_entropy(z, y)) }
entry fn slope(z: f32[1, 4], y: i32[1]) -> f32[1, 4] { return grad(loss(z, y), z) }
entry fn three(z: f32[3, 4], y: i32[3]) -> f32 { return sum(nn.cross_entropy(z, y, ignore: -1)) / sum(cast(y != -1, f32)) }
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  expectNear(run(module, "loss", {{"z", floats({1, 4}, {0, 1, 2, 3})}, {"y", ints({1}, {3})}}).at("result"),
             {0.4401897});
  expectNear(run(module, "loss", {{"z", floats({1, 4}, {100, 101, 102, 103})}, {"y", ints({1}, {3})}}).at("result"),
             {0.4401897});
  expectNear(run(module, "slope", {{"z", floats({1, 4}, {0, 1, 2, 3})}, {"y", ints({1}, {3})}}).at("result"),
             {0.032059, 0.087144, 0.236883, -0.356086});
  EXPECT_TRUE(std::isnan(
      numbers(run(module, "loss", {{"z", floats({1, 4}, {0, 1, 2, 3})}, {"y", ints({1}, {4})}}).at("result"))[0]));
  expectNear(
      run(module, "three", {{"z", floats({3, 4}, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3})}, {"y", ints({3}, {3, -1, 0})}})
          .at("result"),
      {1.9401897});
}

TEST(SemaTrain, Prelude) {
  const auto value = [](const std::string& expression) {
    return numbers(evaluateExpression(expression, "f32", "fn v(x: float) { return cast(x, f32) }"))[0];
  };
  EXPECT_NEAR(value("sigmoid(v(0.5))"), 0.62245933, 1e-6);
  EXPECT_NEAR(value("silu(v(-1.0))"), -0.26894142, 1e-6);
  EXPECT_NEAR(value("gelu(v(1.0))"), 0.84119199, 1e-6);
  EXPECT_NEAR(value("gelu(v(1.0), approximate: false)"), 0.84134475, 1e-6);
  EXPECT_NEAR(value("softplus(v(-2.0))"), 0.12692801, 1e-6);
  EXPECT_NEAR(value("softplus(v(100.0))"), 100, 1e-6);
  EXPECT_NEAR(value("logsumexp(cast(iota(3), f32) + 1000.0)"), 1002.4076, 1e-3);
  EXPECT_NEAR(value("norm(cast(iota(5), f32))"), 5.4772256, 1e-6);
  expectNear(evaluateExpression("softmax(cast(iota(5), f32) + 1.0)", "f32[5]"),
             {0.011656, 0.031685, 0.086129, 0.234122, 0.636409});
  expectNear(evaluateExpression("log_softmax(cast(iota(2), f32))", "f32[2]"), {-1.3132617, -0.3132617});
  EXPECT_EQ(numbers(evaluateExpression("eye(2)", "f32[2, 2]")), (Numbers{1, 0, 0, 1}));
  EXPECT_EQ(numbers(evaluateExpression("tril(ones([2, 3]))", "f32[2, 3]")), (Numbers{1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(numbers(evaluateExpression("triu(ones([1, 2, 2]))", "f32[1, 2, 2]")), (Numbers{1, 1, 0, 1}));
}

TEST(SemaTrain, InitialisersTakeShapeAndDtypeFromTheType) {
  const auto program = elaborateText(R"(
model M() {
    param a: f64[300, 100] = glorot_uniform()
    param b: f32[4, 50, 100] = he_normal(stack: 1)
    param c: f32[3, 3] = eye(3) * 2.0
    param d: i32[2] = 7
    state e: bool[2] = ones()
}
let m = M()
)");
  ASSERT_TRUE(program->module) << program->rendered();
  const Tensors values = initialValues(*program->module);
  double largest = 0, squares = 0;
  for (const double x : numbers(values.at("m.a"))) largest = std::max(largest, std::fabs(x));
  EXPECT_LE(largest, std::sqrt(6.0 / 400));
  EXPECT_GT(largest, 0.99 * std::sqrt(6.0 / 400));
  for (const double x : numbers(values.at("m.b"))) squares += x * x;
  EXPECT_NEAR(squares / 20000, 2.0 / 50, 0.002);
  EXPECT_EQ(numbers(values.at("m.c")), (Numbers{2, 0, 0, 0, 2, 0, 0, 0, 2}));
  EXPECT_EQ(numbers(values.at("m.d")), (Numbers{7, 7}));
  EXPECT_EQ(numbers(values.at("m.e")), (Numbers{1, 1}));
}

TEST(SemaTrain, Examples) {
  const auto fashion = elaborateExample("fashion_mlp.gsd");
  ASSERT_TRUE(fashion->module);
  EXPECT_EQ(fashion->codes(), "");
  EXPECT_EQ(fashion->module->parameters.size(), 6u);
  EXPECT_EQ(fashion->module->parameters[0].name, "net.w1");
  EXPECT_EQ(fashion->module->states.size(), 12u);
  EXPECT_EQ(fashion->module->states[0].name, "net.w1.adam.m");
  EXPECT_EQ(printMesh(fashion->module->mesh), "[data: 2, model: 2]");
  EXPECT_TRUE(fashion->module->parameters[0].annotation.has_value());
  EXPECT_EQ(elaborateExample("digits_mlp.gsd")->codes(), "");
  EXPECT_EQ(elaborateExample("mlp_small.gsd")->codes(), "");
}

TEST(SemaTrain, LayoutsReplaceAnnotations) {
  for (const char* layout : {"data", "model", "both", "none"}) {
    ElaborateOptions options = defaults();
    options.layouts = {std::string(GSHARD_SOURCE_DIR "/examples/layouts/") + layout + ".gsd"};
    const auto program = elaborateExample("fashion_mlp.gsd", options);
    ASSERT_TRUE(program->module);
    EXPECT_EQ(program->module->mesh.devices(), 4) << layout;
    const bool splitsModel = std::string(layout) == "model" || std::string(layout) == "both";
    EXPECT_EQ(program->module->parameters[0].annotation.has_value(), splitsModel) << layout;
  }
}

TEST(SemaTrain, IntegerSplitsMakeTheMesh) {
  const std::string text = R"(
entry fn f(x: f32[8, 6] @split(0, 2) @split(1, 3), y: f32[4, 4] @split(0, 3)) -> f32 { return sum(x) + sum(y) }
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  EXPECT_EQ(printMesh(module.mesh), "[devices: 6]");
  const Function& f = *module.find("f");
  EXPECT_EQ(f.arguments[0].annotation->sharding.dims[0], (std::vector<AxisRef>{{0, 1, 2}}));
  EXPECT_EQ(f.arguments[0].annotation->sharding.dims[1], (std::vector<AxisRef>{{0, 2, 3}}));
  EXPECT_EQ(f.arguments[1].annotation->sharding.dims[0], (std::vector<AxisRef>{{0, 1, 3}}));
  ElaborateOptions options = defaults();
  options.devices = 4;
  EXPECT_EQ(elaborateText(text, options)->codes(), "E0277 E0277");
  options.devices = 12;
  EXPECT_TRUE(elaborateText(text, options)->module);
  options = defaults();
  options.mesh = "a=2,b=3";
  const auto meshed = elaborateText(text, options);
  ASSERT_TRUE(meshed->module) << meshed->rendered();
  EXPECT_EQ(meshed->module->find("f")->arguments[0].annotation->sharding.dims[1], (std::vector<AxisRef>{{1, 1, 3}}));
  options.mesh = "a=2,b=2,c=3";
  EXPECT_EQ(elaborateText(text, options)->codes(), "E0276");
}

}  // namespace
}  // namespace gshard
