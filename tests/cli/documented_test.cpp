// The error index, for messages of command lines: the lines after "Wrong" of a page end with its code, those after
// "Right" end well and without it. Pages of programs alone are tests of tests/errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kPages = fs::path(GSHARD_SOURCE_DIR) / "docs/errors";

struct Page {
  std::string program, wrong, right;
};

Page readPage(const fs::path& path) {
  Page page;
  std::string* into = nullptr;
  bool isRight = false;
  std::istringstream lines(readFile(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      into = line == "```gsd" ? &page.program : line == "```sh" ? (isRight ? &page.right : &page.wrong) : nullptr;
    } else if (into != nullptr) {
      *into += line + "\n";
    } else if (line.starts_with("Right")) {
      isRight = true;
    }
  }
  return page;
}

// In a folder with the program, with gshardc found by its name.
Outcome runLines(const std::string& program, const std::string& lines) {
  const Scratch scratch;
  if (!program.empty()) scratch.write("model.gsd", program);
  return runCommand({"bash", "-ec", lines}, scratch.path());
}

TEST(Documented, CommandLines) {
  // One cache for all pages: most show one program.
  const Scratch cache;
  const fs::path tools = fs::path(GSHARD_COMPILER).parent_path();
  setenv("GSHARD_CACHE_DIR", cache.path().c_str(), 1);
  setenv("PATH", (tools.string() + ":" + std::getenv("PATH")).c_str(), 1);
  std::set<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kPages)) paths.insert(entry.path());
  std::size_t shown = 0;
  for (const fs::path& path : paths) {
    const std::string code = path.stem().string();
    const Page page = readPage(path);
    if (page.wrong.empty()) continue;
    ++shown;
    const Outcome wrong = runLines(page.program, page.wrong);
    EXPECT_NE(wrong.code, 0) << code << "\n" << page.wrong << wrong.all();
    EXPECT_NE(wrong.code, 70) << code << "\n" << page.wrong << wrong.all();
    EXPECT_LT(wrong.code, 128) << code << "\n" << page.wrong << wrong.all();
    EXPECT_NE(wrong.err.find("[" + code + "]"), std::string::npos) << code << "\n" << page.wrong << wrong.all();
    ASSERT_FALSE(page.right.empty()) << code;
    const Outcome right = runLines(page.program, page.right);
    EXPECT_EQ(right.code, 0) << code << "\n" << page.right << right.all();
    EXPECT_EQ(right.err.find("[" + code + "]"), std::string::npos) << code << "\n" << page.right << right.all();
  }
  EXPECT_GT(shown, 30u);
  unsetenv("GSHARD_CACHE_DIR");
}

}  // namespace
}  // namespace gshard::testing
