// The plan of the paper: a layer is two all_to_all forward and two backward, of as many bytes as it says, on any mesh;
// nothing gathers tokens, masks or experts; statistics cost no collective. 2048 devices: tests/plans.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace gshard::testing::moe {
namespace {

using Json = nlohmann::json;

Json planOf(const Scratch& scratch, Words words) {
  const std::string file = scratch.file("plan.json");
  words.insert(words.end(), {"-w", "--emit=comm-plan=" + file});
  const Outcome outcome = gshardc(words);
  EXPECT_EQ(outcome.code, 0) << outcome.all();
  return outcome.code == 0 ? Json::parse(readFile(file)) : Json();
}

Json functionOf(const Json& plan, const std::string& name) {
  for (const Json& function : plan["functions"]) {
    if (function["name"] == name) return function;
  }
  ADD_FAILURE() << "no function " << name;
  return {};
}

std::string shown(const Json& function) {
  std::string text;
  for (const Json& each : function["collectives"])
    text += each["kind"].get<std::string>() + " over " + each["axes"].dump() + " " + each["phase"].get<std::string>() +
            " " + each["bytes"]["max"].dump() + " bytes " + each["source"].get<std::string>() + ": " +
            each["value"].get<std::string>() + "\n";
  return text;
}

std::int64_t count(const Json& function, const std::string& kind, const std::string& phase) {
  std::int64_t found = 0;
  for (const Json& each : function["collectives"]) found += each["kind"] == kind && each["phase"] == phase ? 1 : 0;
  return found;
}

Words defines(std::int64_t G, std::int64_t S, std::int64_t M, std::int64_t H, std::int64_t E) {
  Words words;
  for (const auto& [name, value] : {std::pair("G", G), {"S", S}, {"M", M}, {"H", H}, {"E", E}})
    words.insert(words.end(), {"-D", std::string(name) + "=" + std::to_string(value)});
  return words;
}

// A layer whose input has a gradient, as inside a network. In moe_layer.gsd nobody asks for it, and the fourth
// all_to_all is not there.
constexpr const char* kInside =
    "import moe\n"
    "import optim\n"
    "const G = 4\n"
    "const S = 4\n"
    "const M = 4\n"
    "const H = 4\n"
    "const E = 4\n"
    "mesh [d: 2]\n"
    "model Net() {\n"
    "    param scale: real[M] = ones()\n"
    "    let layer = moe.MoeFeedForward(M, H, E, rest: \"all\")\n"
    "    fn call(x: real[G, S, M]) { return layer(x * scale) }\n"
    "}\n"
    "let net = Net()\n"
    "entry fn loss(x: real[G, S, M] @split(0, d), target: real[G, S, M] @split(0, d)) -> real {\n"
    "    let (y, aux) = net(x)\n"
    "    return mean((x + y - target) ** 2) + 0.01 * aux\n"
    "}\n"
    "train loss with optim.adam(lr: 1e-3)\n";

const std::string kLayer = GSHARD_SOURCE_DIR "/examples/moe_layer.gsd";

TEST(MoePlans, TwoEachWayOnAnyNumberOfDevices) {
  const Scratch scratch;
  const std::string inside = scratch.write("inside.gsd", kInside);
  struct Sizes {
    std::int64_t devices, G, S, M, H, E;
  };
  // E below, at and above D; G, E and C that D does not divide (E * C <= D * S with factor 2 from two devices on).
  for (const Sizes& z : {Sizes{2, 4, 1024, 256, 1024, 8}, Sizes{4, 4, 1024, 256, 1024, 8}, Sizes{4, 4, 64, 16, 32, 4},
                         Sizes{4, 4, 64, 16, 32, 2}, Sizes{3, 6, 60, 16, 32, 6}, Sizes{3, 4, 50, 16, 32, 8},
                         Sizes{2, 3, 50, 16, 32, 5}, Sizes{4, 2, 51, 16, 32, 6}}) {
    Words words = {inside, "--devices", std::to_string(z.devices)};
    const Words sizes = defines(z.G, z.S, z.M, z.H, z.E);
    words.insert(words.end(), sizes.begin(), sizes.end());
    const Json loss = functionOf(planOf(scratch, words), "loss");
    SCOPED_TRACE(std::to_string(z.devices) + " devices, E " + std::to_string(z.E) + "\n" + shown(loss));
    // What is uneven travels as an exchange, which is an all_to_all of unequal parts.
    std::int64_t moves[2] = {0, 0};
    for (const Json& each : loss["collectives"]) {
      const std::string kind = each["kind"];
      EXPECT_TRUE(kind == "all_to_all" || kind == "exchange" || kind == "all_reduce") << kind;
      EXPECT_NE(each["phase"], "update") << kind;
      EXPECT_NE(each["source"].get<std::string>().find(".gsd:"), std::string::npos);
      if (kind == "all_reduce") {
        // The loss, its auxiliary part and statistics; and the gradients of the router and the scale.
        const std::int64_t elements = z.M * (z.E + 1) + z.E + 8;
        EXPECT_LE(each["bytes"]["max"].get<std::int64_t>(), 2 * 4 * elements) << each;
      } else {
        ++moves[each["phase"] == "forward" ? 0 : 1];
      }
    }
    EXPECT_EQ(moves[0], 2);
    EXPECT_EQ(moves[1], 2);
    if (z.G % z.devices != 0 || z.E % z.devices != 0) continue;
    EXPECT_EQ(count(loss, "all_to_all", "forward"), 2);
    EXPECT_EQ(count(loss, "all_to_all", "backward"), 2);
    const std::int64_t C = (2 * z.S + z.E - 1) / z.E, D = z.devices;
    for (const Json& each : loss["collectives"]) {
      if (each["kind"] != "all_to_all") continue;
      EXPECT_EQ(each["bytes"]["max"], 4 * z.E * z.G * C * z.M / (D * D) * (D - 1)) << each;
    }
  }
}

TEST(MoePlans, ExpertsOverOneAxisTheirInsideOverAnother) {
  const Scratch scratch;
  const Json loss =
      functionOf(planOf(scratch, {kLayer, "--layout", GSHARD_SOURCE_DIR "/examples/layouts/moe/both.gsd"}), "loss");
  SCOPED_TRACE(shown(loss));
  for (const Json& each : loss["collectives"]) {
    const std::string kind = each["kind"];
    EXPECT_TRUE(kind == "all_to_all" || kind == "all_reduce") << each;
    if (kind == "all_to_all") {
      EXPECT_EQ(each["axes"], Json::array({"experts"})) << each;
    }
  }
  EXPECT_EQ(count(loss, "all_to_all", "forward"), 2);
  EXPECT_EQ(count(loss, "all_to_all", "backward"), 1) << "nobody asks for the gradient of x";
}

// Experts whole everywhere: nothing is dispatched to others, the gradients are summed.
TEST(MoePlans, DataParallelSendsNoTokens) {
  const Scratch scratch;
  const Json loss =
      functionOf(planOf(scratch, {kLayer, "--layout", GSHARD_SOURCE_DIR "/examples/layouts/moe/data.gsd"}), "loss");
  SCOPED_TRACE(shown(loss));
  for (const Json& each : loss["collectives"]) EXPECT_EQ(each["kind"], "all_reduce");
}

// The layer without its reports has as many collectives: a file beside the program hides the one of the standard
// library.
TEST(MoePlans, StatisticsCostNoCollective) {
  const Scratch scratch;
  std::istringstream lines(readFile(GSHARD_SOURCE_DIR "/stdlib/moe.gsd"));
  std::string silent;
  std::int64_t reports = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool isReport = line.find(" report ") != std::string::npos;
    reports += isReport ? 1 : 0;
    if (!isReport) silent += line + "\n";
  }
  EXPECT_GE(reports, 4);
  scratch.write("moe.gsd", silent);
  const std::string copy = scratch.write("layer.gsd", readFile(kLayer));
  for (const char* devices : {"2", "3", "4"}) {
    const Json with = functionOf(planOf(scratch, {kLayer, "--devices", devices}), "loss");
    const Json without = functionOf(planOf(scratch, {copy, "--devices", devices}), "loss");
    EXPECT_EQ(with["collectives"].size(), without["collectives"].size()) << shown(with) << "without\n"
                                                                         << shown(without);
  }
}

// X6: a capacity that does not fit is told before the run: which buffer, of what shape, how many bytes.
TEST(MoePlans, TooMuchCapacityIsToldWithItsBuffer) {
  const Scratch scratch;
  const Outcome outcome = gshardc({kLayer, "-w", "--devices", "2", "-D", "capacity_factor=16384.0", "--mem-limit",
                                   "1GiB", "-o", scratch.file("never")});
  EXPECT_EQ(outcome.code, 1) << outcome.all();
  EXPECT_NE(outcome.err.find("`moe_dispatch`: f32[8@d, 4, 2097152, 256] takes 32 GiB"), std::string::npos)
      << outcome.all();
}

}  // namespace
}  // namespace gshard::testing::moe
