// The outside oracle: the network of examples/mlp_small.gsd, whose ten losses, first gradients and final parameters JAX
// and PyTorch agree on to 15 digits (mlp_small.npz; bench/peers made it), trained from the same parameters on every
// mesh and layout. Its batch of 10 and sizes 7, 9, 5 leave short last parts everywhere. Also held here: bytes counted =
// bytes planned, and the measured peak = the planned one. With --mpi the same under mpirun, on fewer meshes.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

const std::string kProgram = GSHARD_SOURCE_DIR "/examples/mlp_small.gsd";
const std::string kOracle = GSHARD_SOURCE_DIR "/tests/oracle/mlp_small.npz";
const Words kNames = {"w1", "b1", "w2", "b2", "w3", "b3"};

// Of the tensor's largest magnitude. f32: a few roundings of 2^-24; sums of 10 rows in another order than the peers'.
// Adam divides a small gradient by its own size, so what ten steps make of its rounding is a rounding of the step.
constexpr double kTolerance = 2e-6;
constexpr double kDoubleTolerance = 1e-12;

struct OracleCase {
  std::string layout;  // of tests/oracle/layouts; empty: the program's own
  Words mesh;          // {"--devices", "3"} or {"--mesh", "data=2,model=2"}
  std::int64_t devices = 1;
  bool doubles = false;

  std::string name() const {
    std::string text = (layout.empty() ? "own" : layout) + "." + mesh.back() + (doubles ? ".f64" : "");
    for (char& c : text) c = c == ',' || c == '=' ? '_' : c;
    return text;
  }
};

OracleCase onDevices(std::int64_t devices) {
  return {"", {"--devices", std::to_string(devices)}, devices};
}

OracleCase onMesh(const std::string& layout, std::int64_t data, std::int64_t model) {
  return {layout, {"--mesh", "data=" + std::to_string(data) + ",model=" + std::to_string(model)}, data * model};
}

OracleCase inDoubles(OracleCase item) {
  item.doubles = true;
  return item;
}

std::vector<OracleCase> localCases() {
  std::vector<OracleCase> cases;
  for (std::int64_t devices = 1; devices <= 4; ++devices) cases.push_back(onDevices(devices));
  for (std::int64_t model = 2; model <= 4; ++model) cases.push_back(onMesh("", 1, model));
  cases.push_back(onMesh("", 2, 2));
  for (const char* layout : {"columns", "rows", "classes"}) {
    cases.push_back(onMesh(layout, 2, 2));
    cases.push_back(onMesh(layout, 1, 3));
  }
  for (const char* layout : {"data", "none", "states", "stored"}) {
    cases.push_back(onMesh(layout, 4, 1));
    cases.push_back(onMesh(layout, 3, 1));
  }
  cases.push_back(inDoubles(onDevices(1)));
  cases.push_back(inDoubles(onMesh("", 2, 2)));
  cases.push_back(inDoubles(onMesh("rows", 1, 4)));
  cases.push_back(inDoubles(onMesh("stored", 3, 1)));
  return cases;
}

std::vector<OracleCase> mpiCases() {
  return {onDevices(1),     onDevices(2),     onDevices(3),         onDevices(4),
          onMesh("", 1, 3), onMesh("", 2, 2), onMesh("rows", 1, 3), onMesh("stored", 3, 1)};
}

class OracleTest : public ::testing::Test {
 public:
  OracleTest(OracleCase item, Transport transport)
      : case_(std::move(item)), transport_(transport), oracle_(numbersOf(kOracle)) {}

  void TestBody() override {
    Words options = case_.mesh;
    if (!case_.layout.empty())
      options.insert(options.end(), {"--layout", GSHARD_SOURCE_DIR "/tests/oracle/layouts/" + case_.layout + ".gsd"});
    if (case_.doubles) options.insert(options.end(), {"-D", "real=f64"});
    const Binary binary = compile(scratch_, kProgram, "mlp_small", case_.devices, options, transport_);
    if (HasFailure()) return;
    const Words given = {"--data", kOracle + ":input.", "--init",        kOracle + ":param.",
                         "-q",     "--verify-plan",     "--measure-peak"};
    train(binary, given);
    differentiate(binary, given);
  }

 private:
  static Outcome start(const Binary& binary, Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return binary(words);
  }

  void expectNear(const std::string& what, const Numbers& expected, const Numbers& found) {
    EXPECT_EQ(expected.shape, found.shape) << what;
    EXPECT_LE(relativeDifference(expected, found), case_.doubles ? kDoubleTolerance : kTolerance) << what;
  }

  void expectPeak(const std::string& metrics) {
    const Peak peak = peakOf(metrics);
    EXPECT_GT(peak.planned, 0);
    EXPECT_EQ(peak.planned, peak.measured);
  }

  void train(const Binary& binary, const Words& given) {
    const std::string metrics = scratch_.file("train.jsonl"), folder = scratch_.file("checkpoint");
    const Outcome outcome =
        start(binary, {"train", "--steps", "10", "--checkpoint", folder, "--metrics", metrics}, given);
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    const Numbers losses{{10}, lossesOf(metrics)};
    ASSERT_EQ(losses.values.size(), 10u);
    expectNear("losses", oracle_.at("losses"), losses);
    expectPeak(metrics);
    const auto parameters = numbersOf(folder + "/step-10.safetensors");
    for (const std::string& name : kNames) {
      ASSERT_TRUE(parameters.contains("net." + name)) << name;
      expectNear("final " + name, oracle_.at("final." + name), parameters.at("net." + name));
    }
  }

  void differentiate(const Binary& binary, const Words& given) {
    const std::string metrics = scratch_.file("gradients.jsonl"), file = scratch_.file("gradients.npz");
    const Outcome outcome = start(binary, {"gradients", "-o", file, "--metrics", metrics}, given);
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    const auto gradients = numbersOf(file);
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      const std::string result = "result." + std::to_string(i);
      ASSERT_TRUE(gradients.contains(result)) << result;
      expectNear("gradient of " + kNames[i], oracle_.at("grad." + kNames[i]), gradients.at(result));
    }
    expectPeak(metrics);
  }

  OracleCase case_;
  Transport transport_;
  std::map<std::string, Numbers> oracle_;
  Scratch scratch_;
};

int runAll(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  bool mpi = false;
  for (int i = 1; i < argc; ++i) mpi = mpi || std::strcmp(argv[i], "--mpi") == 0;
  for (const OracleCase& item : mpi ? mpiCases() : localCases()) {
    ::testing::RegisterTest(
        "Oracle", item.name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [item, mpi]() -> ::testing::Test* { return new OracleTest(item, mpi ? Transport::Mpi : Transport::Local); });
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace gshard::testing

int main(int argc, char** argv) {
  return gshard::testing::runAll(argc, argv);
}
