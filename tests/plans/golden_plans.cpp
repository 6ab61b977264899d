// Golden tests of communication plans: every line of cases.txt is compiled in process up to its plan, and the plan, one
// line per collective, is compared whole with PROGRAM.MESH[.LAYOUT].plan. GSHARD_UPDATE_GOLDENS=1 rewrites the files.
// What a plan must be whatever the golden says (no collective on one device, totals) is checked apart.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "driver/stages.h"
#include "partition/comm_plan.h"
#include "support/render.h"
#include "support/text.h"

namespace gshard {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Defines = std::vector<std::pair<std::string, std::string>>;

const fs::path kExamples = fs::path(GSHARD_SOURCE_DIR) / "examples";
const fs::path kGoldens = fs::path(GSHARD_SOURCE_DIR) / "tests/plans";

struct PlanCase {
  std::string program, mesh, layout;  // mesh and layout empty: the program's own

  std::string name() const {
    std::string text = fs::path(program).stem().string() + "." + (mesh.empty() ? "own" : mesh);
    if (!layout.empty()) text += "." + fs::path(layout).stem().string();
    for (char& c : text) c = c == ',' ? '_' : c;
    return text;
  }
};

std::vector<PlanCase> readCases() {
  std::vector<PlanCase> cases;
  std::ifstream file(kGoldens / "cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    PlanCase item;
    std::istringstream(line) >> item.program >> item.mesh >> item.layout;
    if (item.mesh == "-") item.mesh.clear();
    cases.push_back(std::move(item));
  }
  return cases;
}

// Names are those that a user in examples/ sees, so that goldens hold no path of this machine.
Json planOf(const PlanCase& item, const Defines& defines = {}) {
  fs::current_path(kExamples);
  Options options;
  options.input = item.program;
  options.mesh = item.mesh;
  options.defines = defines;
  if (!item.layout.empty()) options.layouts.push_back(item.layout);
  Session session(options);
  try {
    const Partitioned partitioned = partitionedModule(session);
    return Json::parse(planJson(partitioned.module, partitioned.plan, session.sources()));
  } catch (const Stopped&) {
    std::string text;
    for (const Diagnostic& diagnostic : session.sink().diagnostics()) text += renderText(diagnostic, session.sources());
    throw std::runtime_error(item.name() + "\n" + text);
  }
}

std::string joined(const Json& list) {
  std::string text;
  for (const Json& item : list)
    text += (text.empty() ? "" : ",") + (item.is_string() ? item.get<std::string>() : item.dump());
  return text;
}

std::string describe(const PlanCase& item, const Json& plan) {
  std::string text = item.program + (item.layout.empty() ? "" : " with " + item.layout) + ", mesh";
  for (const Json& axis : plan["mesh"]) text += " " + axis[0].get<std::string>() + "=" + axis[1].dump();
  text += "\n";
  for (const Json& function : plan["functions"]) {
    text += "\n" + function["kind"].get<std::string>() + " " + function["name"].get<std::string>() + ": " +
            (function["collectives"].empty() ? "no collective" : function["bytes"]["max"].dump() + " bytes") + "\n";
    for (const Json& entry : function["collectives"]) {
      text += "  " + entry["kind"].get<std::string>() + " " + entry.value("reduction", "-") + " over " +
              joined(entry["axes"]) + ": " + entry["bytes"]["max"].dump() + " bytes, " + entry["count"].dump() +
              " times, " + entry["phase"].get<std::string>() + ", " + entry["source"].get<std::string>() + ", " +
              entry["value"].get<std::string>() + "\n";
    }
  }
  return text;
}

std::string readFile(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class PlanTest : public testing::Test {
 public:
  explicit PlanTest(PlanCase item) : item_(std::move(item)) {}

  void TestBody() override {
    const Json plan = planOf(item_);
    for (const Json& function : plan["functions"]) {
      SCOPED_TRACE(function["name"].get<std::string>());
      if (plan["devices"] == 1) {
        EXPECT_TRUE(function["collectives"].empty());
      }
      for (const Json& entry : function["collectives"]) {
        EXPECT_GT(entry["bytes"]["max"].get<std::int64_t>(), 0) << entry;
        EXPECT_LE(entry["bytes"]["total"].get<std::int64_t>(),
                  entry["bytes"]["max"].get<std::int64_t>() * plan["devices"].get<std::int64_t>());
        EXPECT_GT(entry["steps"].get<std::int64_t>(), 0) << entry;
        for (const Json& axis : plan["mesh"]) {
          const bool named = std::find(entry["axes"].begin(), entry["axes"].end(), axis[0]) != entry["axes"].end();
          EXPECT_FALSE(named && axis[1] == 1) << "over an axis of size one: " << entry;
        }
        EXPECT_FALSE(entry["reason"].get<std::string>().empty()) << entry;
        EXPECT_NE(entry["source"].get<std::string>(), "") << "a collective without a line: " << entry;
        EXPECT_FALSE(entry["source"].get<std::string>().starts_with("/")) << "an absolute path: " << entry;
        EXPECT_FALSE(entry["value"].get<std::string>().empty()) << entry;
      }
    }
    const std::string text = describe(item_, plan);
    const fs::path golden = kGoldens / (item_.name() + ".plan");
    if (std::getenv("GSHARD_UPDATE_GOLDENS") != nullptr) {
      std::ofstream(golden, std::ios::binary) << text;
    } else {
      EXPECT_EQ(text, readFile(golden)) << "GSHARD_UPDATE_GOLDENS=1 rewrites it";
    }
  }

 private:
  PlanCase item_;
};

// Heads and inner layers in parts: of the sums over `model`, one joins the attention and one the feed-forward network,
// forward, and the same backward, at any depth and wherever the axis divides the heads. Nothing else moves over it.
TEST(Plans, ALayerOfHeadsInPartsNeedsTwoSumsEachWay) {
  struct {
    std::string layout, mesh;
  } const meshes[] = {{"model", "model=2"}, {"model", "model=4"}, {"model", "model=8"}, {"both", "data=2,model=2"}};
  for (const auto& [layout, mesh] : meshes) {
    for (const int layers : {1, 3}) {
      SCOPED_TRACE(mesh + ", layers " + std::to_string(layers));
      const Json plan =
          planOf({"char_lm.gsd", mesh, "layouts/char_lm/" + layout + ".gsd"}, {{"layers", std::to_string(layers)}});
      for (const Json& function : plan["functions"]) {
        std::map<std::string, int> sums;
        for (const Json& entry : function["collectives"]) {
          if (joined(entry["axes"]).find("model") == std::string::npos) continue;
          EXPECT_EQ(entry["kind"], "all_reduce") << entry;
          ++sums[entry["phase"].get<std::string>()];
        }
        const std::string name = function["name"];
        if (name == "init") continue;
        EXPECT_EQ(sums["forward"], 2 * layers) << name;
        EXPECT_EQ(sums["backward"], name == "loss" ? 2 * layers : 0) << name;
        EXPECT_EQ(sums["update"], 0) << name;
      }
    }
  }
}

// GShard section 3.2: with tokens per device fixed, experts and groups grow with the devices, and what a device sends,
// holds and computes for them does not; the gate alone grows. The program is the same text.
TEST(Plans, ExpertsGrowWithTheDevices) {
  constexpr std::int64_t kTokens = 1024, kWidth = 256, kBuffer = 2 * kTokens * kWidth * 4;
  std::size_t collectives = 0;
  for (const std::int64_t devices : {2, 8, 64, 512, 2048}) {
    SCOPED_TRACE(devices);
    const std::string number = std::to_string(devices);
    const Json plan = planOf({"moe_layer.gsd", "d=" + number}, {{"G", number}, {"E", number}});
    for (const Json& function : plan["functions"]) {
      if (function["name"] != "loss") continue;
      std::map<std::string, int> moved;
      for (const Json& entry : function["collectives"]) {
        const std::string kind = entry["kind"], phase = entry["phase"];
        if (kind != "all_to_all") {
          EXPECT_EQ(kind, "all_reduce") << entry;
          continue;
        }
        ++moved[phase];
        EXPECT_EQ(entry["bytes"]["max"], kBuffer / devices * (devices - 1)) << entry;
        EXPECT_EQ(entry["bytes"]["total"], kBuffer * (devices - 1)) << entry;
        std::int64_t elements = 1;
        for (const std::int64_t size : entry["shape"]) elements *= size;
        EXPECT_EQ(elements * 4, kBuffer) << entry;
      }
      EXPECT_EQ(moved["forward"], 2);
      EXPECT_EQ(moved["backward"], 1) << "the tokens are inputs: nobody asks for their gradient";
      if (collectives == 0) collectives = function["collectives"].size();
      EXPECT_LE(function["collectives"].size(), collectives + 1)
          << "the gradient of the gate grows too large to combine";
    }
  }
}

TEST(Plans, EveryExampleHasACase) {
  std::set<std::string> named;
  for (const PlanCase& item : readCases()) named.insert(item.program);
  for (const auto& entry : fs::directory_iterator(kExamples)) {
    if (entry.path().extension() != ".gsd") continue;
    EXPECT_TRUE(named.contains(entry.path().filename().string())) << entry.path();
  }
}

TEST(Plans, EveryGoldenHasACase) {
  std::set<std::string> named;
  for (const PlanCase& item : readCases()) named.insert(item.name() + ".plan");
  for (const auto& entry : fs::directory_iterator(kGoldens)) {
    if (entry.path().extension() != ".plan") continue;
    EXPECT_TRUE(named.contains(entry.path().filename().string())) << entry.path();
  }
}

}  // namespace
}  // namespace gshard

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const gshard::PlanCase& item : gshard::readCases()) {
    testing::RegisterTest("Plans", item.name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [item]() -> testing::Test* { return new gshard::PlanTest(item); });
  }
  return RUN_ALL_TESTS();
}
