// Optimizers on several weights: a body is elaborated for one weight of a type and repeated for the others, and nobody
// can tell.
#include <algorithm>
#include <set>

#include "sema_harness.h"

namespace gshard {
namespace {

using namespace testing_sema;  // NOLINT
using Numbers = std::vector<double>;

// Of weights a, b, c that have one type; `loss` is 2 a + 3 b + 4 c, so their gradients differ.
std::unique_ptr<Program> elaborateWith(const std::string& optimizer, const std::string& arguments = "") {
  auto program = elaborateText(optimizer + R"(
model M() {
    param a: f32[2] = uniform_from(1.0)
    param b: f32[2] = uniform_from(2.0)
    param c: f32[2] = uniform_from(3.0)
}
fn uniform_from(first: float, shape: [int], dtype: dtype) { return first + 0.5 * cast(iota(shape), dtype) }
let m = M()
entry fn loss(x: f32[1]) -> f32 { return sum((2.0 * m.a + 3.0 * m.b + 4.0 * m.c) * x) }
train loss with o()" + arguments +
                               ")\n");
  EXPECT_TRUE(program->module) << program->rendered();
  return program;
}

std::vector<const Op*> updatesOf(const Module& module) {
  std::vector<const Op*> ops;
  for (const Op& op : module.find("loss")->ops) {
    if (op.phase == Phase::Update) ops.push_back(&op);
  }
  return ops;
}

Tensors trained(const Module& module, Tensors values) {
  values["x"] = floats({1}, {1});
  return run(module, "loss", values);
}

TEST(SemaOptimizers, EveryWeightHasItsOwnStatesAndUpdate) {
  // One state is read before it is declared last, one is written and never read.
  const auto program = elaborateWith(R"(
optimizer o(rate: float = 0.5) for (w, g) {
    state m = zeros_like(w)
    state seen = zeros_like(w)
    state n = full(shape(w), 1.0, dtype: dtype(w))
    let scale = rate * cast(step + 1, dtype(w))
    seen = g
    m = n + m + g
    n = 2.0 * n
    w = w - scale * m
})");
  const Module& module = *program->module;
  std::vector<std::string> states;
  for (const State& state : module.states) states.push_back(state.name + " " + std::to_string(state.parameter));
  EXPECT_EQ(states, (std::vector<std::string>{"m.a.o.m 0", "m.a.o.seen 0", "m.a.o.n 0", "m.b.o.m 1", "m.b.o.seen 1",
                                              "m.b.o.n 1", "m.c.o.m 2", "m.c.o.seen 2", "m.c.o.n 2"}));
  const Tensors result = trained(module, initialValues(module));
  EXPECT_EQ(numbers(result.at("m.a")), (Numbers{1 - 0.5 * 3, 1.5 - 0.5 * 3}));
  EXPECT_EQ(numbers(result.at("m.b")), (Numbers{2 - 0.5 * 4, 2.5 - 0.5 * 4}));
  EXPECT_EQ(numbers(result.at("m.c")), (Numbers{3 - 0.5 * 5, 3.5 - 0.5 * 5}));
  EXPECT_EQ(numbers(result.at("m.c.o.m")), (Numbers{5, 5}));
  EXPECT_EQ(numbers(result.at("m.b.o.seen")), (Numbers{3, 3}));
  EXPECT_EQ(numbers(result.at("m.c.o.n")), (Numbers{2, 2}));
  std::vector<std::string> read;
  for (const Argument& argument : module.find("loss")->arguments) {
    if (argument.kind == ArgumentKind::State) read.push_back(argument.name);
  }
  EXPECT_EQ(read, (std::vector<std::string>{"m.a.o.n", "m.a.o.m", "m.b.o.n", "m.b.o.m", "m.c.o.n", "m.c.o.m"}));
}

TEST(SemaOptimizers, ScalarsThatFollowFromNoWeightAreMadeOnce) {
  const auto program = elaborateWith(R"(
optimizer o() for (w, g) {
    let t = cast(step + 1, dtype(w))
    w = w - g / (1.0 + t * log(t))
})");
  std::vector<std::string> names;
  for (const Op* op : updatesOf(*program->module))
    names.push_back(program->module->find("loss")->value(op->results[0]).name);
  EXPECT_EQ(names, (std::vector<std::string>{"constant", "add", "t", "log", "mul", "constant", "add", "div", "w",  // a
                                             "div", "w",                                                           // b
                                             "div", "w"}));                                                        // c
  const Tensors result = trained(*program->module, initialValues(*program->module));
  EXPECT_EQ(numbers(result.at("m.c")), (Numbers{3 - 4, 3.5 - 4}));
}

TEST(SemaOptimizers, FirstValuesMayFollowFromTheWeight) {
  const auto program = elaborateWith(R"(
optimizer o() for (w, g) {
    state slow = w
    slow = 0.5 * (slow + w)
    w = w - g
})");
  const Tensors first = initialValues(*program->module);
  for (const std::string weight : {"m.a", "m.b", "m.c"})
    EXPECT_EQ(numbers(first.at(weight + ".o.slow")), numbers(first.at(weight)));
}

TEST(SemaOptimizers, RandomValuesDifferFromWeightToWeight) {
  const auto program = elaborateWith(R"(
optimizer o() for (w, g) {
    state start = random_normal(shape(w), dtype: dtype(w))
    w = w - g * random_uniform(shape(w), dtype: dtype(w))
})");
  for (const std::string function : {"init", "loss"}) {
    std::set<std::int64_t> sites;
    for (const Op& op : program->module->find(function)->ops) {
      if (const Attribute* site = op.attributes.find("site")) sites.insert(std::get<std::int64_t>(*site));
    }
    EXPECT_EQ(sites.size(), 3u) << function;
  }
}

TEST(SemaOptimizers, OtherParametersAreReadAsTheyAreByThen) {
  const auto program = elaborateWith("optimizer o() for (w, g) { w = w - g * m.a }");
  const Tensors result = trained(*program->module, initialValues(*program->module));
  const Numbers a = {1 - 2 * 1, 1.5 - 2 * 1.5};  // updated first
  EXPECT_EQ(numbers(result.at("m.a")), a);
  EXPECT_EQ(numbers(result.at("m.b")), (Numbers{2 - 3 * a[0], 2.5 - 3 * a[1]}));
  EXPECT_EQ(numbers(result.at("m.c")), (Numbers{3 - 4 * a[0], 3.5 - 4 * a[1]}));
}

// A gradient may be a value that the body reads by another name.
TEST(SemaOptimizers, AGradientMayBeAnArgumentOfTheOptimizer) {
  const auto program = elaborateText(R"(
const lr: wide = 0.25
optimizer o(rate: wide) for (w, g) { w = w - rate * g }
model M() {
    param a: f32 = 1.0
    param b: f32 = 2.0
}
let m = M()
entry fn loss(x: f32[1]) -> f32 { return lr * m.a + 3.0 * m.b + 0.0 * sum(x) }
train loss with o(lr)
)");
  ASSERT_TRUE(program->module) << program->rendered();
  const Tensors result = trained(*program->module, initialValues(*program->module));
  EXPECT_EQ(numbers(result.at("m.a")), (Numbers{1 - 0.25 * 0.25}));
  EXPECT_EQ(numbers(result.at("m.b")), (Numbers{2 - 0.25 * 3}));
}

// One mistake in the body is one message, whatever the weights.
TEST(SemaOptimizers, AMistakeIsToldOnce) {
  const auto program = elaborateText(R"(
optimizer o() for (w, g) { w = w - nothing }
model M() {
    param a: f32 = 1.0
    param b: f32 = 2.0
}
let m = M()
entry fn loss(x: f32[1]) -> f32 { return m.a + m.b + 0.0 * sum(x) }
train loss with o()
)");
  EXPECT_FALSE(program->module);
  EXPECT_EQ(program->codes(), "E0201");
}

}  // namespace
}  // namespace gshard
