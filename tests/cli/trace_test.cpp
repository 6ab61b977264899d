// --trace, --profile and --check-numerics on real programs: the trace's bytes are the plan's, every device lists the
// same calls (X5 of cases.md), tracks do not overlap; a NaN is told with op, line and device.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

using Json = nlohmann::json;

class Traces : public ::testing::TestWithParam<Transport> {
 protected:
  static constexpr std::int64_t kSteps = 3;
  Binary compiled(const std::string& source, const std::string& name, std::int64_t devices, Words options) {
    options.push_back("-w");
    return compile(scratch_, GSHARD_SOURCE_DIR + source, name, devices, options, GetParam());
  }
  static Json info(const Binary& binary) {
    Binary local = binary;
    local.transport = Transport::Local;
    return Json::parse(local({"info", "--json"}).out);
  }
  Json traceOf(const Binary& binary, Words command, int code = 0) {
    const std::string file = scratch_.file("trace.json");
    command.insert(command.end(), {"-q", "--trace", file});
    const Outcome outcome = binary(command);
    EXPECT_EQ(outcome.code, code) << outcome.all();
    EXPECT_FALSE(std::filesystem::exists(file + ".device0")) << "a part is left";
    return Json::parse(readFile(file), nullptr, false);
  }
  Scratch scratch_;
};

struct PlanBytes {
  std::map<std::int64_t, std::int64_t> perDevice;
  std::int64_t calls = 0;
};

// Received bytes by plan entry; each entry is in each step of the training once.
void expectPlannedBytes(const Json& trace, const Json& info, std::int64_t steps) {
  std::map<std::int64_t, PlanBytes> byPlan;
  for (const Json& event : trace) {
    if (event["ph"] != "X" || event["tid"] != 1) continue;
    const Json& args = event["args"];
    ASSERT_TRUE(args.contains("plan")) << event.dump();
    const Json& planned = info["collectives"][args["plan"].get<std::size_t>()];
    EXPECT_EQ(args["kind"], planned["kind"]);
    EXPECT_EQ(args["axes"], planned["axes"]);
    EXPECT_EQ(args["line"], planned["location"]);
    EXPECT_EQ(args["planned_bytes"], planned["bytes_max"]);
    PlanBytes& bytes = byPlan[args["plan"].get<std::int64_t>()];
    bytes.perDevice[event["pid"].get<std::int64_t>()] += args["bytes"].get<std::int64_t>();
    ++bytes.calls;
  }
  std::size_t trained = 0;
  for (std::size_t plan = 0; plan < info["collectives"].size(); ++plan) {
    const Json& planned = info["collectives"][plan];
    if (planned["function"] != "loss" && planned["function"] != "init") continue;
    trained += planned["function"] == "loss" ? 1 : 0;
    const std::int64_t times = planned["function"] == "loss" ? steps : 1;
    ASSERT_TRUE(byPlan.contains(static_cast<std::int64_t>(plan))) << planned.dump();
    const PlanBytes& bytes = byPlan.at(static_cast<std::int64_t>(plan));
    std::int64_t most = 0, total = 0;
    for (const auto& [device, received] : bytes.perDevice) {
      most = std::max(most, received);
      total += received;
    }
    EXPECT_EQ(bytes.calls, times * info["devices"].get<std::int64_t>());
    EXPECT_EQ(most, times * planned["bytes_max"].get<std::int64_t>()) << planned.dump();
    EXPECT_EQ(total, times * planned["bytes_total"].get<std::int64_t>()) << planned.dump();
  }
  EXPECT_GT(trained, 0u) << "a program without collectives shows nothing here";
}

// X5: the lists of (kind, group, bytes, id) are equal within each group, and ids are unique.
void expectOneOrder(const Json& trace, std::int64_t devices) {
  std::map<std::int64_t, std::map<std::int64_t, std::string>> lists;
  for (const Json& event : trace) {
    if (event["ph"] != "X" || event["tid"] != 1) continue;
    const Json& args = event["args"];
    ASSERT_TRUE(args.contains("kind")) << event.dump();
    const std::string call = args["kind"].dump() + args["group"].dump() + args["planned_bytes"].dump();
    const auto [entry, isNew] = lists[event["pid"].get<std::int64_t>()].emplace(args["id"].get<std::int64_t>(), call);
    EXPECT_TRUE(isNew) << "id " << entry->first << " twice";
    for (const Json& member : args["group"]) EXPECT_LT(member.get<std::int64_t>(), devices);
  }
  ASSERT_EQ(static_cast<std::int64_t>(lists.size()), devices);
  for (const auto& [device, list] : lists) {
    for (const auto& [id, call] : list) {
      const Json group = Json::parse(call.substr(call.find('['), call.find(']') - call.find('[') + 1));
      for (const Json& member : group) EXPECT_EQ(lists.at(member.get<std::int64_t>()).at(id), call);
    }
  }
}

void expectTracks(const Json& trace, std::int64_t devices) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<double, double>>> tracks;
  std::set<std::string> names;
  for (const Json& event : trace) {
    if (event["ph"] == "M") {
      names.insert(event["args"]["name"].get<std::string>());
      continue;
    }
    if (event["ph"] == "C") continue;  // reports_test.cpp
    EXPECT_EQ(event["ph"], "X");
    tracks[{event["pid"].get<std::int64_t>(), event["tid"].get<std::int64_t>()}].emplace_back(
        event["ts"].get<double>(), event["dur"].get<double>());
    if (event["tid"] != 2 && event["name"] != "copy") {
      EXPECT_TRUE(std::regex_match(event["args"]["line"].get<std::string>(), std::regex(".*[.]gsd:[0-9]+:[0-9]+")))
          << event.dump();
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(tracks.size()), 3 * devices) << "compute, communication, input and output";
  for (const char* name : {"device 0", "compute", "communication", "input and output"})
    EXPECT_TRUE(names.contains(name));
  for (auto& [track, spans] : tracks) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i)
      EXPECT_LE(spans[i - 1].first + spans[i - 1].second, spans[i].first + 0.002) << "times are written to 1 ns";
  }
}

TEST_P(Traces, X5_BytesAreThePlansAndListsAreEqual) {
  struct Case {
    std::string source, mesh;
    std::int64_t devices;
  };
  for (const Case& each :
       {Case{"/examples/digits_mlp.gsd", "data=2,model=2", 4}, Case{"/examples/digits_mlp.gsd", "data=3,model=1", 3},
        Case{"/tests/cli/rows.gsd", "d=4", 4}}) {
    SCOPED_TRACE(each.source + " on " + each.mesh);
    const Binary binary = compiled(each.source, "traced", each.devices, {"--mesh", each.mesh});
    const Json trace = traceOf(binary, {"train", "--steps", std::to_string(kSteps)});
    ASSERT_TRUE(trace.is_array());
    expectPlannedBytes(trace, info(binary), kSteps);
    expectOneOrder(trace, each.devices);
    expectTracks(trace, each.devices);
  }
}

TEST_P(Traces, AFailedRunLeavesItsTrace) {
  const Binary binary = compiled("/tests/cli/rows.gsd", "failing", 3, {"--devices", "3"});
  const std::string input = writeNumbers(scratch_.file("wrong.npy"), {{3}, {0, 9, 1}});
  Binary local = binary;
  local.transport = Transport::Local;  // under mpirun each rank leaves its own part
  const Json trace = traceOf(local, {"lookup", "--input", "i=" + input}, 1);
  ASSERT_TRUE(trace.is_array());
  std::set<std::int64_t> devices;
  for (const Json& event : trace) {
    if (event["ph"] == "X" && event["tid"] == 0) devices.insert(event["pid"].get<std::int64_t>());
  }
  EXPECT_EQ(devices.size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(OnThreads, Traces, ::testing::Values(Transport::Local));
INSTANTIATE_TEST_SUITE_P(UnderMpi, Traces, ::testing::Values(Transport::Mpi));

// What a NaN or an infinity comes from: an op in the middle of a program, in each of the places it can be.
constexpr const char* kNumerics =
    "mesh [d: 2]\n"
    "entry fn logs(x: f32[4, 3] @split(0, d)) -> f32 {\n"
    "    let safe = x + 1.0\n"
    "    let bad = log(x)\n"
    "    return sum(safe * bad)\n"
    "}\n"
    "entry fn quotients(x: f32[4, 3], y: f32[4, 3] @split(1, d)) -> f32[4, 3] { return x / y }\n"
    "entry fn masked(x: f32[2, 3] @split(0, d)) -> f32[2, 3] {\n"
    "    let scores = where(iota([2, 3], axis: 1) < 2, x, -inf)\n"
    "    return softmax(scores) * exp(x)\n"
    "}\n"
    "entry fn grows(x: f16[4] @split(0, d)) -> f16[4] { return x * x }\n";

class Numerics : public ::testing::Test {
 protected:
  Outcome run(std::int64_t devices, const Words& command, const Words& options = {}) {
    const std::string source = scratch_.write("numerics.gsd", kNumerics);
    Words all = options;
    all.insert(all.end(), {"-w", "--devices", std::to_string(devices)});
    const Binary binary = compile(scratch_, source, "numerics", devices, all);
    return binary(command);
  }
  std::string input(const std::string& name, const Numbers& numbers) {
    return name + "=" + writeNumbers(scratch_.file(name + ".npy"), numbers);
  }
  Scratch scratch_;
};

TEST_F(Numerics, NamesOpLineAndDevice) {
  const std::string x = input("x", {{4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, -1}});
  for (const std::int64_t devices : {1, 2, 4}) {
    SCOPED_TRACE(devices);
    EXPECT_EQ(run(devices, {"logs", "-q", "--input", x}).code, 0) << "nobody asked";
    // Without fusion every op is a step of its own, so the very op is named: log of 0 is met before log of -1.
    const Outcome outcome = run(devices, {"logs", "-q", "--check-numerics", "--input", x}, {"-O0"});
    EXPECT_EQ(outcome.code, 1) << outcome.all();
    EXPECT_NE(outcome.err.find("numerics.gsd:4:15: log `bad` is -inf at element 8 of the result [E0759]"),
              std::string::npos)
        << outcome.all();
    const std::string device = std::to_string(devices == 1 ? 0 : devices == 2 ? 1 : 2);
    EXPECT_NE(outcome.err.find("note: found on device " + device), std::string::npos) << outcome.all();
    // Fused, it is the op whose result is kept.
    EXPECT_EQ(run(devices, {"logs", "-q", "--check-numerics", "--input", x}).code, 1);
  }
}

TEST_F(Numerics, ColumnsSixteenBitsAndInputs) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string ones = input("x", {{4, 3}, std::vector<double>(12, 1)});
  const std::string zeros = input("y", {{4, 3}, {1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1}});
  const Outcome quotients = run(2, {"quotients", "-q", "--check-numerics", "--input", ones, "--input", zeros});
  EXPECT_NE(quotients.err.find("numerics.gsd:7:83: div is inf at element 5 of the result"), std::string::npos)
      << quotients.all();
  const Outcome fine = run(2, {"quotients", "-q", "--check-numerics", "--input", ones, "--input",
                               input("y", {{4, 3}, std::vector<double>(12, 2)})});
  EXPECT_EQ(fine.code, 0) << fine.all();
  EXPECT_EQ(fine.out, "0.5 0.5 0.5\n0.5 0.5 0.5\n0.5 0.5 0.5\n0.5 0.5 0.5\n");
  const Outcome grows = run(2, {"grows", "-q", "--check-numerics", "--input", input("x", {{4}, {1, 2, 3, 300}})});
  EXPECT_NE(grows.err.find("is inf at element 3 of the result"), std::string::npos) << grows.all();
  const Outcome given = run(2, {"grows", "-q", "--check-numerics", "--input", input("x", {{4}, {1, 2, nan, 300}})});
  EXPECT_NE(given.err.find("input `x` of `grows` is nan at element 2 [E0760]"), std::string::npos) << given.all();
}

// A mask of -inf is meant; what is not meant is found behind it all the same.
TEST_F(Numerics, WrittenInfinitiesAreNoFinds) {
  for (const char* level : {"-O0", "-O3"}) {
    SCOPED_TRACE(level);
    const auto masked = [&](double last) {
      const std::string x = input("x", {{2, 3}, {1, 2, 3, 4, 5, last}});
      return run(2, {"masked", "-q", "--check-numerics", "--input", x}, {level});
    };
    const Outcome good = masked(6), bad = masked(1000);
    EXPECT_EQ(good.code, 0) << good.all();
    EXPECT_EQ(bad.code, 1) << bad.all();
    EXPECT_TRUE(std::regex_search(bad.err, std::regex("(exp|mul) is (inf|nan) at element 5 of the result")))
        << bad.all();
  }
}

// Three equal layers are one line of the program, and one of the report.
TEST(Profile, LayersShareTheLinesOfTheirSource) {
  const Scratch scratch;
  const std::string source = scratch.write("deep.gsd",
                                           "mesh [d: 2]\n"
                                           "entry fn deep(x: f32[8, 8] @split(0, d), w: f32[3, 8, 8]) -> f32[8, 8] {\n"
                                           "    let h = x\n"
                                           "    for i in 0..3 {\n"
                                           "        h = einsum(\"ij,jk->ik\", h, w[i])\n"
                                           "    }\n"
                                           "    return h\n"
                                           "}\n");
  const Binary binary = compile(scratch, source, "deep", 2, {"-w"});
  const Outcome outcome = binary({"deep", "--profile", "-o", scratch.file("h.npy")});
  ASSERT_EQ(outcome.code, 0) << outcome.all();
  const std::regex layers("[0-9.]+ ms +[0-9.]+ %  [a-z]+  [^\n]*deep.gsd:5:13  contract `h` \\(3 steps\\)\n");
  EXPECT_TRUE(std::regex_search(outcome.err, layers)) << outcome.all();
  std::set<std::string> lines;
  const std::regex line("[0-9.]+ ms +[0-9.]+ %  ([a-z]+  [^ ]+  [a-z_]+)");
  for (std::sregex_iterator at(outcome.err.begin(), outcome.err.end(), line), end; at != end; ++at)
    EXPECT_TRUE(lines.insert((*at)[1]).second) << (*at)[1] << " is there twice\n" << outcome.all();
  EXPECT_FALSE(lines.empty());
}

}  // namespace
}  // namespace gshard::testing
