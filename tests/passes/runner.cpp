// Golden tests of passes: tests/passes/<pass>/*.ir, cases parted by `// -----`, in each the IR, a line `// ---- after`,
// and the IR after the pass (or `// unchanged`), preceded by what it told the user as `// error[E0341]: …`. Every case
// is a test. GSHARD_UPDATE_GOLDENS=1 rewrites what stands below `// ---- after`; any other value, only where the path
// contains it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/passes.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "partition/passes.h"
#include "support/text.h"

namespace gshard {
namespace {

constexpr std::string_view kCaseMark = "// -----\n";
constexpr std::string_view kAfterMark = "// ---- after\n";

constexpr Pass kPasses[] = {
#define GSHARD_PASS(function, name, help, form) pass::function,
#include "ir/passes.def"
#include "partition/passes.def"
#undef GSHARD_PASS
};

const Pass* findPass(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kPasses), std::end(kPasses), [&](const Pass& pass) { return pass.name == name; });
  return found == std::end(kPasses) ? nullptr : found;
}

struct Case {
  std::string before, after;
};

std::string trimmed(std::string_view text) {
  return std::string(trim(text));
}

std::vector<Case> readCases(const std::string& text) {
  std::vector<Case> cases;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(kCaseMark, at), text.size());
    const std::string_view part = std::string_view(text).substr(at, end - at);
    const std::size_t mark = part.find(kAfterMark);
    Case made{trimmed(part.substr(0, mark)), ""};
    if (mark != std::string_view::npos) made.after = trimmed(part.substr(mark + kAfterMark.size()));
    cases.push_back(std::move(made));
    at = end + kCaseMark.size();
  }
  return cases;
}

std::string describe(const Diagnostic& diagnostic) {
  return "// " + std::string(severityName(diagnostic.severity)) + "[" + diagnostic.code + "]: " + diagnostic.message +
         "\n";
}

// What stands, or should stand, below the mark. A fault of the test or of the pass is said in words instead.
std::string runCase(const Pass& pass, const std::string& before) {
  SourceManager sources;
  CollectingSink sink;
  const FileId file = sources.addFile("case.ir", before);
  std::optional<Module> module = parseModule(file, sources, sink);
  std::string told;
  for (const Diagnostic& diagnostic : sink.diagnostics()) told += describe(diagnostic);
  if (!module || sink.hasErrors()) return "the case does not parse:\n" + told;
  const std::string textBefore = trimmed(printModule(*module));
  PassOptions options;
  PassContext context{options, sink};
  pass.run(*module, context);
  for (const Diagnostic& diagnostic : sink.diagnostics()) told += describe(diagnostic);
  if (const std::optional<std::string> fault = verify(*module, pass.form))
    return told + "the verifier: " + *fault + "\n" + printModule(*module);
  const std::string textAfter = trimmed(printModule(*module));
  return trimmed(told + (textAfter == textBefore ? "// unchanged" : textAfter));
}

std::string readFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void rewrite(const std::filesystem::path& path, const Pass& pass) {
  std::string text;
  for (const Case& each : readCases(readFile(path))) {
    if (!text.empty()) text += "\n" + std::string(kCaseMark);
    text += each.before + "\n\n" + std::string(kAfterMark) + runCase(pass, each.before) + "\n";
  }
  std::ofstream(path) << text;
}

// A pass that nobody runs is a pass that nobody tests in company. Those named print-* are asked for by name.
TEST(Passes, EveryPassIsInAPipeline) {
  for (const Pass& pass : kPasses) {
    if (pass.name.starts_with("print-")) continue;
    bool isRun = false;
    for (const Pass& each : globalPipeline()) isRun = isRun || each.name == pass.name;
    for (const Pass& each : partitionPipeline()) isRun = isRun || each.name == pass.name;
    EXPECT_TRUE(isRun) << pass.name;
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(GSHARD_SOURCE_DIR) / "tests" / "passes" / pass.name))
        << pass.name << " has no goldens";
  }
}

class GoldenCase : public testing::Test {
 public:
  GoldenCase(const Pass& pass, Case golden) : pass_(pass), case_(std::move(golden)) {}
  void TestBody() override { EXPECT_EQ(runCase(pass_, case_.before), case_.after) << "of:\n" << case_.before; }

 private:
  const Pass& pass_;
  Case case_;
};

class UnknownPass : public testing::Test {
 public:
  void TestBody() override { FAIL() << "no pass has the name of this folder"; }
};

void registerFile(const std::string& passName, const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  const Pass* pass = findPass(passName);
  if (pass == nullptr) {
    testing::RegisterTest("Passes", (passName + "." + stem).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [] { return new UnknownPass; });
    return;
  }
  const char* update = std::getenv("GSHARD_UPDATE_GOLDENS");
  if (update != nullptr && (std::string_view(update) == "1" || path.string().find(update) != std::string::npos))
    rewrite(path, *pass);
  const std::vector<Case> cases = readCases(readFile(path));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = passName + "." + stem + "." + std::to_string(i);
    testing::RegisterTest("Passes", name.c_str(), nullptr, nullptr, path.c_str(), 1,
                          [pass, each = cases[i]]() -> testing::Test* { return new GoldenCase(*pass, each); });
  }
}

void registerAll() {
  const std::filesystem::path root = std::filesystem::path(GSHARD_SOURCE_DIR) / "tests" / "passes";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".ir") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) registerFile(path.parent_path().filename().string(), path);
}

}  // namespace
}  // namespace gshard

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gshard::registerAll();
  return RUN_ALL_TESTS();
}
