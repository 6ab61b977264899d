// The layers of stdlib/moe.gsd: in gather form and in the einsums of Algorithm 2, from equal parameters (equal paths),
// with options, in training; rules of capacity of other systems; what NaN does.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/program/program.h"

namespace gshard::testing::moe {
namespace {

std::string programOf(const std::string& layer, const std::string& options, const std::string& live) {
  return "import moe\n"
         "import optim\n"
         "mesh [d: 2]\n"
         "let net = moe." +
         layer + "(6, 10, 5, " + options +
         ")\n"
         "entry fn loss(x: real[4, 12, 6] @split(0, d), target: real[4, 12, 6] @split(0, d), live: bool[4, 12]) -> "
         "real {\n"
         "    let (y, aux) = net(x" +
         live +
         ")\n"
         "    return mean((y - target) ** 2) + 0.01 * cast(aux, real) + 0.0 * mean(cast(live, real))\n"
         "}\n"
         "train loss with optim.adam(lr: 1e-2)\n";
}

std::vector<double> losses(const Scratch& scratch, const std::string& program, std::int64_t devices,
                           const Words& more = {}) {
  Words options = {"-w", "--devices", std::to_string(devices)};
  options.insert(options.end(), more.begin(), more.end());
  const Binary binary = compile(scratch, scratch.write("layer.gsd", program), "layer", devices, options);
  const std::string metrics = scratch.file("m.jsonl");
  const Outcome outcome = binary({"train", "-q", "--steps", "6", "--metrics", metrics, "--verify-plan"});
  EXPECT_EQ(outcome.code, 0) << outcome.all();
  return outcome.code == 0 ? lossesOf(metrics) : std::vector<double>(6, 0);
}

TEST(MoeLayer, BothFormsTrainAlike) {
  const Scratch scratch;
  struct {
    const char* options;
    const char* live;
  } const cases[] = {{"capacity_factor: 2.0", ""},  // the paper's: random second choices
                     {"capacity_factor: 1.0, k: 1, normalise: \"none\", aux: \"balanced\"", ", live: live"},
                     {"slots: 3, k: 3, rest: \"all\", normalise: \"after_drop\"", ""},
                     {"rest: \"threshold\", threshold: 0.4, aux: \"balanced\"", ", live: live"},
                     {"rest: \"none\"", ""}};
  for (const auto& [options, live] : cases) {
    SCOPED_TRACE(options);
    const std::vector<double> first =
        losses(scratch, programOf("MoeFeedForward", options, live), 1, {"-D", "real=f64"});
    EXPECT_LT(first.back(), first.front());
    for (const auto& [layer, devices] :
         {std::pair("MoeFeedForwardDense", 1), {"MoeFeedForward", 3}, {"MoeFeedForwardDense", 3}}) {
      const std::vector<double> other = losses(scratch, programOf(layer, options, live), devices, {"-D", "real=f64"});
      ASSERT_EQ(other.size(), first.size());
      for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_NEAR(other[i], first[i], 1e-11) << layer << " on " << devices << ", step " << i;
    }
  }
}

// The router is wide, what travels and what the experts compute is short.
TEST(MoeLayer, Bf16) {
  const Scratch scratch;
  const std::string program = programOf("MoeFeedForward", "rest: \"all\"", "");
  const std::vector<double> wide = losses(scratch, program, 2),
                            narrow = losses(scratch, program, 2, {"-D", "real=bf16"});
  for (std::size_t i = 0; i < wide.size(); ++i) EXPECT_NEAR(narrow[i], wide[i], 0.03 * wide[i]);
}

// The table of moe.md section 2: ours, Lingvo 2.0, Mesh 1.25, flaxformer 2.0, DeepSpeed 1.0 for two choices.
TEST(MoeLayer, CapacityRules) {
  const Scratch scratch;
  std::string list;
  std::vector<double> expected;
  const auto add = [&](const std::string& call, double slots) {
    list += (list.empty() ? "" : ", ") + ("full([1], moe.capacity(" + call + "), dtype: i32)");
    expected.push_back(slots);
  };
  const std::pair<int, int> sizes[] = {{10, 4}, {256, 8}, {1000, 48}, {1024, 512}};
  const double ours[] = {5, 64, 42, 4}, lingvo[] = {8, 64, 44, 4}, mesh[] = {4, 40, 26, 4},
               flaxformer[] = {5, 64, 42, 4};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string of = std::to_string(sizes[i].first) + ", " + std::to_string(sizes[i].second);
    add("2.0, " + of, ours[i]);
    add("2.0, " + of + ", rounding: \"down\", least: 4, multiple: 4", lingvo[i]);
    add("1.25, " + of + ", rounding: \"down\", least: 4", mesh[i]);
    add("2.0, " + of + ", rounding: \"nearest\", least: 4", flaxformer[i]);
  }
  add("0.001, 10, 4", 1);
  add("1.1, 10, 1", 11);  // 11.000000000000002 in floats
  const std::string count = std::to_string(expected.size());
  const Binary binary = compile(scratch,
                                scratch.write("capacity.gsd", "import moe\nentry fn t() -> i32[" + count +
                                                                  "] { return concat([" + list + "], axis: 0) }\n"),
                                "capacity", 1, {"-w"});
  const Outcome outcome = binary({"t", "-q", "-o", scratch.file("out.npz")});
  ASSERT_EQ(outcome.code, 0) << outcome.all();
  EXPECT_EQ(numbersOf(scratch.file("out.npz")).at("result").values, expected);
}

// Without --check-numerics a NaN passes through (tests/run/moe_nan_and_infinity.gsd); with it the run ends, and says
// where.
TEST(MoeLayer, NanIsFoundByCheckNumerics) {
  const Scratch scratch;
  const std::string source =
      scratch.write("nan.gsd",
                    "mesh [d: 2]\n"
                    "entry fn t(logits: f32[4, 3, 2] @split(0, d), x: f32[4, 3, 1]) -> f32[4, 3, 1] {\n"
                    "    let routes = top2_gating(softmax(logits - 1.0), capacity: 2)\n"
                    "    return moe_combine(moe_dispatch(x, routes) @split(0, d), routes)\n"
                    "}\n");
  std::vector<double> logits(24, 0.5);
  logits[13] = std::numeric_limits<double>::quiet_NaN();
  const std::string file = writeNumbers(scratch.file("logits.npy"), {{4, 3, 2}, logits});
  const std::string x = writeNumbers(scratch.file("x.npy"), {{4, 3, 1}, std::vector<double>(12, 1)});
  for (const std::int64_t devices : {1, 2, 3, 4}) {
    const Binary binary = compile(scratch, source, "nan", devices, {"-w", "--devices", std::to_string(devices)});
    const Words words = {"t", "-q", "--input", "logits=" + file, "--input", "x=" + x};
    EXPECT_EQ(binary(words).code, 0);
    Words checked = words;
    checked.push_back("--check-numerics");
    const Outcome outcome = binary(checked);
    EXPECT_EQ(outcome.code, 1) << outcome.all();
    EXPECT_NE(outcome.err.find("nan"), std::string::npos) << outcome.all();
  }
}

}  // namespace
}  // namespace gshard::testing::moe
