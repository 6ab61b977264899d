// The outside oracles: examples/mlp_small.gsd, char_lm_small.gsd and moe_small.gsd, whose ten losses, first gradients
// and final parameters JAX and PyTorch agree on to 15 digits (MODEL.npz; bench/peers made them), trained from the same
// parameters on every mesh and layout. Their sizes (10 rows, 7, 9, 5; 3 rows, 7 places, width 12, 3 heads) leave short
// last parts everywhere. Also held here: bytes counted = bytes planned, and the measured peak = the planned one. With
// --mpi the same under mpirun, on fewer meshes.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

// A model of the peers: our program, and under which path it has what they call otherwise.
struct Model {
  std::string name;
  std::vector<std::pair<std::string, std::string>>
      parameters;       // theirs, ours below `net.`; as `gradients` returns them
  std::string layouts;  // the folder of its layout files
  double tolerance;     // of f32, below
};

// Of the tensor's largest magnitude. f32: a few roundings of 2^-24, and sums in another order than the peers'. Adam
// divides a small gradient by its own size, so what ten steps make of its rounding is a rounding of the step.
const Model kMlp = {"mlp_small",
                    {{"w1", "w1"}, {"b1", "b1"}, {"w2", "w2"}, {"b2", "b2"}, {"w3", "w3"}, {"b3", "b3"}},
                    GSHARD_SOURCE_DIR "/tests/oracle/layouts/",
                    2e-6};
constexpr double kDoubleTolerance = 1e-12;

Model charLm() {
  Model model = {"char_lm_small",
                 {{"embed", "embed.table"}, {"position", "position"}},
                 GSHARD_SOURCE_DIR "/examples/layouts/char_lm/",
                 2e-5};
  const std::pair<const char*, const char*> inBlock[] = {{"ln1.scale", "ln1.scale"},
                                                         {"ln1.bias", "ln1.bias"},
                                                         {"wq", "attend.wq"},
                                                         {"wk", "attend.wk"},
                                                         {"wv", "attend.wv"},
                                                         {"wo", "attend.wo"},
                                                         {"ln2.scale", "ln2.scale"},
                                                         {"ln2.bias", "ln2.bias"},
                                                         {"w1", "up.w"},
                                                         {"b1", "up.b"},
                                                         {"w2", "down.w"},
                                                         {"b2", "down.b"}};
  for (const char* block : {"blocks.0.", "blocks.1."}) {
    for (const auto& [theirs, ours] : inBlock)
      model.parameters.emplace_back(std::string(block) + theirs, std::string(block) + ours);
  }
  model.parameters.insert(model.parameters.end(),
                          {{"ln.scale", "ln.scale"}, {"ln.bias", "ln.bias"}, {"head", "head.w"}});
  return model;
}

// Adam divides the smallest gradients of experts that see few tokens by their own size.
const Model kMoe = {
    "moe_small", {{"wg", "wg"}, {"wi", "wi"}, {"wo", "wo"}}, GSHARD_SOURCE_DIR "/examples/layouts/moe/", 2e-5};

struct OracleCase {
  std::string layout;  // of the model's layouts; empty: the program's own
  Words mesh;          // {"--devices", "3"} or {"--mesh", "data=2,model=2"}
  std::int64_t devices = 1;
  bool doubles = false;
  const Model* model = &kMlp;

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

// On the one axis that the layout has.
OracleCase onAxis(const std::string& layout, const std::string& axis, std::int64_t devices) {
  return {layout, {"--mesh", axis + "=" + std::to_string(devices)}, devices};
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

// Every layout on the devices that it can use, in f64, where a wrong sum shows; in f32 what differs by code.
std::vector<OracleCase> charLmCases(const Model& model, bool mpi) {
  std::vector<OracleCase> doubles, floats;
  if (mpi) {
    doubles = {onAxis("data", "data", 3), onAxis("model", "model", 4), onMesh("both", 2, 2)};
    floats = {onAxis("data", "data", 2), onAxis("model", "model", 3), onAxis("zero1", "data", 2)};
  } else {
    floats = {onDevices(1), onAxis("data", "data", 4), onAxis("model", "model", 3), onMesh("both", 2, 2)};
    for (std::int64_t devices = 1; devices <= 4; ++devices) {
      doubles.push_back(onDevices(devices));
      doubles.push_back(onMesh("", 1, devices));
      doubles.push_back(onAxis("data", "data", devices));
      doubles.push_back(onAxis("model", "model", devices));
      doubles.push_back(onAxis("zero1", "data", devices));
    }
    for (const char* layout : {"", "both"}) doubles.push_back(onMesh(layout, 2, 2));
    for (std::int64_t devices = 2; devices <= 3; ++devices) {
      doubles.push_back(onMesh("both", devices, 1));
      doubles.push_back(onMesh("both", 1, devices));
    }
  }
  for (OracleCase& item : doubles) floats.push_back(inDoubles(std::move(item)));
  for (OracleCase& item : floats) item.model = &model;
  return floats;
}

// Routes are decided by sums that only rounding changes; here no two gates are that close.
std::vector<OracleCase> moeCases(bool mpi) {
  std::vector<OracleCase> doubles, floats;
  for (std::int64_t devices = 1; devices <= 4; ++devices) doubles.push_back(onDevices(devices));
  const OracleCase both = {"both", {"--mesh", "experts=2,model=2"}, 4};
  doubles.push_back(both);
  if (!mpi) {
    doubles.push_back({"both", {"--mesh", "experts=3,model=1"}, 3});
    doubles.push_back({"both", {"--mesh", "experts=1,model=3"}, 3});
    doubles.push_back(onAxis("data", "data", 2));
    doubles.push_back(onAxis("data", "data", 3));
  }
  floats = doubles;
  for (OracleCase& item : doubles) floats.push_back(inDoubles(std::move(item)));
  for (OracleCase& item : floats) item.model = &kMoe;
  return floats;
}

class OracleTest : public ::testing::Test {
 public:
  OracleTest(OracleCase item, Transport transport)
      : case_(std::move(item)),
        model_(*case_.model),
        transport_(transport),
        file_(GSHARD_SOURCE_DIR "/tests/oracle/" + model_.name + ".npz"),
        oracle_(numbersOf(file_)) {}

  void TestBody() override {
    Words options = case_.mesh;
    if (!case_.layout.empty()) options.insert(options.end(), {"--layout", model_.layouts + case_.layout + ".gsd"});
    if (case_.doubles) options.insert(options.end(), {"-D", "real=f64"});
    const Binary binary = compile(scratch_, GSHARD_SOURCE_DIR "/examples/" + model_.name + ".gsd", model_.name,
                                  case_.devices, options, transport_);
    if (HasFailure()) return;
    const Words given = {"--data", file_ + ":input.", "--init",        writeParameters(),
                         "-q",     "--verify-plan",   "--measure-peak"};
    train(binary, given);
    differentiate(binary, given);
  }

 private:
  static Outcome start(const Binary& binary, Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return binary(words);
  }

  // The oracle's parameters by our paths.
  std::string writeParameters() const {
    std::map<std::string, std::string> ours;
    for (const auto& [theirs, path] : model_.parameters) ours.emplace("param." + theirs, "net." + path);
    return copyRenamed(file_, scratch_.file("parameters.npz"), ours);
  }

  void expectNear(const std::string& what, const Numbers& expected, const Numbers& found) {
    EXPECT_EQ(expected.shape, found.shape) << what;
    EXPECT_LE(relativeDifference(expected, found), case_.doubles ? kDoubleTolerance : model_.tolerance) << what;
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
    for (const auto& [theirs, path] : model_.parameters) {
      ASSERT_TRUE(parameters.contains("net." + path)) << path;
      expectNear("final " + theirs, oracle_.at("final." + theirs), parameters.at("net." + path));
    }
  }

  void differentiate(const Binary& binary, const Words& given) {
    const std::string metrics = scratch_.file("gradients.jsonl"), file = scratch_.file("gradients.npz");
    const Outcome outcome = start(binary, {"gradients", "-o", file, "--metrics", metrics}, given);
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    const auto gradients = numbersOf(file);
    for (std::size_t i = 0; i < model_.parameters.size(); ++i) {
      const std::string result = "result." + std::to_string(i);
      const std::string& theirs = model_.parameters[i].first;
      ASSERT_TRUE(gradients.contains(result)) << result;
      expectNear("gradient of " + theirs, oracle_.at("grad." + theirs), gradients.at(result));
    }
    expectPeak(metrics);
  }

  OracleCase case_;
  const Model& model_;
  Transport transport_;
  std::string file_;
  std::map<std::string, Numbers> oracle_;
  Scratch scratch_;
};

int runAll(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  bool mpi = false;
  for (int i = 1; i < argc; ++i) mpi = mpi || std::strcmp(argv[i], "--mpi") == 0;
  const auto add = [mpi](const std::vector<OracleCase>& cases, const char* suite) {
    for (const OracleCase& item : cases) {
      ::testing::RegisterTest(
          suite, item.name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [item, mpi]() -> ::testing::Test* { return new OracleTest(item, mpi ? Transport::Mpi : Transport::Local); });
    }
  };
  static const Model kCharLm = charLm();
  add(mpi ? mpiCases() : localCases(), "Oracle");
  add(charLmCases(kCharLm, mpi), "OracleCharLm");
  add(moeCases(mpi), "OracleMoe");
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace gshard::testing

int main(int argc, char** argv) {
  return gshard::testing::runAll(argc, argv);
}
