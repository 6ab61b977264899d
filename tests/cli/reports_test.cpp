// Reports of numbers and of vectors: in the metrics, in what eval prints and logs, in the trace; the same on any number
// of devices, and without a collective of their own where they are sums.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

using Json = nlohmann::json;

// Rows of each of 12 classes: the vector is counted over a split dim. `longest` is no sum.
constexpr const char* kProgram =
    "import optim\n"
    "const batch = 10\n"
    "mesh [d: 2]\n"
    "model Net() {\n"
    "    param w: f32[3] = zeros()\n"
    "    fn call[B](x: f32[B, 3], y: i32[B]) -> f32[B] {\n"
    "        REPORTS\n"
    "        return sum(x * w, axis: 1)\n"
    "    }\n"
    "}\n"
    "let net = Net()\n"
    "entry fn loss(x: f32[batch, 3] @split(0, d), y: i32[batch] @split(0, d)) -> f32 {\n"
    "    let miss = net(x, y) - 1.0\n"
    "    return sum(miss * miss)\n"
    "}\n"
    "train loss with optim.sgd(lr: 0.01)\n";
constexpr const char* kReports =
    "report load = sum(one_hot(y, 12, dtype: f32), axis: 0)\n        report seen = sum(cast(y, f32))\n";

std::string program(const std::string& reports) {
  std::string text = kProgram;
  return text.replace(text.find("REPORTS"), 7, reports);
}

std::vector<Json> linesOf(const std::string& file) {
  std::vector<Json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

class Reports : public ::testing::Test {
 protected:
  Binary on(std::int64_t devices, const std::string& reports = kReports) {
    const Words options = {"-w", "--devices", std::to_string(devices)};
    const std::string source = scratch_.write("reports.gsd", program(reports));
    return compile(scratch_, source, "reports" + std::to_string(devices), devices, options);
  }
  Words with(Words words) {
    words.insert(
        words.end(),
        {"--input", "x=" + writeNumbers(scratch_.file("x.npy"), {{13, 3}, std::vector<double>(39, 0.5)}), "--input",
         "y=" + writeNumbers(scratch_.file("y.npy"), {{13}, {0, 1, 1, 2, 2, 2, 11, 4, 4, 4, 4, 0, 5}})});
    return words;
  }
  Scratch scratch_;
};

const Json kLoad = {2, 2, 3, 0, 4, 1, 0, 0, 0, 0, 0, 1};

TEST_F(Reports, VectorsAreListsAndTheSameOnAnyNumberOfDevices) {
  for (const std::int64_t devices : {1, 2, 3, 4}) {
    SCOPED_TRACE(devices);
    const Binary binary = on(devices);
    const std::string file = scratch_.file("m.jsonl");
    const Outcome outcome = binary(
        with({"train", "--steps", "2", "--eval-every", "2", "--progress", "none", "--metrics", file, "--verify-plan"}));
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    const std::vector<Json> lines = linesOf(file);
    for (const Json& line : lines) {
      if (line.value("set", "") == "train") {
        ASSERT_TRUE(line["net.load"].is_array()) << line.dump();
        EXPECT_EQ(line["net.load"].size(), 12u);
        double rows = 0;
        for (const Json& number : line["net.load"]) rows += number.get<double>();
        EXPECT_EQ(rows, 10);
        EXPECT_TRUE(line["net.seen"].is_number());
      } else if (line.value("set", "") == "eval") {
        EXPECT_EQ(line["net.load"], kLoad) << "13 rows, the last batch has 3";
        EXPECT_EQ(line["net.seen"], 40);
      }
    }
    ASSERT_EQ(lines.size(), 4u) << "run, two steps, an evaluation";
    // A log line is short, standard output whole.
    EXPECT_NE(outcome.err.find("net.load 2 2 3 0 4 1 0 … (12, largest 4), net.seen 40"), std::string::npos)
        << outcome.all();
    EXPECT_NE(binary(with({"eval", "-q"})).out.find("net.load 2 2 3 0 4 1 0 0 0 0 0 1\n"), std::string::npos);
  }
}

std::size_t collectives(const Binary& binary) {
  const Json info = Json::parse(binary({"info", "--json"}).out);
  std::size_t count = 0;
  for (const Json& each : info["collectives"]) count += each["function"] == "loss" ? 1 : 0;
  return count;
}

TEST_F(Reports, SumsTravelWithTheLoss) {
  const std::size_t without = collectives(on(4, ""));
  EXPECT_EQ(without, 1u);
  EXPECT_EQ(collectives(on(4)), without);
}

// What is split is gathered by a collective of the plan, not behind its back.
TEST_F(Reports, ASplitVectorIsGatheredByThePlan) {
  const std::string split = "report scores = sum(x * x, axis: 1)\n";
  for (const std::int64_t devices : {3, 4}) {
    const std::size_t others = collectives(on(devices, ""));  // before: each compiles to one file
    const Binary binary = on(devices, "if training { " + split + "}");
    EXPECT_EQ(collectives(binary), others + 1);
    const std::string file = scratch_.file("m.jsonl");
    const Outcome outcome = binary(with({"train", "-q", "--steps", "1", "--metrics", file, "--verify-plan"}));
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    EXPECT_EQ(linesOf(file)[1]["net.scores"], Json(std::vector<double>(10, 0.75)));
  }
  const Outcome eval = gshardc({"check", scratch_.write("rows.gsd", program(split))});
  EXPECT_EQ(eval.code, 1) << eval.all();
  EXPECT_NE(
      eval.err.find("error[E0343]: result `net.scores` has one value per row, but they are taken in blocks of 10"),
      std::string::npos)
      << eval.all();
}

TEST_F(Reports, TracesHaveCounters) {
  const std::string file = scratch_.file("trace.json");
  const Outcome outcome = on(2)(with({"train", "-q", "--steps", "3", "--trace", file}));
  ASSERT_EQ(outcome.code, 0) << outcome.all();
  std::map<std::string, std::vector<Json>> counters;
  for (const Json& event : Json::parse(readFile(file))) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["pid"], 0) << "one device tells it";
    counters[event["name"]].push_back(event["args"]);
  }
  ASSERT_EQ(counters.size(), 3u);
  for (const auto& [name, events] : counters) EXPECT_EQ(events.size(), 3u) << name;
  EXPECT_EQ(counters["net.load"][0].size(), 12u);
  EXPECT_TRUE(counters["net.load"][0].contains("11"));
  EXPECT_TRUE(counters["loss"][2].contains("loss"));
}

}  // namespace
}  // namespace gshard::testing
