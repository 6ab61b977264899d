// examples/char_lm.gsd learns: its loss falls below the entropy of a byte given the one before it, which no table of
// pairs can, so that the attention must have learnt to look further back. On the text of Debian's fortunes where the
// package is at hand, and on a synthetic twin everywhere: words over few letters, in which the last letter alone says
// little.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

const std::string kProgram = GSHARD_SOURCE_DIR "/examples/char_lm.gsd";

// Of a byte given the one before, in nats.
double pairEntropy(const std::string& text) {
  std::map<std::pair<char, char>, double> pairs;
  std::map<char, double> firsts;
  for (std::size_t i = 1; i < text.size(); ++i) {
    ++pairs[{text[i - 1], text[i]}];
    ++firsts[text[i - 1]];
  }
  double entropy = 0;
  for (const auto& [pair, count] : pairs)
    entropy += count / static_cast<double>(text.size() - 1) * std::log(firsts[pair.first] / count);
  return entropy;
}

// What scripts/byte-entropy says of a file.
double entropyByScript(const std::string& file) {
  const Outcome outcome = runCommand({GSHARD_SOURCE_DIR "/scripts/byte-entropy", file});
  double value = 0;
  const std::string mark = "before ";
  const std::size_t at = outcome.out.rfind(mark);
  if (outcome.code != 0 || at == std::string::npos ||
      std::sscanf(outcome.out.c_str() + at + mark.size(), "%lf", &value) != 1) {
    ADD_FAILURE() << outcome.all();
  }
  return value;
}

// The losses of `steps` steps on the text.
std::vector<double> trained(const Scratch& scratch, const Binary& binary, const std::string& text, int steps,
                            const std::string& rate) {
  const std::string metrics = scratch.file("metrics.jsonl");
  const Outcome outcome = binary({"train", "--steps", std::to_string(steps), "--set", "lr=" + rate, "--input",
                                  "text=" + text, "--metrics", metrics, "-q", "--verify-plan"});
  EXPECT_EQ(outcome.code, 0) << outcome.all();
  std::vector<double> losses = lossesOf(metrics);
  EXPECT_EQ(losses.size(), static_cast<std::size_t>(steps));
  return losses;
}

double meanOfLast(const std::vector<double>& losses, std::ptrdiff_t count) {
  return std::accumulate(losses.end() - count, losses.end(), 0.0) / static_cast<double>(count);
}

TEST(CharLm, Synthetic) {
  std::uint32_t state = 7;
  const auto draw = [&](std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
  };
  std::vector<std::string> words(4);
  for (std::string& word : words) {
    for (int i = 0; i < 8; ++i) word += static_cast<char>('a' + draw(4));
  }
  std::string text;
  for (int i = 0; i < 3000; ++i) text += words[draw(4)];
  const Scratch scratch;
  const std::string file = scratch.write("words.txt", text);
  const double entropy = pairEntropy(text);
  EXPECT_GT(entropy, 0.9);  // else the twin would prove nothing
  EXPECT_NEAR(entropyByScript(file), entropy, 1e-4);

  const Words sizes = {"-D",   "vocab=128", "-D",      "T=32", "-D",    "batch=16", "-D",
                       "D=32", "-D",        "heads=2", "-D",   "ff=64", "-D",       "layers=2"};
  const auto compiled = [&](const std::string& name, std::int64_t devices, const Words& more) {
    Words options = sizes;
    options.insert(options.end(), more.begin(), more.end());
    return compile(scratch, kProgram, name, devices, options);
  };
  const Binary data = compiled("data", 2, {});
  const Binary heads =
      compiled("heads", 2, {"--layout", GSHARD_SOURCE_DIR "/examples/layouts/char_lm/model.gsd", "--mesh", "model=2"});
  if (HasFailure()) return;
  const std::vector<double> losses = trained(scratch, data, file, 200, "5e-3");
  const std::vector<double> first = trained(scratch, heads, file, 20, "5e-3");
  if (HasFailure()) return;
  EXPECT_NEAR(losses[0], std::log(128.0), 1.0);
  EXPECT_LT(meanOfLast(losses, 20), 0.75 * entropy);
  // The same windows and the same numbers, up to the rounding of sums, however it is split.
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], losses[i], 1e-3) << "step " << i + 1;
}

TEST(CharLm, Real) {
  const Outcome found = runCommand({"env", "GSHARD_OFFLINE=1", GSHARD_SOURCE_DIR "/scripts/get-data", "fortunes"});
  if (found.code != 0) {
    std::printf("SKIP: fortunes is neither installed nor unpacked; `scripts/get-data fortunes` fetches it\n");
    GTEST_SKIP();
  }
  const std::string file = found.out.substr(0, found.out.find('\n')) + "/fortunes.txt";
  const double entropy = entropyByScript(file);
  EXPECT_NEAR(entropy, pairEntropy(readFile(file)), 1e-4);
  EXPECT_NEAR(entropy, 2.58, 0.05);
  const Scratch scratch;
  const Binary binary =
      compile(scratch, kProgram, "char_lm", 2,
              {"-D", "layers=2", "-D", "D=128", "-D", "heads=4", "-D", "ff=512", "-D", "T=64", "-D", "batch=32"});
  if (HasFailure()) return;
  const std::vector<double> losses = trained(scratch, binary, file, 300, "2e-3");
  if (HasFailure()) return;
  EXPECT_LT(meanOfLast(losses, 20), entropy);
  EXPECT_LT(meanOfLast(losses, 20), 2.45);
}

}  // namespace
}  // namespace gshard::testing
