// examples/digits_mlp.gsd on real images (Debian's python3-sklearn, found by scripts/get-data) and on a synthetic twin
// of the same form that needs no package: accuracy, and the same predictions on 1, 2, 3 and 4 devices. What is right is
// worked out here in double, from the checkpoint; a prediction may differ only where the two best logits are as close
// as f32 rounds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

namespace fs = std::filesystem;

const std::string kDigits = GSHARD_SOURCE_DIR "/examples/digits_mlp.gsd";
constexpr std::int64_t kPixels = 64, kHidden = 256, kClasses = 10;
constexpr double kRoundingOfLogits = 1e-4;

struct Mesh {
  std::int64_t devices;
  Words options;
};
const std::vector<Mesh> kMeshes = {{1, {"--devices", "1"}},
                                   {2, {"--devices", "2"}},
                                   {3, {"--mesh", "data=1,model=3"}},
                                   {4, {"--mesh", "data=2,model=2"}}};

Words columnsOf(const std::string& file) {
  return {"--input", "x=" + file + "[:, 0:64]", "--input", "y=" + file + "[:, 64]"};
}

Outcome start(const Binary& binary, Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return binary(words);
}

double accuracyOf(const Outcome& outcome) {
  double value = 0;
  const std::size_t at = outcome.out.find("accuracy ");
  if (outcome.code != 0 || at == std::string::npos ||
      std::sscanf(outcome.out.c_str() + at, "accuracy %lf", &value) != 1) {
    ADD_FAILURE() << outcome.all();
  }
  return value;
}

// The network of the example, row by row.
std::vector<double> logitsOf(const std::map<std::string, Numbers>& net, const double* pixels) {
  const std::vector<double>& w1 = net.at("net.w1").values;
  const std::vector<double>& w2 = net.at("net.w2").values;
  std::vector<double> hidden = net.at("net.b1").values, logits = net.at("net.b2").values;
  for (std::int64_t h = 0; h < kHidden; ++h) {
    double& sum = hidden[static_cast<std::size_t>(h)];
    for (std::int64_t p = 0; p < kPixels; ++p) sum += pixels[p] / 16 * w1[static_cast<std::size_t>(p * kHidden + h)];
    sum = std::max(sum, 0.0);
    for (std::int64_t c = 0; c < kClasses; ++c)
      logits[static_cast<std::size_t>(c)] += sum * w2[static_cast<std::size_t>(h * kClasses + c)];
  }
  return logits;
}

void expectPredictions(const std::map<std::string, Numbers>& net, const Numbers& table, const Numbers& predicted) {
  const std::int64_t rows = table.shape[0];
  ASSERT_EQ(predicted.shape, (std::vector<std::int64_t>{rows}));
  std::int64_t close = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::vector<double> logits = logitsOf(net, table.values.data() + row * (kPixels + 1));
    const auto best = std::max_element(logits.begin(), logits.end());
    double second = -INFINITY;
    for (auto at = logits.begin(); at != logits.end(); ++at) second = at == best ? second : std::max(second, *at);
    if (*best - second < kRoundingOfLogits)
      ++close;
    else
      EXPECT_EQ(predicted.values[static_cast<std::size_t>(row)], static_cast<double>(best - logits.begin()))
          << "row " << row;
  }
  EXPECT_LE(close, rows / 100);
}

void trainOn(const std::string& csv, double accuracy) {
  const Scratch scratch;
  const Numbers table = numbersOf(csv).begin()->second;
  ASSERT_EQ(table.shape[1], kPixels + 1);
  std::vector<Binary> binaries;
  for (const Mesh& mesh : kMeshes)
    binaries.push_back(compile(scratch, kDigits, "digits" + std::to_string(mesh.devices), mesh.devices, mesh.options));
  const std::string checkpoint = scratch.file("on4");
  std::vector<double> oneDevice;
  for (const Binary& binary : binaries) {
    SCOPED_TRACE(binary.devices);
    const std::string folder = scratch.file("on" + std::to_string(binary.devices)),
                      metrics = scratch.file("metrics.jsonl");
    const Outcome trained =
        start(binary, {"train", "-q", "--epochs", "10", "--checkpoint", folder, "--metrics", metrics, "--verify-plan"},
              columnsOf(csv));
    ASSERT_EQ(trained.code, 0) << trained.all();
    EXPECT_GT(accuracyOf(start(binary, {"eval", "-q", "--checkpoint", folder}, columnsOf(csv))), accuracy);
    // The same rows in the same order: only sums round differently, and ten epochs let that grow a little.
    const std::vector<double> losses = lossesOf(metrics);
    ASSERT_EQ(static_cast<std::int64_t>(losses.size()), 10 * (table.shape[0] / 64));
    if (oneDevice.empty()) oneDevice = losses;
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], oneDevice[i], 1e-3 * oneDevice[0]) << "step " << i + 1;
  }
  fs::path last;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    if (entry.path().extension() == ".safetensors") last = entry.path();
  }
  const auto net = numbersOf(last.string());
  for (const Binary& binary : binaries) {
    SCOPED_TRACE(binary.devices);
    const std::string out = scratch.file("predicted.npy");
    const Outcome outcome =
        start(binary, {"predict", "-q", "--checkpoint", checkpoint, "-o", out}, {"--input", "x=" + csv + "[:, 0:64]"});
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    expectPredictions(net, table, numbersOf(out).begin()->second);
  }
}

TEST(Digits, Real) {
  setenv("GSHARD_OFFLINE", "1", 1);  // tests use no network
  const Outcome found = runCommand({GSHARD_SOURCE_DIR "/scripts/get-data", "digits"});
  if (found.code != 0) {
    std::printf("SKIP: python3-sklearn is neither installed nor unpacked; `scripts/get-data digits` fetches it\n");
    GTEST_SKIP();
  }
  const std::string csv = found.out.substr(0, found.out.find('\n')) + "/digits.csv.gz";
  trainOn(csv, 0.95);
  // Writers that it has not seen.
  const Scratch scratch;
  const Binary binary = compile(scratch, kDigits, "digits", 4, {});
  const Words seen = {"--input", "x=" + csv + "[:1500, 0:64]", "--input", "y=" + csv + "[:1500, 64]"};
  const Words unseen = {"--input", "x=" + csv + "[1500:, 0:64]", "--input", "y=" + csv + "[1500:, 64]"};
  EXPECT_EQ(start(binary, {"train", "-q", "--epochs", "10", "--checkpoint", scratch.file("seen")}, seen).code, 0);
  EXPECT_GT(accuracyOf(start(binary, {"eval", "-q", "--checkpoint", scratch.file("seen")}, unseen)), 0.85);
}

// Ten patterns under noise, as a table of the same form: 1201 rows, which no batch divides.
TEST(Digits, Synthetic) {
  const Scratch scratch;
  std::uint32_t state = 12345;
  const auto next = [&](std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
  };
  std::vector<std::uint32_t> patterns;
  for (std::int64_t i = 0; i < kClasses * kPixels; ++i) patterns.push_back(next(17));
  std::ofstream file(scratch.file("twin.csv"));
  for (int row = 0; row < 1201; ++row) {
    const std::uint32_t label = next(kClasses);
    for (std::int64_t p = 0; p < kPixels; ++p)
      file << (patterns[label * kPixels + static_cast<std::size_t>(p)] + next(9)) / 2 << ',';
    file << label << '\n';
  }
  file.close();
  trainOn(scratch.file("twin.csv"), 0.99);
}

}  // namespace
}  // namespace gshard::testing
