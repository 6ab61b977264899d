// Annotations: every form, on every place, as the sharding that the IR gets; and patterns by path.
#include "sema_harness.h"

namespace gshard {
namespace {

using namespace testing_sema;

std::string shown(const Module& module, const std::optional<Annotation>& annotation) {
  if (!annotation) return "none";
  std::string text = printSharding(module.mesh, annotation->sharding);
  if (annotation->open) text += " open";
  if (annotation->stored) text += " stored";
  return text;
}

TEST(SemaAnnotations, FormsOnInputs) {
  const auto program = elaborateText(R"(
mesh [a: 2, b: 3, one: 1]
const n = 8
entry fn f(p: f32[n, 6] @split(n, a) @split(-1, b), q: f32[4, 6] @split(1, a, b), r: f32[4] @replicate,
           s: f32[4, 4, 4] @shard([(a, b), _, one]), t: f32[4, 4] @split(0, a) @open, u: f32[4] @split(0, devices),
           v: f32[4, 6] @split(1, 6), w: f32[4] @split(0, 1), x: f32[4], y: f32[devices] @split(0, 3)) -> f32 {
    return sum(p) + sum(q) + sum(r) + sum(s) + sum(t) + sum(u) + sum(v) + sum(w) + sum(x) + sum(y) + 2.0 * devices
}
)");
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  const std::vector<std::string> expected = {"{[a, b]}",      "{[_, (a, b)]}", "{[_]}",         "{[(a, b), _, _]}",
                                             "{[a, _]} open", "{[(a, b)]}",    "{[_, (a, b)]}", "{[_]}",
                                             "none",          "{[b]}"};
  const Function& f = *module.find("f");
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(shown(module, f.arguments[i].annotation), expected[i]) << i;
  EXPECT_EQ(f.type(f.arguments[9].value).shape, (std::vector<std::int64_t>{6}));
}

TEST(SemaAnnotations, OnParametersStatesValuesArgumentsAndResults) {
  const auto program = elaborateText(R"(
mesh [data: 2, model: 2]
model M(E: int, cut: axis) {
    param w: f32[E, 4] @split(E, cut) @stored = ones()
    state s: f32[E] @split(0, data) = zeros()
    fn call(x: f32[E, 4] @split(0, data)) -> f32[E, 4] @split(1, model) {
        let h = x * w @split(0, model)
        return h + s[:, none]
    }
}
let m = M(8, model)
entry fn f(x: f32[8, 4]) -> f32[8, 4] { return m(x) }
)");
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  EXPECT_EQ(shown(module, module.parameters[0].annotation), "{[model, _]} stored");
  EXPECT_EQ(shown(module, module.states[0].annotation), "{[data]}");
  std::vector<std::string> annotated;
  for (const Op& op : module.find("f")->ops) {
    if (op.kind != OpKind::Annotate) continue;
    annotated.push_back(shown(module, std::get<Annotation>(*op.attributes.find("annotation"))));
  }
  EXPECT_EQ(annotated, (std::vector<std::string>{"{[data, _]}", "{[model, _]}", "{[_, model]}"}));
}

TEST(SemaAnnotations, PatternsByPath) {
  const auto program = elaborateText(R"(
import optim
mesh [data: 4]
const batch = 8
model Block() {
    param w: f32[8, 8] = ones()
    param b: f32[2] = ones()
    fn call(x: f32[batch, 8]) -> f32[batch, 8] {
        let u = matmul(x, w)
        return u + sum(b)
    }
}
let net = Block()
let blocks = [Block() for i in 0..2]
shard net.** @split(0, data) @stored
shard blocks.1.w @split(1, data)
shard blocks.*.call.u, loss.x @split(0, data)
shard **.adam.* @split(0, data) @open
entry fn loss(x: f32[batch, 8], y: f32[2]) -> f32 { return sum(blocks[1](blocks[0](net(x)))) + sum(y) }
train loss with optim.adam(lr: 0.1)
)");
  ASSERT_TRUE(program->module) << program->rendered();
  const Module& module = *program->module;
  std::map<std::string, std::string> found;
  for (const Parameter& parameter : module.parameters) found[parameter.name] = shown(module, parameter.annotation);
  for (const State& state : module.states) found[state.name] = shown(module, state.annotation);
  EXPECT_EQ(found.at("net.w"), "{[data, _]} stored");
  EXPECT_EQ(found.at("net.b"), "none");  // shorter than the axis
  EXPECT_EQ(found.at("blocks.0.w"), "none");
  EXPECT_EQ(found.at("blocks.1.w"), "{[_, data]}");
  EXPECT_EQ(found.at("net.w.adam.m"), "{[data, _]} open");  // the last pattern that matches counts
  EXPECT_EQ(found.at("net.b.adam.v"), "none");
  const Function& loss = *module.find("loss");
  EXPECT_EQ(shown(module, loss.arguments[0].annotation), "{[data, _]}");
  EXPECT_EQ(shown(module, loss.arguments[1].annotation), "none");
  std::int64_t annotated = 0;
  for (const Op& op : loss.ops) annotated += op.kind == OpKind::Annotate && op.phase == Phase::Forward ? 1 : 0;
  EXPECT_EQ(annotated, 2);  // u of both blocks
  for (const Diagnostic& diagnostic : program->sink.diagnostics()) EXPECT_EQ(diagnostic.code, "R0201");
}

TEST(SemaAnnotations, DevicesAndMeshOptions) {
  const std::string text = "mesh [data: 2, model: 2]\nentry fn f(x: f32[8] @split(0, data)) -> f32 { return sum(x) }\n";
  ElaborateOptions options = defaults();
  options.devices = 3;
  EXPECT_EQ(printMesh(elaborateText(text, options)->module->mesh), "[data: 3, model: 1]");
  options.devices = std::nullopt;
  options.mesh = "model=4,data=2";
  EXPECT_EQ(printMesh(elaborateText(text, options)->module->mesh), "[model: 4, data: 2]");
  const auto bare = elaborateText("entry fn f(x: f32[8]) -> f32 { return sum(x) }\n");
  EXPECT_EQ(printMesh(bare->module->mesh), "[devices: 1]");
  EXPECT_FALSE(bare->module->meshDeclared);
}

TEST(SemaAnnotations, EqualSitesAndDeepCalls) {
  // Two parameters whose paths have one hash would share their random numbers.
  EXPECT_EQ(elaborateText("model N() { param irxjumt: f32 = normal() param aaulkit: f32 = normal() }\nlet net = N()\n")
                ->codes(),
            "E0254");
  std::string deep = "fn f0(x: int) -> int { return x }\n";
  for (int i = 1; i <= 101; ++i)
    deep += "fn f" + std::to_string(i) + "(x: int) -> int { return f" + std::to_string(i - 1) + "(x) }\n";
  EXPECT_EQ(elaborateText(deep + "const c = f99(1)\n")->codes(), "");
  EXPECT_EQ(elaborateText(deep + "const c = f101(1)\n")->codes(), "E0230");
}

}  // namespace
}  // namespace gshard
