// Golden tests of messages. Every tests/errors/*.gsd: codes and lines must be those of its `//~ CODE` marks (`//~^` one
// line above), and the rendered text that of the .stderr beside it; GSHARD_UPDATE_GOLDENS=1 rewrites .stderr, marks are
// written by hand alone. A line `//! args: --devices 4` gives arguments, `// --- name.gsd` starts a further file.
// Every docs/errors/*.md of a code of these stages: its wrong program gives exactly this code, its right one nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "compile_case.h"
#include "support/text.h"

namespace gshard::testing_errors {
namespace {

namespace fs = std::filesystem;
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

std::string argumentsOf(const std::string& text) {
  std::string arguments;
  for (const std::string& line : splitText(text, '\n')) {
    if (line.starts_with("//! args:")) arguments += line.substr(9) + " ";
    if (line.starts_with("//! sharding: strict")) arguments += "--sharding=strict ";
  }
  return arguments;
}

// A fix marked machine-applicable removes its message and adds none of its stage (what later stages say shows only once
// the earlier ones are silent: the first digit of a code is the stage).
void expectFixesHold(const std::string& name, const std::map<std::string, std::string>& files,
                     const std::string& arguments) {
  const std::vector<Message> before = compileCase(name, files, arguments);
  for (const Message& message : before) {
    for (const std::vector<FileEdit>& fix : message.fixes) {
      std::multiset<std::string> left;
      for (const Message& other : before) {
        if (&other != &message) left.insert(other.code);
      }
      for (const Message& after : compileCase(name, fixedFiles(files, fix), arguments)) {
        if (after.code.substr(0, 3) != message.code.substr(0, 3)) continue;
        const auto known = left.find(after.code);
        EXPECT_NE(known, left.end()) << "the fix of\n" << message.rendered << "leaves\n" << after.rendered;
        if (known != left.end()) left.erase(known);
      }
    }
  }
}

class ErrorsTest : public testing::Test {
 public:
  explicit ErrorsTest(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    const std::string name = path_.filename().string();
    const std::map<std::string, std::string> files = filesOf(name, readFile(path_.string()));
    Found marks;
    for (const auto& [file, text] : files) collectMarks(file, text, marks);
    // Remarks count where one is marked; elsewhere they are only shown.
    const bool remarks = std::any_of(marks.begin(), marks.end(),
                                     [](const std::string& mark) { return mark.find(" R") != std::string::npos; });
    Found reported;
    std::string rendered;
    for (const Message& message : compileCase(name, files, argumentsOf(files.at(name)))) {
      rendered += message.rendered;
      if (message.severity != Severity::Remark || remarks) reported.insert(message.place + " " + message.code);
    }
    EXPECT_EQ(reported, marks) << rendered;
    expectFixesHold(name, files, argumentsOf(files.at(name)));
    const fs::path golden = fs::path(path_).replace_extension(".stderr");
    if (std::getenv("GSHARD_UPDATE_GOLDENS") != nullptr) {
      std::ofstream(golden, std::ios::binary) << rendered;
    } else {
      EXPECT_EQ(rendered, readFile(golden.string())) << "GSHARD_UPDATE_GOLDENS=1 rewrites it";
    }
  }

 private:
  fs::path path_;
};

// An entry of the error index: a block after a line that starts with "Wrong", one after a line that starts with
// "Right". Arguments stand in those lines: "compiled with `-D n=3`"; the right program has the wrong one's, if its line
// says nothing.
class DocumentedTest : public testing::Test {
 public:
  explicit DocumentedTest(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    const std::string code = path_.stem().string();
    std::string wrong, right, wrongArguments, rightArguments;
    std::string* into = nullptr;
    bool isRight = false, inside = false;
    for (const std::string& line : splitText(readFile(path_.string()), '\n')) {
      if (line.starts_with("```")) {
        inside = line == "```gsd";
        if (inside) into = isRight ? &right : &wrong;
      } else if (inside) {
        *into += line + "\n";
      } else if (line.starts_with("Wrong")) {
        wrongArguments = rightArguments = quotedArguments(line);
      } else if (line.starts_with("Right") || (!wrong.empty() && line.ends_with(":"))) {
        isRight = true;
        if (line.find("without `") != std::string::npos) rightArguments.clear();
        if (line.find(" with `") != std::string::npos) rightArguments = quotedArguments(line);
      }
    }
    ASSERT_FALSE(wrong.empty());

    EXPECT_EQ(codesOf(wrong, wrongArguments, code[0] == 'R'), code);
    expectFixesHold(code + ".gsd", filesOf(code + ".gsd", wrong), wrongArguments);
    if (!right.empty()) {
      EXPECT_EQ(codesOf(right, rightArguments, code[0] == 'R'), "");
    }
    EXPECT_LE(splitText(readFile(path_.string()), '\n').size(), 41u);
  }

 private:
  static std::string quotedArguments(const std::string& line) {
    const std::size_t begin = line.find("with `");
    return begin == std::string::npos ? "" : line.substr(begin + 6, line.find('`', begin + 6) - begin - 6);
  }
  std::string codesOf(const std::string& program, const std::string& arguments, bool remarks) const {
    const std::string name = path_.stem().string() + ".gsd";
    std::vector<std::string> codes;
    for (const Message& message : compileCase(name, filesOf(name, program), arguments)) {
      if (message.severity != Severity::Remark || remarks) codes.push_back(message.code);
    }
    return join(codes, " ");
  }

  fs::path path_;
};

template <class Test>
void registerAll(const char* suite, const std::string& folder, const std::string& extension, std::string_view stages) {
  std::vector<fs::path> paths;
  if (!fs::exists(folder)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string stem = entry.path().stem().string();
    const bool ours = stages.empty() || (stem.size() == 5 && stages.find(stem[2]) != std::string_view::npos);
    if (entry.path().extension() == extension && ours) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    testing::RegisterTest(suite, path.stem().string().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [path]() -> testing::Test* { return new Test(path); });
  }
}

}  // namespace
}  // namespace gshard::testing_errors

int main(int argc, char** argv) {
  using namespace gshard::testing_errors;  // NOLINT
  testing::InitGoogleTest(&argc, argv);
  registerAll<ErrorsTest>("Errors", GSHARD_SOURCE_DIR "/tests/errors", ".gsd", "");
  registerAll<DocumentedTest>("Documented", GSHARD_SOURCE_DIR "/docs/errors", ".md", "1234");
  return RUN_ALL_TESTS();
}
