// -g: line tables of the .gsd source in the binary, and what gdb makes of them: stops, steps, the line of a crash.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

const std::string kProgram =
    "entry fn f(x: f32[1000], y: f32[1000]) -> f32[1000] {\n"
    "    let a = exp(x)\n"
    "    let b = a * y\n"
    "    let total = sum(b)\n"
    "    return log(b + 1.0) / total\n"
    "}\n";

std::set<int> linesOf(const std::string& text, const std::string& pattern) {
  std::set<int> lines;
  const std::regex regex(pattern);
  for (auto at = std::sregex_iterator(text.begin(), text.end(), regex); at != std::sregex_iterator(); ++at)
    lines.insert(std::stoi((*at)[1].str()));
  return lines;
}

bool contains(const std::set<int>& lines, std::initializer_list<int> wanted) {
  for (const int line : wanted) {
    if (!lines.contains(line)) return false;
  }
  return true;
}

TEST(Debug, LineTablesNameTheSource) {
  const Scratch scratch;
  scratch.write("lines.gsd", kProgram);
  for (const std::string level : {"-O0", "-O3"}) {
    const Outcome made = gshardc({"lines.gsd", "-g", level, "-o", "lines"}, scratch.path());
    ASSERT_EQ(made.code, 0) << made.all();
    const Outcome table = runCommand({"readelf", "--debug-dump=decodedline", "lines"}, scratch.path());
    ASSERT_EQ(table.code, 0) << table.err;
    const std::set<int> lines = linesOf(table.out, "lines\\.gsd +([0-9]+) ");
    EXPECT_TRUE(contains(lines, {2, 3, 4, 5})) << level << "\n" << table.out.substr(0, 2000);
    EXPECT_EQ(runCommand({"./lines", "f", "-q"}, scratch.path()).code, 0);
  }
  ASSERT_EQ(gshardc({"lines.gsd", "-o", "plain"}, scratch.path()).code, 0);
  const Outcome plain = runCommand({"readelf", "--debug-dump=decodedline", "plain"}, scratch.path());
  EXPECT_EQ(plain.out.find("lines.gsd"), std::string::npos) << "without -g there are none";
}

TEST(Debug, ResultsAreThoseWithout) {
  const Scratch scratch;
  scratch.write("lines.gsd", kProgram);
  ASSERT_EQ(gshardc({"lines.gsd", "-g", "-o", "with"}, scratch.path()).code, 0);
  ASSERT_EQ(gshardc({"lines.gsd", "-o", "without"}, scratch.path()).code, 0);
  const Outcome with = runCommand({"./with", "f", "-q"}, scratch.path());
  EXPECT_EQ(with.out, runCommand({"./without", "f", "-q"}, scratch.path()).out);
  EXPECT_GT(with.out.size(), 100u);
}

// Empty where gdb is missing or may not start programs (containers without ptrace).
std::string gdb(const Scratch& scratch, const Words& commands) {
  Words words = {"gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"};
  for (const std::string& command : commands) words.insert(words.end(), {"-ex", command});
  words.insert(words.end(), {"--args", "./lines", "f", "-q"});
  const Outcome outcome = runCommand(words, scratch.path());
  const std::string all = outcome.out + outcome.err;
  if (outcome.code == 127 || outcome.code == -1 || all.find("ptrace") != std::string::npos) return "";
  return all;
}

TEST(Debug, GdbStopsStepsAndTellsTheLineOfACrash) {
  if (isSanitized()) GTEST_SKIP() << "SKIP: crashes are the sanitizer's, and so are the frames around a kernel";
  const Scratch scratch;
  scratch.write("lines.gsd", kProgram);
  ASSERT_EQ(gshardc({"lines.gsd", "-g", "-O1", "-o", "lines"}, scratch.path()).code, 0);
  const Words walk = {
      "break lines.gsd:3", "run", "backtrace", "delete", "step", "step", "step", "step", "step", "step"};
  const std::string stopped = gdb(scratch, walk);
  if (stopped.empty()) GTEST_SKIP() << "SKIP: gdb cannot run programs here";
  EXPECT_TRUE(std::regex_search(stopped, std::regex("Breakpoint 1, f_.* at lines\\.gsd:3"))) << stopped;
  EXPECT_NE(stopped.find("let b = a * y"), std::string::npos) << stopped;
  EXPECT_TRUE(std::regex_search(stopped, std::regex("#1 .*gshard"))) << "the runtime is the caller\n" << stopped;
  // From line to line of the source.
  const std::set<int> seen = linesOf(stopped, "\n([0-9]+)\t");
  EXPECT_GE(seen.size(), 2u) << stopped;
  for (const int line : seen) EXPECT_TRUE(line >= 1 && line <= 6) << stopped;

  // A kernel that is handed no memory: what a crash in generated code looks like.
  const std::string name = std::regex_replace(stopped, std::regex("[^]*Breakpoint 1, (f_[a-z0-9_]+)[^]*"), "$1");
  const std::string crashed =
      gdb(scratch, {"break *" + name, "run", "set $rdi = 0", "delete", "continue", "backtrace 1"});
  EXPECT_NE(crashed.find("SIGSEGV"), std::string::npos) << crashed;
  EXPECT_TRUE(std::regex_search(crashed, std::regex("#0 .*" + name + ".* at lines\\.gsd:[2-5]"))) << crashed;
}

}  // namespace
}  // namespace gshard::testing
