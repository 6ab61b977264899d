// The language: compile-time values, generics, control flow, tuples, indices, builtins, against numbers worked out by
// hand.
#include "sema_harness.h"

namespace gshard {
namespace {

using namespace testing_sema;
using Numbers = std::vector<double>;

TEST(SemaLanguage, CompileTimeArithmetic) {
  EXPECT_EQ(numbers(evaluateExpression("cast(2 + 3 * 4 ** 2 - 6 / 3, f32)")), (Numbers{48}));
  EXPECT_EQ(numbers(evaluateExpression("cast(-7 % 3, i32)", "i32")), (Numbers{2}));
  EXPECT_EQ(numbers(evaluateExpression("cast(floordiv(-7, 2), i32)", "i32")), (Numbers{-4}));
  EXPECT_EQ(numbers(evaluateExpression("cast(ceildiv(7, 2), i32)", "i32")), (Numbers{4}));
  EXPECT_EQ(numbers(evaluateExpression("cast(int(ceil(2.0 * 5 / 4)), i32)", "i32")), (Numbers{3}));
  EXPECT_EQ(numbers(evaluateExpression("cast(max(3, 5) + min(3, 5) + abs(-2), i32)", "i32")), (Numbers{10}));
  EXPECT_EQ(numbers(evaluateExpression("cast(len([1, 2, 3] + [4]), i32)", "i32")), (Numbers{4}));
  EXPECT_NEAR(numbers(evaluateExpression("cast(sqrt(2.0) * pi, f32)"))[0], 4.442882938, 1e-6);
}

TEST(SemaLanguage, ConstantsAreOverridden) {
  const std::string text =
      "const n = 3\nconst scale = 0.5\nconst name = \"a\"\nconst m = n * 2\n"
      "entry fn f() -> f32[m] { return full([m], scale) }\n";
  ElaborateOptions options = defaults();
  EXPECT_EQ(run(*elaborateText(text)->module, "f", {}).at("result").type.shape, (std::vector<std::int64_t>{6}));
  options.defines = {{"n", "4"}, {"scale", "2"}, {"name", "bc"}};
  const auto program = elaborateText(text, options);
  ASSERT_TRUE(program->module) << program->rendered();
  EXPECT_EQ(numbers(run(*program->module, "f", {}).at("result")), Numbers(8, 2.0));
  EXPECT_EQ(program->module->constants.size(), 4u);
  EXPECT_EQ(program->module->constants[2].value, "\"bc\"");
  options.defines = {{"k", "4"}};
  EXPECT_EQ(elaborateText(text, options)->codes(), "E0287");
  options.defines = {{"n", "4.5"}};
  EXPECT_EQ(elaborateText(text, options)->codes(), "E0288");
}

TEST(SemaLanguage, RealIsAConstant) {
  const std::string text = "entry fn f() -> real[2] { return zeros([2]) }\n";
  EXPECT_EQ(run(*elaborateText(text)->module, "f", {}).at("result").type.dtype, DType::F32);
  ElaborateOptions options = defaults();
  options.defines = {{"real", "f64"}};
  EXPECT_EQ(run(*elaborateText(text, options)->module, "f", {}).at("result").type.dtype, DType::F64);
}

TEST(SemaLanguage, ControlFlowRunsWhileCompiling) {
  const std::string text = R"(
fn power(n: int) -> int {
    let result = 1
    for i in 0..n { result = result * 2 }
    return result
}
fn pick(values: [int]) -> int {
    for v in values { if v > 2 { return v } }
    return 0
}
entry fn f() -> i32[3] {
    let parts = [i * i for i in [1, 2, 3]]
    let h = cast(0, i32)
    for p in parts { h = h + p }
    let b = if power(3) == 8 and not false { 1 } else { 2 }
    return stack([h, cast(pick(parts), i32), cast(b, i32)])
}
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  EXPECT_EQ(numbers(run(*program->module, "f", {}).at("result")), (Numbers{14, 4, 1}));
}

TEST(SemaLanguage, GenericsInDimsRankAndDtype) {
  const std::string text = R"(
fn rows[T: dtype, ...S, B](x: T[...S, B]) -> T[...S] { return sum(x, axis: -1) / cast(B, T) }
fn both[M, N](x: f32[M, N], y: f32[N, M]) -> f32[M, M] { return matmul(x, y) + cast(M * N, f32) }
entry fn f(x: f64[2, 3, 4], y: f32[2, 3]) -> (f64[2, 3], f32[2, 2]) { return (rows(x), both(y, transpose(y))) }
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  Numbers x(24);
  for (int i = 0; i < 24; ++i) x[i] = i;
  const Tensors result =
      run(*program->module, "f", {{"x", tensor(DType::F64, {2, 3, 4}, x)}, {"y", floats({2, 3}, {1, 2, 3, 4, 5, 6})}});
  EXPECT_EQ(numbers(result.at("result.0")), (Numbers{1.5, 5.5, 9.5, 13.5, 17.5, 21.5}));
  EXPECT_EQ(numbers(result.at("result.1")), (Numbers{20, 38, 38, 83}));
}

TEST(SemaLanguage, TuplesDefaultsAndNamedArguments) {
  const std::string text = R"(
fn split_it[N](x: f32[N], by: float = 2.0, shift: float = none) -> (f32[N], f32[N]) {
    let (a, _) = (x / by, x)
    if shift != none { return (a + shift, x) }
    return (a, x)
}
entry fn f(x: f32[2]) -> (f32[2], f32[2]) {
    let (a, b) = split_it(x, shift: 1)
    let (c, _) = split_it(b, by: 4)
    return (a, c)
}
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Tensors result = run(*program->module, "f", {{"x", floats({2}, {2, 8})}});
  EXPECT_EQ(numbers(result.at("result.0")), (Numbers{2, 5}));
  EXPECT_EQ(numbers(result.at("result.1")), (Numbers{0.5, 2}));
}

TEST(SemaLanguage, Indices) {
  const std::string before = "fn x() { return reshape(cast(iota(24), f32), [2, 3, 4]) }";
  const auto value = [&](const std::string& index, const std::string& type) {
    return numbers(evaluateExpression("x()" + index, type, before));
  };
  EXPECT_EQ(value("[1, 2, 3]", "f32"), (Numbers{23}));
  EXPECT_EQ(value("[-1, 0]", "f32[4]"), (Numbers{12, 13, 14, 15}));
  EXPECT_EQ(value("[0, ::2, 1:3]", "f32[2, 2]"), (Numbers{1, 2, 9, 10}));
  EXPECT_EQ(value("[0, 0, ::-1]", "f32[4]"), (Numbers{3, 2, 1, 0}));
  EXPECT_EQ(value("[0, 0, -1:0:-2]", "f32[2]"), (Numbers{3, 1}));
  EXPECT_EQ(value("[0, 1, 2:100]", "f32[2]"), (Numbers{6, 7}));
  EXPECT_EQ(value("[0, 1, 3:1]", "f32[0]"), (Numbers{}));
  EXPECT_EQ(value("[1, none, 0, none, 1:3]", "f32[1, 1, 2]"), (Numbers{13, 14}));
  EXPECT_EQ(value("[cast(1, i32), 1:, cast(2, u8)]", "f32[2]"), (Numbers{18, 22}));
}

TEST(SemaLanguage, NumbersAdapt) {
  EXPECT_EQ(numbers(evaluateExpression("where(iota(3) > 1, 1, 0) * cast(iota(3), f32)", "f32[3]")), (Numbers{0, 0, 2}));
  EXPECT_EQ(numbers(evaluateExpression("cast(where(iota(3) > 1, 1, 0), u8)", "u8[3]")), (Numbers{0, 0, 1}));
  EXPECT_EQ(numbers(evaluateExpression("cast(7, i64) - 2", "i64")), (Numbers{5}));
  EXPECT_EQ(numbers(evaluateExpression("3", "f32")), (Numbers{3}));
  EXPECT_EQ(numbers(evaluateExpression("cast(iota(3), f32) ** 3", "f32[3]")), (Numbers{0, 1, 8}));
  expectNear(evaluateExpression("cast(iota(3) + 1, f32) ** -2", "f32[3]"), {1, 0.25, 1.0 / 9}, 1e-7);
}

TEST(SemaLanguage, ModelsWithListsStatesAndBranches) {
  const std::string text = R"(
model Block(width: int, scale: float) {
    param w: f32[width] = constant(scale)
    fn call[N](x: f32[N, width]) -> f32[N, width] { return x * w }
}
model Net(width: int, depth: int, extra: bool = false) {
    let blocks = [Block(width, 1.0 + i) for i in 0..depth]
    let mixed = [Block(width, 10.0), [Block(width, 20.0)]]
    if extra { param bias: f32[width] = ones() }
    state seen: f32 = 0.0
    fn call[N](x: f32[N, width]) -> f32[N, width] {
        let h = x
        for b in blocks { h = b(h) }
        h = mixed[1][0](h)
        if extra { h = h + bias }
        seen = seen + 1.0
        return h + seen * 0.0
    }
}
let net = Net(2, 2, extra: true)
entry fn f(x: f32[1, 2]) -> f32[1, 2] { return net(x) }
entry fn peek() -> f32[2] { return net.blocks[1].w + net.mixed[0].w }
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  std::vector<std::string> names;
  for (const Parameter& parameter : module.parameters) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"net.blocks.0.w", "net.blocks.1.w", "net.mixed.0.w", "net.mixed.1.0.w",
                                             "net.bias"}));
  Tensors values = initialValues(module);
  EXPECT_EQ(numbers(values.at("net.mixed.1.0.w")), (Numbers{20, 20}));
  values["x"] = floats({1, 2}, {1, 2});
  const Tensors result = run(module, "f", values);
  EXPECT_EQ(numbers(result.at("result")), (Numbers{41, 81}));
  EXPECT_EQ(numbers(result.at("net.seen")), (Numbers{1}));
  EXPECT_EQ(numbers(run(module, "peek", values).at("result")), (Numbers{12, 12}));
  for (const Argument& argument : module.find("peek")->arguments) EXPECT_NE(argument.name, "net.bias");
}

TEST(SemaLanguage, StatesReadTheLastAssignment) {
  const std::string text = R"(
model Counter() {
    state n: i32 = 5
    fn call() -> i32 {
        let before = n
        n = n + 1
        n = n * 2
        return before * 100 + n
    }
}
let c = Counter()
entry fn f() -> i32 { return c() }
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Tensors result = run(*program->module, "f", initialValues(*program->module));
  EXPECT_EQ(numbers(result.at("result")), (Numbers{512}));
  EXPECT_EQ(numbers(result.at("c.n")), (Numbers{12}));
}

TEST(SemaLanguage, RandomSitesFollowTheInstancePath) {
  const std::string text = R"(
model Two() {
    param a: f32[4] = uniform()
    param b: f32[4] = uniform()
    param c: f32[4] = normal(stddev: 0.0) + 3.0
}
let one = Two()
let two = Two()
entry fn f() -> (f32[4], f32[4], f32[4]) {
    let xs = [random_uniform([4]) for i in 0..2]
    return (xs[0], xs[1], random_uniform([4]))
}
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  const Tensors values = initialValues(*program->module);
  EXPECT_NE(numbers(values.at("one.a")), numbers(values.at("one.b")));
  EXPECT_NE(numbers(values.at("one.a")), numbers(values.at("two.a")));
  EXPECT_EQ(numbers(values.at("one.c")), (Numbers{3, 3, 3, 3}));
  const Tensors drawn = run(*program->module, "f", {});
  EXPECT_NE(numbers(drawn.at("result.0")), numbers(drawn.at("result.1")));
  EXPECT_NE(numbers(drawn.at("result.0")), numbers(drawn.at("result.2")));
  // What comes before a parameter does not change it.
  const auto other =
      elaborateText("model Two() { param x: f32 = uniform() param a: f32[4] = uniform() }\nlet one = Two()\n");
  ASSERT_TRUE(other->module) << other->rendered();
  EXPECT_EQ(numbers(initialValues(*other->module).at("one.a")), numbers(values.at("one.a")));
}

TEST(SemaLanguage, GradientsByValueParameterAndTuple) {
  const std::string text = R"(
model M() { param w: f32[2] = constant(3.0) }
let m = M()
entry fn f(x: f32[2]) -> (f32[2], f32[2], f32[2]) {
    let y = sum(m.w * x * x)
    let (a, b) = grad(y, (m.w, x))
    return (a, b, grad(y, m.w))
}
)";
  const auto program = elaborateText(text);
  ASSERT_TRUE(program->module) << program->rendered();
  Tensors values = initialValues(*program->module);
  values["x"] = floats({2}, {1, 2});
  const Tensors result = run(*program->module, "f", values);
  EXPECT_EQ(numbers(result.at("result.0")), (Numbers{1, 4}));
  EXPECT_EQ(numbers(result.at("result.1")), (Numbers{6, 12}));
  EXPECT_EQ(numbers(result.at("result.2")), (Numbers{1, 4}));
}

TEST(SemaLanguage, DefinitionsInAnyOrderAndLazily) {
  const auto program =
      elaborateText("const a = b + 1\nconst b = c()\nfn c() { return 2 }\nentry fn f() -> i32 { return a }\n");
  ASSERT_TRUE(program->module) << program->rendered();
  EXPECT_EQ(numbers(run(*program->module, "f", {}).at("result")), (Numbers{3}));
  EXPECT_EQ(elaborateText("const a = b\nconst b = a\n")->codes(), "E0214");
}

TEST(SemaLanguage, EndlessLoopsEnd) {
  const auto program = elaborateText(
      "fn f() { let n = 0 for i in 0..2000 { for j in 0..2000 { n = n + 1 } } return n }\nconst c = f()\n");
  EXPECT_EQ(program->codes().substr(0, 5), program->codes());
  EXPECT_NE(program->rendered().find("1000000 statements"), std::string::npos) << program->rendered();
}

}  // namespace
}  // namespace gshard
