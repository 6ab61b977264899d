// A text as training data: an input of shape [rows, T + 1] fed from the bytes of any file, as random windows, the same
// on every device count; a text shorter than a batch; --data for the one input there is.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

// `keep` returns what it was fed; the loss falls when the letter that follows is learnt.
constexpr const char* kWindows =
    "import nn\n"
    "import optim\n"
    "const batch = 6\n"
    "const T = 9\n"
    "mesh [d: 2]\n"
    "let table = nn.Embedding(256, 256)\n"
    "entry fn loss(text: i32[batch, T + 1] @split(0, d)) -> f32 {\n"
    "    report first = text[0, 0]\n"
    "    report last = text[batch - 1, T]\n"
    "    return mean(nn.cross_entropy(table(text[:, 0:T]), text[:, 1:T + 1]))\n"
    "}\n"
    "entry fn keep[B](text: i32[B, T + 1] @split(0, d)) -> i32[B, T + 1] { return text + 0 }\n"
    "train loss with optim.adam(lr: 0.5)\n";

class Windows : public ::testing::Test {
 protected:
  Binary on(std::int64_t devices) {
    const std::string source = scratch_.write("text.gsd", kWindows);
    return compile(scratch_, source, "text" + std::to_string(devices), devices,
                   {"-w", "--devices", std::to_string(devices)});
  }
  // Letters in an order that never repeats a successor: after each letter comes always the same one.
  std::string alphabet(std::size_t length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + i % 26);
    return scratch_.write("letters.txt", text);
  }
  Scratch scratch_;
};

TEST_F(Windows, ATextTrainsAlikeOnAnyNumberOfDevices) {
  const std::string file = alphabet(3001);
  std::vector<double> first;
  for (const std::int64_t devices : {1, 2, 3, 4}) {
    const std::string metrics = scratch_.file("m.jsonl");
    const Outcome outcome =
        on(devices)({"train", "--steps", "40", "--input", "text=" + file, "--metrics", metrics, "--progress", "none"});
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    EXPECT_NE(outcome.err.find("50 batches of 6 random windows count as an epoch (seed 0)"), std::string::npos)
        << outcome.all();
    const std::vector<double> losses = lossesOf(metrics);
    ASSERT_EQ(losses.size(), 40u);
    EXPECT_NEAR(losses.front(), std::log(256.0), 0.1);
    EXPECT_LT(losses.back(), 0.1);  // what follows a letter is known by then
    if (first.empty()) first = losses;
    for (std::size_t i = 0; i < 40; ++i) EXPECT_NEAR(losses[i], first[i], 2e-5) << i << " on " << devices;
  }
}

TEST_F(Windows, AreWindowsOfTheText) {
  const std::string file = alphabet(301);
  const Outcome outcome = on(3)({"keep", "-q", "--data", file, "-o", scratch_.file("kept.npy")});
  ASSERT_EQ(outcome.code, 0) << outcome.all();
  const Numbers kept = numbersOf(scratch_.file("kept.npy")).begin()->second;
  EXPECT_EQ(kept.shape, (std::vector<std::int64_t>{30, 10}));  // an entry takes them one after the other
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(kept.values[i], static_cast<double>('a' + i % 26));
}

TEST_F(Windows, ATextShorterThanABatchIsEnough) {
  const Binary binary = on(2);
  const Outcome tiny = binary({"train", "-q", "--steps", "5", "--data", alphabet(11)});
  EXPECT_EQ(tiny.code, 0) << tiny.all();
  const Outcome less = binary({"train", "-q", "--steps", "5", "--data", alphabet(9)});
  EXPECT_EQ(less.code, 4) << less.all();
  EXPECT_NE(less.err.find("i32[6, 10]"), std::string::npos) << less.all();
}

TEST_F(Windows, DifferFromStepToStepAndBySeed) {
  const Binary binary = on(2);
  const std::string file = alphabet(3001), metrics = scratch_.file("m.jsonl");
  const auto firstLetters = [&](const char* seed) {
    const Outcome outcome =
        binary({"train", "-q", "--steps", "20", "--seed", seed, "--data", file, "--metrics", metrics});
    EXPECT_EQ(outcome.code, 0) << outcome.all();
    std::vector<double> letters;
    std::istringstream lines(readFile(metrics));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record.contains("first")) letters.push_back(record["first"].get<double>());
    }
    return letters;
  };
  const std::vector<double> zero = firstLetters("0");
  ASSERT_EQ(zero.size(), 20u);
  EXPECT_GT(std::set<double>(zero.begin(), zero.end()).size(), 5u);
  EXPECT_EQ(zero, firstLetters("0"));
  EXPECT_NE(zero, firstLetters("1"));
}

}  // namespace
}  // namespace gshard::testing
