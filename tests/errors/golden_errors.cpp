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
        inside = line == "```gsd" || line == "```ir";
        if (line == "```ir") extension_ = ".ir";
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
    expectFixesHold(code + extension_, filesOf(code + extension_, wrong), wrongArguments);
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
    const std::string name = path_.stem().string() + extension_;
    std::vector<std::string> codes;
    for (const Message& message : compileCase(name, filesOf(name, program), arguments)) {
      if (message.severity != Severity::Remark || remarks) codes.push_back(message.code);
    }
    return join(codes, " ");
  }

  fs::path path_;
  std::string extension_ = ".gsd";
};

struct Row {
  std::string code, severity, text;
};

const Row kRows[] = {
#define GSHARD_DIAG(code, severity, name, text, types) {#code, #severity, text},
#include "codegen/diagnostics.def"
#include "driver/diagnostics.def"
#include "frontend/diagnostics.def"
#include "ir/diagnostics.def"
#include "partition/diagnostics.def"
#include "runtime/diagnostics.def"
#include "sema/diagnostics.def"
#undef GSHARD_DIAG
};

// `{}` of a message stands for what the program has there.
std::string readable(std::string text) {
  for (std::size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}")) text.replace(at, 2, "…");
  return text;
}

// Codes that no program or command line shows, and why; all others have a wrong and a right one.
const std::map<std::string, std::string> kNoProgram = {
    {"E0504", "needs a machine without a compiler"},
    {"E0505", "needs a linker that fails"},
    {"E0506", "needs a broken installation"},
    {"E0507", "needs a disk that is full"},
    {"E0705", "needs mpirun"},
    {"E0706", "needs a machine without MPI"},
    {"E0751", "needs a machine without memory"},
    {"E0752", "a bug of gshardc"},
    {"E0755", "a bug of gshardc"},
    {"E0756", "needs a device that hangs"},
    {"E0757", "a bug of gshardc"},
    {"E0758", "needs a device that dies"},
};

TEST(Index, EveryCodeHasAPageWithAWrongProgram) {
  for (const Row& row : kRows) {
    const std::string page = readFile(GSHARD_SOURCE_DIR "/docs/errors/" + row.code + ".md");
    EXPECT_TRUE(page.starts_with("# " + row.code + ": ")) << row.code << " has no page";
    EXPECT_LE(splitText(page, '\n').size(), 41u) << row.code;
    const bool programs = page.find("```gsd") != std::string::npos || page.find("```ir") != std::string::npos ||
                          page.find("```sh") != std::string::npos;
    EXPECT_NE(programs, kNoProgram.contains(row.code)) << row.code;
    // One program is enough where the page says that nothing is wrong: warnings and remarks.
    const bool mistake = row.severity == "Error" && !kNoProgram.contains(row.code);
    EXPECT_TRUE(!mistake || page.find("\nRight") != std::string::npos || page.find(":\n\n```gsd") != std::string::npos)
        << row.code << " shows no right program";
  }
}

// docs/errors/README.md lists all codes by what they are about.
TEST(Index, ListsAllCodes) {
  static const std::map<std::string, std::string> kHundreds = {
      {"01", "Characters, tokens, grammar"},
      {"02", "Names, imports, models, generics, compile-time values, annotations, `train`"},
      {"03", "Types and shapes; the text form of the IR; rows in blocks"},
      {"04", "How tensors are split"},
      {"05", "Machine code and linking"},
      {"06", "Options and files of gshardc"},
      {"07", "Running the program: options, data, checkpoints, devices"}};
  std::map<std::string, std::map<std::string, std::string>> sections;
  for (const Row& row : kRows) sections[row.code.substr(1, 2)][row.code] = row.text;
  std::string text =
      "# The error index\n\nEvery message has a code, and every code a page with a wrong and a right program; `gshardc "
      "explain "
      "E0312` prints it.\nE: errors, W: warnings, R: remarks, shown when asked for. `…` stands for what the program "
      "has "
      "there.\nThis list is made from the tables of messages (`./dev golden`).\n";
  for (const auto& [hundred, rows] : sections) {
    text += "\n## " + kHundreds.at(hundred) + "\n\n| code | message |\n|---|---|\n";
    for (const auto& [code, message] : rows) {
      std::string cell;
      for (const char c : readable(message)) cell += c == '|' ? std::string("\\|") : std::string(1, c);
      text += "| [" + code + "](" + code + ".md) | " + cell + " |\n";
    }
  }
  const std::string path = GSHARD_SOURCE_DIR "/docs/errors/README.md";
  if (std::getenv("GSHARD_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
  } else {
    EXPECT_EQ(text, readFile(path)) << "GSHARD_UPDATE_GOLDENS=1 rewrites it";
  }
}

template <class Test>
void registerAll(const char* suite, const std::string& folder, const std::string& extension, std::string_view stages) {
  std::vector<fs::path> paths;
  if (!fs::exists(folder)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string stem = entry.path().stem().string();
    const bool ours = stages.empty() || (stem.size() == 5 && stages.find(stem[2]) != std::string_view::npos);
    // Pages with command lines are run by tests/cli.
    const bool commands = readFile(entry.path().string()).find("```sh") != std::string::npos;
    if (entry.path().extension() == extension && ours && !commands) paths.push_back(entry.path());
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
  using namespace gshard::testing_errors;
  testing::InitGoogleTest(&argc, argv);
  registerAll<ErrorsTest>("Errors", GSHARD_SOURCE_DIR "/tests/errors", ".gsd", "");
  registerAll<DocumentedTest>("Documented", GSHARD_SOURCE_DIR "/docs/errors", ".md", "1234");
  return RUN_ALL_TESTS();
}
