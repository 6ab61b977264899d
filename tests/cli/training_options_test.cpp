// Options of training through the whole path: clip_norm, precision and @remat, compiled and run on several meshes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Gradients of one step: of `w` 0 … 11, of `b` ones (T23 of the cases).
const std::string kNorms = R"(import optim
mesh [a: 2, b: 2]
model M() {
    param w: f32[3, 4] @split(0, a) = zeros()
    param b: f32[4] @split(0, b) = zeros()
    param v: f32[3, 4] @split(1, a) = zeros()
    param c: f32[4] = zeros()
}
let m = M()
entry fn loss(x: f32[3, 4], y: f32[4], z: f32[3, 4], u: f32[4]) -> f32 {
    return sum(m.w * x) + sum(m.b * y) + sum(m.v * z) + sum(m.c * u)
}
train loss with optim.sgd(lr: 1.0) { clip_norm: 1.0 }
)";

Words normInputs(const Scratch& scratch) {
  Numbers x{{3, 4}, {}};
  for (int i = 0; i < 12; ++i) x.values.push_back(i);
  const std::string matrix = writeNumbers(scratch.file("x.npy"), x);
  const std::string vector = writeNumbers(scratch.file("y.npy"), {{4}, {1, 1, 1, 1}});
  return {"--input", "x=" + matrix, "--input", "z=" + matrix, "--input", "y=" + vector, "--input", "u=" + vector};
}

TEST(ClipNorm, ScalesEveryGradientAlikeOnEveryMesh) {
  const Scratch scratch;
  const std::string source = scratch.write("norms.gsd", kNorms);
  const Words inputs = normInputs(scratch);
  const double scale = 1 / std::sqrt(2 * 510.0);
  for (const std::string mesh : {"a=1,b=1", "a=2,b=1", "a=2,b=2", "a=3,b=2", "a=4,b=1"}) {
    SCOPED_TRACE(mesh);
    const std::int64_t devices = (mesh[2] - '0') * (mesh[6] - '0');
    const Binary binary = compile(scratch, source, "norms", devices, {"-w", "--mesh", mesh});
    const std::string kept = scratch.file("kept" + mesh);
    Words words = {"train", "-q", "--steps", "1", "--checkpoint", kept};
    words.insert(words.end(), inputs.begin(), inputs.end());
    const Outcome outcome = binary(words);
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    const auto tensors = numbersOf(kept + "/step-1.safetensors");
    for (const char* name : {"m.w", "m.v"}) {
      for (std::size_t i = 0; i < 12; ++i)
        EXPECT_NEAR(tensors.at(name).values[i], -scale * static_cast<double>(i), 1e-6) << name;
    }
    for (const char* name : {"m.b", "m.c"}) {
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(tensors.at(name).values[i], -scale, 1e-6) << name;
    }
  }
}

TEST(ClipNorm, CostsOneNumberPerSetOfAxes) {
  const Scratch scratch;
  const std::string source = scratch.write("norms.gsd", kNorms);
  const Outcome outcome = gshardc({source, "-w", "--emit=comm-plan=-"});
  ASSERT_EQ(outcome.code, 0) << outcome.all();
  std::vector<std::string> found;
  const nlohmann::json plan = nlohmann::json::parse(outcome.out);
  for (const auto& function : plan["functions"]) {
    if (function["name"] != "loss") continue;
    for (const auto& each : function["collectives"]) {
      if (each["phase"] != "update") continue;
      EXPECT_EQ(each["kind"], "all_reduce");
      EXPECT_EQ(each["count"], 1);
      // Of two devices, one takes the other's number, and one the sum; a part of the loss travels along.
      EXPECT_LE(each["bytes"]["max"], 8) << each;
      found.push_back(each["axes"].dump());
    }
  }
  std::sort(found.begin(), found.end());  // which of the two comes first is the partitioner's choice
  EXPECT_EQ(found, (std::vector<std::string>{"[\"a\"]", "[\"b\"]"})) << outcome.out;
}

TEST(ClipNorm, WithMicrobatchesTheNormIsOfTheWholeGradient) {
  const Scratch scratch;
  std::string text = R"(import optim
const batch = 6
const limit: wide = 0.5
mesh [a: 2]
model M() { param w: f32[3, 4] @split(1, a) = constant(0.5) param b: f32[4] = zeros() }
let m = M()
entry fn loss(x: f32[batch, 3] @split(0, a), y: f32[batch, 4]) -> f32 {
    let difference = tanh(matmul(x, m.w)) + m.b - y
    return mean(difference * difference)
}
train loss with optim.adam(lr: 0.1) { clip_norm: limit, microbatches: 3 }
)";
  const std::string source = scratch.write("blocks.gsd", text);
  const Outcome equal = gshardc({"verify", source, "-n", "1,2,3,4"});
  EXPECT_EQ(equal.code, 0) << equal.all();
  EXPECT_TRUE(contains(equal.out, "after 3 steps m.w")) << equal.out;
  text.replace(text.find(", microbatches: 3"), 17, "");
  const std::string whole = scratch.write("whole.gsd", text);
  std::vector<std::vector<double>> losses;
  for (const std::string& each : {source, whole}) {
    const Binary binary = compile(scratch, each, "program", 2, {"-w"});
    const Outcome outcome = binary({"train", "-q", "--steps", "4", "--metrics", scratch.file("m.jsonl")});
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    losses.push_back(lossesOf(scratch.file("m.jsonl")));
  }
  ASSERT_EQ(losses[0].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-6 * losses[1][i]);
}

TEST(Precision, Bf16TrainsOnEveryMesh) {
  const Scratch scratch;
  const std::string text = R"(import nn
import optim
const batch = 24
mesh [data: 2, model: 2]
model Net() {
    param w1: real[20, 48] @split(1, model) = he_normal()
    param b1: real[48] = zeros()
    param w2: real[48, 5] = he_normal()
    fn call[B](x: real[B, 20]) -> real[B, 5] { return matmul(relu(matmul(x, w1) + b1), w2) }
}
let net = Net()
entry fn loss(x: real[batch, 20] @split(0, data), y: i32[batch]) -> real {
    if not training { report accuracy = nn.accuracy(net(x), y) }
    return mean(nn.cross_entropy(net(x), y))
}
entry fn predict[B](x: real[B, 20] @split(0, data)) -> real[B, 5] { return net(x) }
train loss with optim.sgd(lr: 0.05) { clip_norm: 1.0, precision: bf16 }
)";
  const std::string source = scratch.write("small.gsd", text);
  const Outcome equal = gshardc({"verify", source, "-n", "1,2,3x1,1x3,2x2"});
  EXPECT_EQ(equal.code, 0) << equal.all();
  std::vector<std::vector<double>> losses;
  for (const std::string precision : {"bf16", "f16", "f32"}) {
    const Binary binary = compile(scratch, source, "small", 4, {"-w", "-D", "real=" + precision});
    const std::string metrics = scratch.file("metrics"), kept = scratch.file("kept-" + precision);
    const Outcome outcome = binary({"train", "-q", "--steps", "60", "--metrics", metrics, "--checkpoint", kept});
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    losses.push_back(lossesOf(metrics));
    // What is trained is kept wide, whatever it is read as.
    EXPECT_TRUE(contains(readFile(kept + "/step-60.safetensors"), "F32"));
    EXPECT_FALSE(contains(readFile(kept + "/step-60.safetensors"), "\"F16\""));
  }
  // The seeded data and parameters are the same; 8 and 11 bits follow 24 as far as they can.
  for (const std::vector<double>& each : losses) {
    EXPECT_LT(each.back(), 0.9 * each.front());
    EXPECT_NEAR(each.front(), losses.back().front(), 0.02 * losses.back().front());
    EXPECT_NEAR(each.back(), losses.back().back(), 0.03 * losses.back().front());
  }
}

TEST(Precision, ResultsKeepTheirTypeInFiles) {
  const Scratch scratch;
  const std::string source = scratch.write(
      "types.gsd", "entry fn f(x: bf16[3] @split(0, 2), y: f16[3]) -> (bf16[3], f16[3]) { return (x + x, y * y) }\n");
  const Binary binary = compile(scratch, source, "types", 2, {"-w"});
  const std::string x = writeNumbers(scratch.file("x.npy"), {{3}, {1.00390625, 3, -2}});
  const std::string y = writeNumbers(scratch.file("y.npy"), {{3}, {0.1, 300, -2}});
  for (const char* name : {"out.npz", "out.safetensors"}) {
    const std::string out = scratch.file(name);
    const Outcome outcome = binary({"f", "-q", "--input", "x=" + x, "--input", "y=" + y, "-o", out});
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    const auto found = numbersOf(out);
    EXPECT_EQ(found.at("result.0").values, (std::vector<double>{2, 6, -4})) << name;
    EXPECT_EQ(found.at("result.1").values[1], INFINITY) << name;
    EXPECT_EQ(found.at("result.1").values[2], 4) << name;
  }
  EXPECT_TRUE(contains(readFile(scratch.file("out.safetensors")), "\"BF16\""));
  EXPECT_TRUE(contains(readFile(scratch.file("out.safetensors")), "\"F16\""));
  EXPECT_TRUE(contains(readFile(scratch.file("out.npz")), "'<f4'"));  // NumPy has no bf16
  EXPECT_TRUE(contains(readFile(scratch.file("out.npz")), "'<f2'"));
}

// Residual blocks of a width that makes activations large beside parameters.
const std::string kDeep = R"(import optim
const batch = 512
const recomputed = false
mesh [data: 1, model: 1]
model Block(width: int) {
    param w: f32[width, width] @split(1, model) = he_normal()
    param v: f32[width, width] @split(0, model) = glorot_uniform()
    fn call[B](x: f32[B, width]) -> f32[B, width] {
        return x + dropout(tanh(matmul(gelu(matmul(x, w)), v)), rate: 0.25)
    }
}
model Deep(width: int, depth: int) {
    let blocks = [Block(width) for i in 0..depth]
    fn call[B](x: f32[B, width]) -> f32[B, width] {
        let h = x
        for block in blocks {
            if recomputed { h = block(h) @remat } else { h = block(h) }
        }
        return h
    }
}
let net = Deep(24, 8)
entry fn loss(x: f32[batch, 24] @split(0, data)) -> f32 { return mean(square(net(x) - x)) }
train loss with optim.sgd(lr: 0.1)
)";

TEST(Remat, PeakGoesDownAndNoBitChanges) {
  const Scratch scratch;
  const std::string source = scratch.write("deep.gsd", kDeep);
  for (const std::string mesh : {"data=1,model=1", "data=3,model=1", "data=2,model=2"}) {
    SCOPED_TRACE(mesh);
    const std::int64_t devices = (mesh[5] - '0') * (mesh[13] - '0');
    std::vector<std::vector<double>> losses;
    std::vector<Peak> peaks;
    std::vector<std::map<std::string, Numbers>> trained;
    for (const std::string recomputed : {"false", "true"}) {
      const Binary binary =
          compile(scratch, source, "deep", devices, {"-w", "--mesh", mesh, "-D", "recomputed=" + recomputed});
      const std::string metrics = scratch.file("metrics"), kept = scratch.file("kept" + mesh + recomputed);
      const Outcome outcome = binary({"train", "-q", "--steps", "3", "--metrics", metrics, "--checkpoint", kept,
                                      "--measure-peak", "--verify-plan"});
      ASSERT_EQ(outcome.code, 0) << outcome.all();
      losses.push_back(lossesOf(metrics));
      peaks.push_back(peakOf(metrics));
      trained.push_back(numbersOf(kept + "/step-3.safetensors"));
    }
    EXPECT_EQ(losses[0], losses[1]);
    EXPECT_EQ(trained[0], trained[1]);
    // Of each block its input is left, in place of what the products gave as well.
    EXPECT_LT(4 * peaks[1].planned, 3 * peaks[0].planned);
    for (const Peak& peak : peaks) EXPECT_EQ(peak.planned, peak.measured);
  }
}

TEST(Remat, GoesWithMicrobatchesAndMask) {
  const Scratch scratch;
  std::string text = kDeep;
  text.replace(text.find("optim.sgd(lr: 0.1)"), 18, "optim.sgd(lr: 0.1) { microbatches: 4, clip_norm: 0.1 }");
  const std::string source = scratch.write("deep.gsd", text);
  std::vector<std::vector<double>> losses;
  for (const std::string recomputed : {"false", "true"}) {
    const Binary binary =
        compile(scratch, source, "deep", 2, {"-w", "--mesh", "data=2,model=1", "-D", "recomputed=" + recomputed});
    const Outcome outcome = binary({"train", "-q", "--steps", "3", "--metrics", scratch.file("metrics")});
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    losses.push_back(lossesOf(scratch.file("metrics")));
  }
  ASSERT_EQ(losses[0].size(), 3u);
  EXPECT_EQ(losses[0], losses[1]);
}

}  // namespace
}  // namespace gshard::testing
