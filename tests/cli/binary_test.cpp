// The command line of a produced binary: exit codes and what it says, rows in any number, eval of a short last batch,
// checkpoints that move between device counts. All on tests/cli/rows.gsd, compiled for 1, 2, 3 and 4 devices once,
// which is why they are in one file of more than 400 lines.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>

#include "runtime/array.h"
#include "tests/program/program.h"

namespace gshard::testing {
namespace {

constexpr double kTolerance = 2e-6;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A table of well-spread numbers in [-1, 1), the same in every run.
Numbers spread(std::vector<std::int64_t> shape, double offset) {
  Numbers numbers{std::move(shape), {}};
  std::int64_t count = 1;
  for (const std::int64_t size : numbers.shape) count *= size;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.values.push_back(2 * std::fmod(static_cast<double>(i) * 0.6180339887 + offset, 1.0) - 1);
  return numbers;
}

Numbers labels(std::int64_t count) {
  Numbers numbers{{count}, {}};
  for (std::int64_t i = 0; i < count; ++i) numbers.values.push_back(static_cast<double>(i * i % 3));
  return numbers;
}

Numbers firstRows(const Numbers& all, std::int64_t count) {
  Numbers part = all;
  const std::size_t perRow = all.values.size() / static_cast<std::size_t>(all.shape[0]);
  part.shape[0] = count;
  part.values.resize(static_cast<std::size_t>(count) * perRow);
  return part;
}

class BinaryTest : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    scratch_ = new Scratch;
    for (std::int64_t devices = 1; devices <= 4; ++devices) {
      const std::string name = "rows" + std::to_string(devices);
      binaries_.push_back(compile(*scratch_, GSHARD_SOURCE_DIR "/tests/cli/rows.gsd", name, devices,
                                  {"-w", "--devices", std::to_string(devices)}));
    }
    writeNumbers(file("x.npy"), spread({16, 5}, 0.3));
    writeNumbers(file("y.npy"), labels(16));
  }
  static void TearDownTestSuite() {
    delete scratch_;
    binaries_.clear();
  }

 protected:
  static std::string file(const std::string& name) { return scratch_->file(name); }
  static const Binary& on(std::int64_t devices) { return binaries_[static_cast<std::size_t>(devices - 1)]; }
  static Binary underMpi(std::int64_t devices) {
    Binary binary = on(devices);
    binary.transport = Transport::Mpi;
    return binary;
  }
  static Words data() { return {"--input", "x=" + file("x.npy"), "--input", "y=" + file("y.npy")}; }
  static Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static void expectEnd(const Outcome& outcome, int code, const Words& said = {}) {
    EXPECT_EQ(outcome.code, code) << outcome.all();
    for (const std::string& part : said)
      EXPECT_TRUE(has(outcome.err, part)) << "not said: " << part << "\n" << outcome.all();
  }

 private:
  inline static Scratch* scratch_ = nullptr;
  inline static std::vector<Binary> binaries_;
};

using Cli = BinaryTest;

TEST_F(Cli, HelpIsOfThisModel) {
  const Outcome help = on(3)({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* part : {"usage: rows train|eval|info|loss|predict|lookup|quotient", "x: f32[6@d, 5], tile f32[2, 5]",
                           "net.w1: f32[5, 7@d]", "batch: int = 6, needs gshardc -D", "lr", "learning rate"}) {
    EXPECT_TRUE(has(help.out, part)) << part << "\n" << help.out;
  }
  for (const char* option :
       {"--data",       "--input",        "--set",         "--steps",      "--epochs",         "--seed",
        "--init",       "--checkpoint",   "--resume",      "--save-every", "--keep",           "--transport",
        "--eval-every", "--eval-data",    "--eval-input",  "--trace",      "--check-numerics", "--threads",
        "--timeout",    "--output",       "--metrics",     "--progress",   "--log-level",      "--quiet",
        "--json",       "--measure-peak", "--verify-plan", "--help"}) {
    EXPECT_TRUE(has(help.out, option)) << option;
  }
  EXPECT_EQ(on(3)({"predict", "--help"}).code, 0);
  EXPECT_EQ(on(3)({}).code, 2);
}

TEST_F(Cli, Info) {
  const Outcome text = on(4)({"info"});
  EXPECT_EQ(text.code, 0);
  for (const char* part : {"devices     4 = d 4", "net.w1: f32[5, 7@d]", "peak"})
    EXPECT_TRUE(has(text.out, part)) << part << "\n" << text.out;
  const auto info = nlohmann::json::parse(on(4)({"info", "--json"}).out);
  EXPECT_EQ(info["devices"], 4);
  EXPECT_EQ(info["parameters"], 5 * 7 + 7 + 7 * 3);
}

TEST_F(Cli, TwoForUsage) {
  expectEnd(on(2)({"predict", "--ouput", "x"}), 2, {"no option `--ouput`", "did you mean `--output`?"});
  expectEnd(on(2)({"predcit"}), 2, {"no command or entry `predcit`", "did you mean `predict`?"});
  expectEnd(on(2)({"predict", "--input", "z=" + file("x.npy")}), 2, {"no input `z`", "`x`"});
  expectEnd(on(2)({"predict", "extra"}), 2, {"`extra`"});
  expectEnd(on(2)({"train", "--steps", "many"}), 2, {"`--steps` is `many`"});
  expectEnd(on(2)({"train", "--steps"}), 2, {"needs a value"});
  expectEnd(on(2)({"train", "--epochs", "1"}), 2, {"--epochs"});
  expectEnd(on(2)({"train", "--set", "batch=3"}), 2, {"gshardc -D batch=3"});
  expectEnd(on(2)({"train", "--set", "lt=3"}), 2, {"did you mean `lr`?"});
  expectEnd(on(2)({"train", "--resume", "auto"}), 2, {"--checkpoint"});
}

TEST_F(Cli, ThreeForFiles) {
  expectEnd(on(2)({"predict", "--input", "x=" + file("nowhere.npy")}), 3,
            {"cannot read", "nowhere.npy", "No such file or directory"});
  expectEnd(on(2)({"train", "--data", file("nowhere.npz")}), 3, {"nowhere.npz"});
  expectEnd(on(2)({"train", "--steps", "1", "--init", file("nowhere.npz")}), 3, {"nowhere.npz"});
  expectEnd(on(2)({"predict", "-o", file("nowhere/out.npz")}), 3, {"cannot write"});
  // A trained entry by its own name is what eval computes.
  const Outcome named = on(2)({"loss", "-q"});
  expectEnd(named, 0);
  EXPECT_GT(std::strtod(named.out.c_str(), nullptr), 0) << named.all();
  // Told before any work: nothing is said of parameters yet.
  const Outcome early = on(2)({"predict", "-o", file("out.txt")});
  expectEnd(early, 2, {"a name ending in .npy, .npz or .safetensors"});
  EXPECT_FALSE(has(early.all(), "parameters initialised")) << early.all();
  expectEnd(on(2)({"train", "--steps", "1", "--metrics", file("nowhere/m.jsonl")}), 3, {"cannot write"});
  expectEnd(on(2)({"train", "--steps", "1", "--metrics", "/dev/full"}), 3,
            {"cannot write `/dev/full`: No space left on device; the run ends here"});
  expectEnd(on(2)({"eval", "--checkpoint", file("nowhere")}), 3, {"no checkpoint in"});
  std::ofstream(file("broken.npz")) << "PK\3\4 and then nothing";
  expectEnd(on(2)({"train", "--steps", "1", "--data", file("broken.npz")}), 3, {"broken.npz"});
}

TEST_F(Cli, FourForWhatDoesNotFit) {
  writeNumbers(file("wide.npy"), spread({7, 6}, 0));
  expectEnd(on(2)({"predict", "--input", "x=" + file("wide.npy")}), 4, {"`x`", "f32[6, 5]", "f64[7, 6]"});
  writeNumbers(file("few.npy"), spread({4, 5}, 0));
  writeNumbers(file("fewLabels.npy"), labels(4));
  expectEnd(on(2)({"train", "--input", "x=" + file("few.npy"), "--input", "y=" + file("fewLabels.npy")}), 4,
            {"4", "6"});
  expectEnd(on(2)({"train", "--input", "x=" + file("x.npy"), "--input", "y=" + file("fewLabels.npy")}), 4, {"16", "4"});
}

runtime::Array arrayOf(const Numbers& numbers) {
  runtime::Array array{runtime::ElementType::F64, numbers.shape, {}};
  array.bytes.resize(numbers.values.size() * sizeof(double));
  std::memcpy(array.bytes.data(), numbers.values.data(), array.bytes.size());
  return array;
}

TEST_F(Cli, InitListsWhatDoesNotFit) {
  const runtime::Array w1 = arrayOf(spread({5, 7}, 0)), b1 = arrayOf(spread({7}, 0)), w2 = arrayOf(spread({7, 3}, 0));
  runtime::writeArrays(file("good.npz"), {{"start.w1", w1}, {"start.b1", b1}, {"start.w2", w2}, {"other", b1}});
  expectEnd(on(3)({"train", "--steps", "0", "--init", file("good.npz") + ":start."}), 0);
  runtime::writeArrays(file("bad.npz"), {{"w1", w1}, {"b1", arrayOf(spread({8}, 0))}, {"w3", w2}});
  expectEnd(on(3)({"train", "--steps", "0", "--init", file("bad.npz")}), 4,
            {"`net.w2` is missing", "`net.b1` is f64[8], expected f32[7]", "`net.w3` is surplus"});
  expectEnd(on(3)({"train", "--steps", "0", "--init", file("good.npz")}), 4, {"`net.other` is surplus"});
}

// The message of a fault, without the device that found it.
std::string faultOf(const Outcome& outcome) {
  std::smatch found;
  std::regex_search(outcome.err, found, std::regex("error: ([^\n]*)"));
  return found.empty() ? outcome.err : found[1].str();
}

void expectFaults(const std::string& folder, const std::function<Binary(std::int64_t)>& binaryOn) {
  writeNumbers(folder + "/wrong.npy", {{8}, {0, 1, 4, 3, 9, 2, -1, 7}});
  writeNumbers(folder + "/late.npy", {{8}, {0, 1, 4, 3, 0, 2, 0, -1}});
  writeNumbers(folder + "/zeros.npy", {{8}, {1, 1, 1, 0, 1, 0, 1, 1}});
  for (const std::int64_t devices : {1, 2, 4}) {
    const Outcome index =
        binaryOn(devices)({"lookup", "-q", "--input", "i=" + folder + "/wrong.npy", "-o", folder + "/none.npy"});
    EXPECT_EQ(index.code, 1) << index.all();
    EXPECT_TRUE(std::regex_match(faultOf(index), std::regex(".*rows.gsd:34:[0-9]+: take of `net.w1`: index 9 is out of "
                                                            "range for 5, at element 4 of the indices \\[E0753\\]")))
        << index.all();
    EXPECT_FALSE(std::filesystem::exists(folder + "/none.npy")) << "an output was written";
    const Outcome late = binaryOn(devices)({"lookup", "-q", "--input", "i=" + folder + "/late.npy"});
    EXPECT_EQ(late.code, 1) << late.all();
    EXPECT_TRUE(has(faultOf(late), "index -1 is out of range for 5, at element 1 of the indices")) << late.all();
    EXPECT_TRUE(has(late.err, "block of rows from 6")) << late.all();
    const Outcome division = binaryOn(devices)(
        {"quotient", "-q", "--input", "a=" + folder + "/wrong.npy", "--input", "b=" + folder + "/zeros.npy"});
    EXPECT_EQ(division.code, 1) << division.all();
    EXPECT_TRUE(has(faultOf(division), "integer division by zero, at element 3 of the result")) << division.all();
  }
}

TEST_F(Cli, FaultsAreToldAlikeOnAnyNumberOfDevices) {
  expectFaults(file("."), [](std::int64_t devices) { return on(devices); });
}

TEST_F(Cli, FaultsAreToldAlikeUnderMpi) {
  expectFaults(file("."), [](std::int64_t devices) { return underMpi(devices); });
}

TEST_F(Cli, ExitCodesUnderMpi) {
  Binary wrong = underMpi(2);
  wrong.devices = 3;
  expectEnd(wrong({"predict", "-q"}), 2, {"started with 3 devices, but compiled for 2", "mpirun -n 2", "--devices 3"});
  expectEnd(underMpi(2)({"predict", "-q", "--ouput", "x"}), 2, {"did you mean `--output`?"});
  expectEnd(underMpi(2)({"predict", "-q", "--input", "x=" + file("nowhere.npy")}), 3, {"nowhere.npy"});
  writeNumbers(file("wide.npy"), spread({7, 6}, 0));
  expectEnd(underMpi(2)({"predict", "-q", "--input", "x=" + file("wide.npy")}), 4, {"f64[7, 6]"});
  const Outcome good = underMpi(3)({"predict", "-q"});
  EXPECT_EQ(good.code, 0) << good.all();
  EXPECT_EQ(good.out, on(3)({"predict", "-q"}).out);
}

// predict takes any number of rows: fewer than a block, one block, blocks and a short last one.
TEST_F(Cli, PredictsAnyNumberOfRows) {
  const Numbers all = spread({23, 5}, 0.1);
  std::map<std::string, Numbers> whole;
  for (const std::int64_t rows : {23, 1, 5, 6, 7, 9, 12}) {
    const std::string input = writeNumbers(file("some.npy"), firstRows(all, rows));
    for (std::int64_t devices = 1; devices <= 4; ++devices) {
      const std::string out = file("predicted.npz");
      expectEnd(on(devices)({"predict", "-q", "--input", "x=" + input, "-o", out}), 0);
      const auto found = numbersOf(out);
      ASSERT_EQ(found.size(), 2u);
      if (whole.empty()) whole = found;
      SCOPED_TRACE(std::to_string(rows) + " rows on " + std::to_string(devices) + " devices");
      EXPECT_LE(relativeDifference(firstRows(whole.at("result.0"), rows), found.at("result.0")), kTolerance);
      EXPECT_EQ(firstRows(whole.at("result.1"), rows), found.at("result.1"));
    }
  }
}

TEST_F(Cli, OutputsInEveryForm) {
  writeNumbers(file("index.npy"), {{3}, {4, 0, 2}});
  const auto look = [&](const std::string& out) {
    expectEnd(on(4)({"lookup", "-q", "--input", "i=" + file("index.npy"), "-o", out}), 0);
  };
  for (const std::string suffix : {"npy", "npz", "safetensors"}) look(file("looked." + suffix));
  const Numbers npz = numbersOf(file("looked.npz")).begin()->second;
  EXPECT_EQ(npz.shape, (std::vector<std::int64_t>{3, 7}));
  EXPECT_EQ(numbersOf(file("looked.npy")).begin()->second, npz);
  EXPECT_EQ(numbersOf(file("looked.safetensors")).begin()->second, npz);
  expectEnd(on(4)({"predict", "-q", "-o", file("two.npy")}), 2);  // two results in a file of one
}

std::map<std::string, double> valuesOf(const std::string& text) {
  std::map<std::string, double> values;
  std::istringstream lines(text);
  std::string name;
  double value = 0;
  while (lines >> name >> value) values[name] = value;
  return values;
}

// 16 rows in batches of 6: the last one has 4. The whole at once is the program compiled for a batch of 16.
TEST_F(Cli, EvaluatesAShortLastBatchExactly) {
  const Scratch scratch;
  const Binary whole =
      compile(scratch, GSHARD_SOURCE_DIR "/tests/cli/rows.gsd", "whole", 1, {"-w", "--devices", "1", "-D", "batch=16"});
  const auto expected = valuesOf(whole(with({"eval", "-q"}, data())).out);
  ASSERT_TRUE(expected.contains("loss") && expected.contains("accuracy"));
  for (std::int64_t devices = 1; devices <= 4; ++devices) {
    const auto found = valuesOf(on(devices)(with({"eval", "-q"}, data())).out);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, value] : expected)
      EXPECT_NEAR(found.at(name), value, kTolerance * std::fabs(value)) << name << " on " << devices;
  }
}

// Written on 4 devices, read on any: the same parameters, bit by bit, and training goes on from there.
TEST_F(Cli, CheckpointsMoveBetweenDeviceCounts) {
  const std::string folder = file("checkpoint");
  expectEnd(
      on(4)(with({"train", "-q", "--steps", "5", "--checkpoint", folder, "--save-every", "2", "--keep", "2"}, data())),
      0);
  EXPECT_FALSE(std::filesystem::exists(folder + "/step-2.safetensors"));
  const auto trained = numbersOf(folder + "/step-5.safetensors");
  EXPECT_TRUE(trained.contains("net.w1") && trained.contains("net.w1.adam.m"));
  const auto expected = valuesOf(on(4)(with({"eval", "-q", "--checkpoint", folder}, data())).out);
  const std::string start = file("start");
  for (std::int64_t devices = 1; devices <= 3; ++devices) {
    SCOPED_TRACE(devices);
    const auto found = valuesOf(on(devices)(with({"eval", "-q", "--checkpoint", folder}, data())).out);
    EXPECT_NEAR(found.at("loss"), expected.at("loss"), kTolerance);
    std::filesystem::remove_all(start);
    std::filesystem::copy(folder, start, std::filesystem::copy_options::recursive);
    expectEnd(on(devices)(with({"train", "-q", "--steps", "0", "--resume", "5", "--checkpoint", start}, data())), 0);
    EXPECT_TRUE(numbersOf(start + "/step-5.safetensors") == trained);
  }
  // Five steps and three more are eight.
  expectEnd(on(3)(with({"train", "-q", "--steps", "3", "--resume", "auto", "--checkpoint", start}, data())), 0);
  expectEnd(on(2)(with({"train", "-q", "--steps", "8", "--checkpoint", file("straight")}, data())), 0);
  const auto straight = numbersOf(file("straight") + "/step-8.safetensors"),
             resumed = numbersOf(start + "/step-8.safetensors");
  for (const auto& [name, numbers] : straight) EXPECT_LE(relativeDifference(numbers, resumed.at(name)), 1e-5) << name;
  std::filesystem::create_directories(file("unfit"));
  runtime::writeArrays(file("unfit/step-1.safetensors"), {{"net.b1", arrayOf(spread({7}, 0))}});
  expectEnd(on(2)({"eval", "--checkpoint", file("unfit")}), 4, {"`net.w1` is missing"});
}

// Parameters are drawn by global index: the same on every device count.
TEST_F(Cli, InitialisesAlikeOnAnyNumberOfDevices) {
  std::map<std::string, Numbers> first;
  for (std::int64_t devices = 1; devices <= 4; ++devices) {
    const std::string folder = file("fresh" + std::to_string(devices));
    expectEnd(on(devices)({"train", "-q", "--steps", "0", "--seed", "7", "--checkpoint", folder}), 0);
    const auto found = numbersOf(folder + "/step-0.safetensors");
    if (first.empty()) first = found;
    EXPECT_TRUE(found == first) << devices;
  }
  expectEnd(on(2)({"train", "-q", "--steps", "0", "--seed", "8", "--checkpoint", file("other")}), 0);
  EXPECT_FALSE(numbersOf(file("other") + "/step-0.safetensors") == first);
}

// With what depends on the clock removed, two runs with one seed write one file.
TEST_F(Cli, MetricsAreTheSameEveryTime) {
  const auto records = [&](const std::string& name) {
    expectEnd(on(4)(with({"train", "-q", "--epochs", "2", "--metrics", file(name)}, data())), 0);
    std::vector<nlohmann::json> lines;
    std::ifstream in(file(name));
    for (std::string line; std::getline(in, line);) {
      lines.push_back(nlohmann::json::parse(line));
      for (const char* key : {"step_ms", "time"}) {
        EXPECT_EQ(lines.back().contains(key), lines.back().contains("step"));
        lines.back().erase(key);
      }
    }
    return lines;
  };
  const auto first = records("first.jsonl");
  ASSERT_EQ(first.size(), 5u);  // the run, then 2 epochs of 2 whole batches
  EXPECT_TRUE(first[0].contains("run"));
  EXPECT_EQ(first[4]["step"], 4);
  EXPECT_EQ(first[4]["samples"], 24);
  EXPECT_TRUE(first == records("second.jsonl"));
}

// Evaluation between steps changes nothing of the training, and says what eval says.
TEST_F(Cli, EvaluatesWhileTraining) {
  const auto train = [&](std::int64_t devices, const std::string& name, const Words& more) {
    const Words words = {"train", "-q", "--steps", "4", "--checkpoint", file(name), "--metrics", file(name + ".jsonl")};
    expectEnd(on(devices)(with(with(words, data()), more)), 0);
  };
  writeNumbers(file("evalX.npy"), spread({7, 5}, 0.7));
  writeNumbers(file("evalY.npy"), labels(7));
  const Words other = {"--input", "x=" + file("evalX.npy"), "--input", "y=" + file("evalY.npy")};
  train(2, "straightOn", {});
  train(2, "evaluated",
        {"--eval-every", "2", "--eval-input", "x=" + file("evalX.npy"), "--eval-input", "y=" + file("evalY.npy")});
  EXPECT_EQ(readFile(file("straightOn/step-4.safetensors")), readFile(file("evaluated/step-4.safetensors")));
  const auto expected = valuesOf(on(2)(with({"eval", "-q", "--checkpoint", file("evaluated")}, other)).out);
  std::vector<nlohmann::json> evaluations;
  std::ifstream lines(file("evaluated.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record.value("set", "") == "eval") evaluations.push_back(record);
  }
  ASSERT_EQ(evaluations.size(), 2u);
  EXPECT_EQ(evaluations[0]["step"], 2);
  EXPECT_EQ(evaluations[1]["loss"], expected.at("loss"));
  EXPECT_EQ(evaluations[1]["accuracy"], expected.at("accuracy"));
  EXPECT_EQ(evaluations[1]["samples"], 7);
  expectEnd(on(2)(with({"train", "--eval-data", "x.npz"}, data())), 2, {"--eval-every"});
}

TEST_F(Cli, ConstantsAreSetAtRunTime) {
  const auto lossAfter = [&](const Words& more) {
    expectEnd(on(2)(with(with({"train", "-q", "--steps", "4", "--metrics", file("set.jsonl")}, data()), more)), 0);
    return lossesOf(file("set.jsonl"));
  };
  const std::vector<double> usual = lossAfter({}), same = lossAfter({"--set", "lr=0.05"}),
                            still = lossAfter({"--set", "lr=0"});
  EXPECT_EQ(usual, same);
  EXPECT_EQ(still[0], usual[0]);
  EXPECT_NE(still[1], usual[1]);
}

TEST_F(Cli, ResultsOnStdoutAndAllElseOnStderr) {
  const Outcome outcome = on(4)(with({"eval"}, data()));
  EXPECT_TRUE(std::regex_match(outcome.out, std::regex("loss [0-9.]+\naccuracy [0-9.]+\n"))) << outcome.out;
  EXPECT_TRUE(has(outcome.err, "rows: 4 devices = d 4 (local, 4 threads)")) << outcome.err;
  EXPECT_EQ(on(4)(with({"eval", "-q"}, data())).err, "");
  const Outcome plain = on(4)(with({"train", "--steps", "3", "--progress", "plain"}, data()));
  EXPECT_EQ(plain.out, "");
  EXPECT_FALSE(has(plain.err, "\r")) << plain.err;
  EXPECT_TRUE(has(on(4)(with({"train", "--steps", "3", "--progress", "bar"}, data())).err, "\r"));
}

}  // namespace
}  // namespace gshard::testing
