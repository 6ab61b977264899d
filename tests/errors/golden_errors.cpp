// Golden tests of messages: every tests/errors/*.gsd is parsed, elaborated and, when that finds no error, partitioned
// in process; codes and lines must be those of its `//~ CODE` marks (`//~^` one line above), and the rendered text that
// of the .stderr beside it. GSHARD_UPDATE_GOLDENS=1 rewrites .stderr; marks are written by hand alone.
//! lines at the top: `//! args: -D n=6 --mesh a=2 --devices 4 --layout part.gsd`. `// --- name.gsd` starts a further
//! file,
// which imports and --layout find.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "frontend/parse.h"
#include "ir/passes.h"
#include "partition/passes.h"
#include "sema/elaborate.h"
#include "support/render.h"
#include "support/text.h"

namespace gshard {
namespace {

namespace fs = std::filesystem;

std::string readFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The parts of a test: the program and further files. They are written to a folder of their own, since imports are
// looked up on disk.
std::map<std::string, std::string> filesOf(const std::string& name, const std::string& text) {
  std::map<std::string, std::string> files;
  std::string current = name;
  for (const std::string& line : splitText(text, '\n')) {
    if (line.starts_with("// --- ")) {
      current = line.substr(7);
      continue;
    }
    files[current] += line + "\n";
  }
  for (auto& [file, content] : files) {
    while (content.size() > 1 && content.ends_with("\n\n")) content.pop_back();
  }
  return files;
}

using Found = std::multiset<std::string>;  // "test.gsd:3 E0201"

void collectMarks(const std::string& file, const std::string& text, Found& marks) {
  const std::vector<std::string> lines = splitText(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::size_t at = lines[i].find("//~");
    while (at != std::string::npos) {
      std::size_t line = i + 1;
      std::size_t place = at + 3;
      for (; place < lines[i].size() && lines[i][place] == '^'; ++place) --line;
      std::istringstream words(lines[i].substr(place));
      std::string code;
      words >> code;
      marks.insert(file + ":" + std::to_string(line) + " " + code);
      at = lines[i].find("//~", at + 3);
    }
  }
}

void readArguments(const std::string& text, const fs::path& folder, ElaborateOptions& options) {
  for (const std::string& line : splitText(text, '\n')) {
    if (!line.starts_with("//! args:")) continue;
    std::istringstream words(line.substr(9));
    std::string word;
    while (words >> word) {
      std::string value;
      words >> value;
      if (word == "-D") {
        const std::size_t equals = value.find('=');
        options.defines.emplace_back(value.substr(0, equals), value.substr(equals + 1));
      } else if (word == "--mesh") {
        options.mesh = value;
      } else if (word == "--devices") {
        options.devices = std::stoll(value);
      } else if (word == "--rows") {
        options.rows = std::stoll(value);
      } else if (word == "--layout") {
        options.layouts.push_back((folder / value).string());
      } else {
        ADD_FAILURE() << "unknown argument " << word;
      }
    }
  }
}

// Global passes, then partitioning: where messages about splits arise.
void runPipelines(Module& module, const std::string& text, DiagSink& sink) {
  PassOptions options;
  options.strictSharding = text.find("//! sharding: strict") != std::string::npos;
  PassContext context{options, sink};
  for (const std::span<const Pass> passes : {globalPipeline(), partitionPipeline()}) {
    const PassRun run = runPasses(module, passes, context, {});
    ASSERT_FALSE(run.failure) << run.failure->pass << ": " << run.failure->fault;
    if (run.stopped) return;
  }
}

class ErrorsTest : public testing::Test {
 public:
  explicit ErrorsTest(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    const fs::path folder =
        fs::temp_directory_path() / ("gshard_errors_" + path_.stem().string() + "_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    const std::string name = path_.filename().string();
    const std::map<std::string, std::string> files = filesOf(name, readFile(path_));
    Found marks;
    for (const auto& [file, text] : files) {
      fs::create_directories((folder / file).parent_path());
      std::ofstream(folder / file, std::ios::binary) << text;
      collectMarks(file, text, marks);
    }
    ElaborateOptions options;
    options.stdlibPath = GSHARD_SOURCE_DIR "/stdlib";
    readArguments(files.at(name), folder, options);
    SourceManager sources;
    CollectingSink sink;
    std::string why;
    const std::optional<FileId> main = sources.addFileFromDisk((folder / name).string(), why);
    ASSERT_TRUE(main.has_value()) << why;
    const std::unique_ptr<ast::File> parsed = parseFile(*main, sources, sink);
    if (!sink.hasErrors()) {
      std::optional<Module> module = elaborate(*parsed, sources, options, sink);
      if (module && !sink.hasErrors()) runPipelines(*module, files.at(name), sink);
    }
    // Paths of this run are no part of a message.
    const auto clean = [&](std::string text) {
      for (const std::string& prefix : {folder.string() + "/", folder.string(), std::string(GSHARD_SOURCE_DIR "/")}) {
        for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
          text.erase(at, prefix.size());
      }
      return text;
    };
    Found reported;
    std::string rendered;
    for (const Diagnostic& diagnostic : sink.diagnostics()) {
      rendered += clean(renderText(diagnostic, sources));
      if (diagnostic.severity == Severity::Remark && !marks.empty() && !hasRemarkMarks(marks)) continue;
      std::string place = ":0";
      if (diagnostic.range.known()) {
        place = clean(sources.name(diagnostic.range.file)) + ":" +
                std::to_string(sources.lineColumn(diagnostic.range.file, diagnostic.range.begin).line);
      } else {
        place = name + ":1";  // options have no place: marked on the first line
      }
      reported.insert(place + " " + diagnostic.code);
    }
    fs::remove_all(folder);
    EXPECT_EQ(reported, marks) << rendered;
    const fs::path golden = fs::path(path_).replace_extension(".stderr");
    if (std::getenv("GSHARD_UPDATE_GOLDENS") != nullptr) {
      std::ofstream(golden, std::ios::binary) << rendered;
    } else {
      EXPECT_EQ(rendered, readFile(golden)) << "GSHARD_UPDATE_GOLDENS=1 rewrites it";
    }
  }

 private:
  static bool hasRemarkMarks(const Found& marks) {
    return std::any_of(marks.begin(), marks.end(),
                       [](const std::string& mark) { return mark.find(" R") != std::string::npos; });
  }

  fs::path path_;
};

}  // namespace
}  // namespace gshard

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(GSHARD_SOURCE_DIR "/tests/errors")) {
    if (entry.path().extension() == ".gsd") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    testing::RegisterTest("Errors", path.stem().string().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [path]() -> testing::Test* { return new gshard::ErrorsTest(path); });
  }
  return RUN_ALL_TESTS();
}
