// The command line of gshardc: exit codes, help, every kind of --emit, targets, reading IR back in, and the commands.
// In words and bytes only; what the made programs compute is tested in binary_test.cpp and tests/run. Over 400 lines,
// since all cases are of one program, gshardc, and share its small inputs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

namespace fs = std::filesystem;

const std::string kExamples = GSHARD_SOURCE_DIR "/examples";
const std::string kRows = GSHARD_SOURCE_DIR "/tests/cli/rows.gsd";
const std::string kSmall = kExamples + "/mlp_small.gsd";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expectEnd(const Outcome& outcome, int code, const Words& said = {}) {
  EXPECT_EQ(outcome.code, code) << outcome.all();
  for (const std::string& part : said)
    EXPECT_TRUE(has(outcome.err, part)) << "not said: " << part << "\n" << outcome.all();
}

const std::string kBroken =
    "entry fn f(x: f32[4, 3]) -> f32[4] {\n"
    "    return sum(y, axis: 1)\n"
    "}\n";

TEST(ExitCodes, OneForErrorsInTheProgram) {
  const Scratch scratch;
  const std::string file = scratch.write("broken.gsd", kBroken);
  expectEnd(gshardc({"broken.gsd", "-o", "out"}, scratch.path()), 1,
            {"broken.gsd:2:16: error[E0201]: no name `y` in scope", "error: 1 error in broken.gsd"});
  expectEnd(gshardc({"check", file}), 1, {"error[E0201]"});
  expectEnd(gshardc({"run", file}), 1, {"error[E0201]"});
  expectEnd(gshardc({"explain", file}), 1, {"error[E0201]"});
  expectEnd(gshardc({"verify", file}), 1, {"error[E0201]"});
  EXPECT_FALSE(fs::exists(scratch.path() / "out"));
}

TEST(ExitCodes, TwoForUsage) {
  const Scratch scratch;
  expectEnd(gshardc({kSmall, "--layuot", "x"}), 2, {"no option `--layuot`", "did you mean `--layout`?"});
  expectEnd(gshardc({"check", kSmall, "--devcies=3"}), 2, {"did you mean `--devices`?"});
  expectEnd(gshardc({"chek", kSmall}), 2, {"did you mean the command `check`?"});
  expectEnd(gshardc({"compile", kSmall}), 2, {"no command `compile`: a file alone is compiled; commands: run, check"});
  expectEnd(gshardc({kSmall, "--emit=oj"}), 2, {"no kind `oj`", "did you mean `obj`?"});
  expectEnd(gshardc({"check", kSmall, "-D", "btach=3"}), 2, {"no constant `btach`", "did you mean `batch`?"});
  expectEnd(gshardc({"check", kSmall, "-D", "batch=x"}), 2, {"int is needed"});
  expectEnd(gshardc({"check", kSmall, "-D", "batch"}), 2, {"`batch` is not NAME=VALUE"});
  expectEnd(gshardc({"check", kSmall, "--mesh", "data=0"}), 2, {"`--mesh data=0` cannot be read"});
  expectEnd(gshardc({"check", kSmall, "--mesh", "data=2", "--mesh", "data=3"}), 2);
  expectEnd(gshardc({"check", kSmall, "--devices", "0"}), 2);
  expectEnd(gshardc({"check", kSmall, "--platform", "lptop"}), 2, {"no platform `lptop`", "laptop"});
  expectEnd(gshardc({"check", kSmall, "--dump-after", "partiton"}), 2, {"did you mean `partition`?"});
  expectEnd(gshardc({kSmall, "--emit=obj", "--target", "vax"}), 2, {"`vax`"});
  expectEnd(gshardc({kSmall, "--target", "aarch64-linux-gnu", "-o", scratch.file("out")}), 2, {"--emit=obj"});
  expectEnd(gshardc({"verify", kSmall, "-n", "two"}), 2, {"`two`"});
  expectEnd(gshardc({"explain", "E9999"}), 2, {"`E9999`"});
  expectEnd(gshardc({"check"}), 2);
}

TEST(ExitCodes, ThreeForFiles) {
  const Scratch scratch;
  expectEnd(gshardc({"nowhere.gsd", "-o", "out"}, scratch.path()), 3,
            {"`nowhere.gsd` cannot be read: No such file or directory"});
  expectEnd(gshardc({"check", scratch.path()}), 3, {"is a folder"});
  expectEnd(gshardc({"check", kSmall, "--layout", "nowhere.gsd"}, scratch.path()), 3, {"`nowhere.gsd` cannot be read"});
  expectEnd(gshardc({kSmall, "-o", "nowhere/out"}, scratch.path()), 3, {"nowhere/out"});
  expectEnd(gshardc({kSmall, "--emit=ir", "-o", "nowhere/out.ir"}, scratch.path()), 3, {"nowhere/out.ir"});
}

// IR that breaks its own rules is what a wrong pass would yield.
TEST(ExitCodes, SeventyForOurOwnBugs) {
  const Scratch scratch;
  expectEnd(gshardc({kSmall, "--emit=spmd-ir=good.spmd.ir"}, scratch.path()), 0);
  std::string text = readFile(scratch.file("good.spmd.ir"));
  for (std::size_t at = text.find("{[data, _]}"); at != std::string::npos; at = text.find("{[data, _]}"))
    text.replace(at, 11, "{[_, _]}");
  scratch.write("broken.spmd.ir", text);
  const Outcome outcome = gshardc({"broken.spmd.ir", "-o", "out"}, scratch.path());
  expectEnd(outcome, 70, {"this is a bug in gshardc", "and not in the program"});
  std::smatch file;
  ASSERT_TRUE(std::regex_search(outcome.err, file, std::regex("gshardc-crash-[0-9]+\\.[a-z]+"))) << outcome.err;
  const std::string report = readFile(scratch.file(file.str()));
  EXPECT_TRUE(has(report, "broken.spmd.ir")) << "flags";
  EXPECT_TRUE(has(report, "all_reduce")) << "what was compiled";
}

// The options of issue 3 and of ux.md section 1, as far as they exist.
TEST(Help, ListsEveryOption) {
  const Outcome help = gshardc({"--help"});
  EXPECT_EQ(gshardc({"help"}).out, help.out);
  EXPECT_EQ(help.code, 0);
  for (const char* option :
       {"--mesh",        "--devices", "--layout",      "--platform", "--sharding",    "--rows",
        "-D ",           "-I ",       "--error-limit", "--color",    "--diagnostics", "-W ",
        "-R ",           "-w ",       "-v,",           "-q,",        "--dump-after",  "--print-passes",
        "--time-passes", "-O ",       "-g ",           "--threads",  "--mcpu",        "--target",
        "-o ",           "--emit",    "--version",     "--help",     "exit codes",    "examples"}) {
    EXPECT_TRUE(has(help.out, option)) << option << "\n" << help.out;
  }
  const std::map<std::string, Words> own = {{"run", {"-n ", "--mpi", "-O ", "--threads"}},
                                            {"check", {"--mesh", "-W "}},
                                            {"explain", {"--plan", "--line"}},
                                            {"verify", {"-n ", "--mpi", "--steps"}}};
  for (const auto& [command, options] : own) {
    const Outcome text = gshardc({command, "--help"});
    EXPECT_EQ(gshardc({"help", command}).out, text.out);
    EXPECT_EQ(text.code, 0);
    for (const std::string& option : options)
      EXPECT_TRUE(has(text.out, option)) << command << " " << option << "\n" << text.out;
  }
}

// Of each command: nothing that its help lists is refused as unknown.
TEST(Help, ListsOnlyWhatIsKnown) {
  for (const std::string command : {"", "run", "check", "explain", "verify", "fmt"}) {
    const Words words = command.empty() ? Words{"--help"} : Words{command, "--help"};
    const std::string text = gshardc(words).out;
    const std::regex option("\\n  (?:-[A-Za-z],)?(--[a-z-]+)");
    for (auto at = std::sregex_iterator(text.begin(), text.end(), option); at != std::sregex_iterator(); ++at) {
      Words asked = {(*at)[1].str(), "--help"};
      if (!command.empty()) asked.insert(asked.begin(), command);
      EXPECT_FALSE(has(gshardc(asked).err, "no option")) << command << " " << (*at)[1].str();
    }
  }
}

TEST(Help, WithoutArgumentsEndsWithTwo) {
  const Outcome outcome = gshardc({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.out, "Usage: gshardc")) << outcome.all();
}

TEST(Help, Version) {
  const Outcome outcome = gshardc({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(std::regex_search(outcome.out, std::regex("^gshardc [0-9]+\\.[0-9]+\\.[0-9]+\n"))) << outcome.out;
  for (const char* part : {"LLVM", "MPI"}) EXPECT_TRUE(has(outcome.out, part)) << outcome.out;
}

TEST(Emit, EveryKindTwiceTheSameBytesAndNoPathOfThisMachine) {
  const Scratch scratch;
  for (const std::string kind : {"ast", "ir", "sharded-ir", "spmd-ir", "comm-plan", "llvm-ir", "asm", "obj"}) {
    const std::string first = scratch.file(kind + ".1"), second = scratch.file(kind + ".2");
    expectEnd(gshardc({"mlp_small.gsd", "--emit=" + kind, "-o", first}, kExamples), 0);
    expectEnd(gshardc({"mlp_small.gsd", "--emit=" + kind + "=" + second}, kExamples), 0);
    const std::string bytes = readFile(first);
    EXPECT_GT(bytes.size(), 100u) << kind;
    EXPECT_TRUE(bytes == readFile(second)) << kind << " differs between two compiles";
    EXPECT_FALSE(has(bytes, GSHARD_SOURCE_DIR)) << kind << " names a folder of this machine";
  }
}

TEST(Emit, SeveralKindsAtOnceAndStandardOutput) {
  const Scratch scratch;
  expectEnd(gshardc({kSmall, "--emit=ir,spmd-ir=two.txt,comm-plan"}, scratch.path()), 0);
  for (const char* file : {"mlp_small.ir", "two.txt", "mlp_small.plan.json"})
    EXPECT_TRUE(fs::exists(scratch.path() / file)) << file;
  const Outcome onStdout = gshardc({kSmall, "--emit=ir"}, scratch.path());
  EXPECT_EQ(onStdout.out, readFile(scratch.file("mlp_small.ir")));
  EXPECT_EQ(gshardc({kSmall, "--emit=ir", "-o", "-"}, scratch.path()).out, onStdout.out);
  const nlohmann::json plan = nlohmann::json::parse(readFile(scratch.file("mlp_small.plan.json")));
  EXPECT_EQ(plan["format"], 1);
  EXPECT_EQ(plan["devices"], 4);
  expectEnd(gshardc({kSmall, "--emit=ir=-,spmd-ir=-"}, scratch.path()), 2, {"stdout"});
}

// Little-endian 16 bits at offset 18 of an ELF file: the machine.
int elfMachine(const std::string& bytes) {
  if (bytes.size() < 20 || !bytes.starts_with("\x7f"
                                              "ELF"))
    return -1;
  return static_cast<unsigned char>(bytes[18]) + 256 * static_cast<unsigned char>(bytes[19]);
}

TEST(Emit, ObjectsForEveryTarget) {
  const Scratch scratch;
  constexpr int kX86 = 62, kArm = 183;
  const std::vector<std::pair<Words, int>> targets = {{{"--target", "aarch64-linux-gnu"}, kArm},
                                                      {{"--target", "x86_64-linux-gnu", "--mcpu", "x86-64"}, kX86},
                                                      {{"--target", "x86_64-linux-gnu", "--mcpu", "x86-64-v3"}, kX86},
                                                      {{"--target", "x86_64-linux-gnu", "--mcpu", "x86-64-v4"}, kX86}};
  std::vector<std::string> objects;
  for (const auto& [options, machine] : targets) {
    Words words = {kExamples + "/digits_mlp.gsd", "--emit=obj", "-o", scratch.file("out.o")};
    words.insert(words.end(), options.begin(), options.end());
    expectEnd(gshardc(words), 0);
    objects.push_back(readFile(scratch.file("out.o")));
    EXPECT_EQ(elfMachine(objects.back()), machine) << options.back();
  }
  for (std::size_t i = 1; i < objects.size(); ++i)
    EXPECT_FALSE(objects[i] == objects[i - 1]) << "a CPU makes no difference: " << targets[i].first.back();
}

TEST(Emit, OptimisationLevelsCompileAndRun) {
  const Scratch scratch;
  std::string first;
  for (const std::string level : {"-O0", "-O1", "-O3"}) {
    const Binary binary = compile(scratch, kRows, "rows" + level, 4, {"-w", level});
    const Outcome outcome = binary({"predict", "-q"});
    ASSERT_EQ(outcome.code, 0) << outcome.all();
    if (first.empty()) first = outcome.out;
    EXPECT_EQ(outcome.out, first) << level;  // an element's value does not depend on how it is compiled
  }
}

// Names of values that have none of their own are numbers of the making; here each is the number of its first mention.
std::string withoutNames(const std::string& ir) {
  std::map<std::string, std::string> names;
  std::string text;
  for (std::size_t i = 0; i < ir.size();) {
    if (ir.compare(i, 6, "func @") == 0) names.clear();
    if (ir[i] != '%') {
      text += ir[i++];
      continue;
    }
    std::size_t end = i + 1;
    while (end < ir.size() &&
           (std::isalnum(static_cast<unsigned char>(ir[end])) != 0 || ir[end] == '_' || ir[end] == '.'))
      ++end;
    text += names.emplace(ir.substr(i, end - i), "%" + std::to_string(names.size())).first->second;
    i = end;
  }
  return std::regex_replace(text, std::regex(" *//[^\n]*"), "");
}

TEST(Emit, IrIsReadBackIn) {
  const Scratch scratch;
  for (const std::string program : {"mlp_small.gsd", "digits_mlp.gsd"}) {
    const Words from = {"--emit=ir=a.ir,sharded-ir=a.sharded.ir,spmd-ir=a.spmd.ir,obj=a.o"};
    expectEnd(gshardc({kExamples + "/" + program, from[0]}, scratch.path()), 0);
    const std::string whole = readFile(scratch.file("a.spmd.ir"));
    for (const std::string stage : {"a.ir", "a.sharded.ir"}) {
      expectEnd(gshardc({stage, "--emit=spmd-ir=again.ir"}, scratch.path()), 0);
      EXPECT_EQ(withoutNames(readFile(scratch.file("again.ir"))), withoutNames(whole)) << program << " from " << stage;
    }
    expectEnd(gshardc({"a.spmd.ir", "--emit=spmd-ir=again.ir"}, scratch.path()), 0);
    EXPECT_EQ(readFile(scratch.file("again.ir")), whole) << program;
    expectEnd(gshardc({"a.ir", "-o", "fromIr"}, scratch.path()), 0);
  }
}

TEST(Passes, AreListedTimedAndDumped) {
  const Outcome listed = gshardc({"check", kSmall, "--print-passes"});
  for (const char* name : {"simplify-algebra", "propagate-shardings", "partition"})
    EXPECT_TRUE(has(listed.err, name)) << name;
  const Outcome timed = gshardc({"check", kSmall, "--time-passes"});
  for (const char* name : {"parse", "elaborate", "partition", "total", "ms"})
    EXPECT_TRUE(has(timed.err, name)) << name << "\n" << timed.err;
  const Outcome dumped = gshardc({"check", kSmall, "--dump-after=partition"});
  EXPECT_TRUE(has(dumped.out, "// ---- after partition\n") && has(dumped.out, "all_reduce"))
      << dumped.out.substr(0, 300);
  EXPECT_TRUE(has(gshardc({"check", kSmall, "--dump-after=all"}).out, "// ---- after propagate-shardings\n"));
}

TEST(Warnings, AreErrorsOrSilentAsAsked) {
  expectEnd(gshardc({"check", kRows}), 0, {"warning[W0401]", "in full"});
  expectEnd(gshardc({"check", kRows, "-Werror"}), 1, {"error[W0401]"});
  for (const std::string silent : {"-w", "-Wno-reshard", "-Wno-perf", "-Wno-W0401", "-q"}) {
    const Outcome outcome = gshardc({"check", kRows, silent});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "") << silent;
  }
}

TEST(Diagnostics, AsJsonAndShort) {
  const Scratch scratch;
  const std::string file = scratch.write("broken.gsd", kBroken);
  const Outcome json = gshardc({"check", file, "--diagnostics=json"});
  EXPECT_EQ(json.code, 1);
  const auto object = nlohmann::json::parse(json.err.substr(0, json.err.find('\n')));
  EXPECT_EQ(object["format"], 1);
  EXPECT_EQ(object["code"], "E0201");
  EXPECT_EQ(object["level"], "error");
  EXPECT_EQ(object["spans"][0]["line"], 2);
  EXPECT_EQ(object["spans"][0]["column"], 16);
  const Outcome brief = gshardc({"check", "broken.gsd", "--diagnostics=short"}, scratch.path());
  EXPECT_TRUE(brief.err.starts_with("broken.gsd:2:16: error")) << brief.err;
  EXPECT_TRUE(has(gshardc({"check", file, "--color=always"}).err, "\x1b["));
  EXPECT_FALSE(has(gshardc({"check", file}).err, "\x1b["));
}

TEST(Commands, CheckSaysNothingOfASoundProgram) {
  for (const auto& entry : fs::directory_iterator(kExamples)) {
    if (entry.path().extension() != ".gsd") continue;
    const Outcome outcome = gshardc({"check", entry.path()});
    EXPECT_EQ(outcome.code, 0) << outcome.all();
    EXPECT_EQ(outcome.out + outcome.err, "") << entry.path();
  }
}

TEST(Commands, Explain) {
  const Outcome lines = gshardc({"explain", "mlp_small.gsd"}, kExamples);
  ASSERT_EQ(lines.code, 0) << lines.all();
  for (const char* part : {"mesh [data: 2, model: 2], 4 devices", "models/mlp.gsd:14 | ", "f32[10@data, 7]", "tile 5x7",
                           "all_reduce(sum) over model", "because"}) {
    EXPECT_TRUE(has(lines.out, part)) << part << "\n" << lines.out;
  }
  const Outcome plan = gshardc({"explain", "mlp_small.gsd", "--plan"}, kExamples);
  ASSERT_EQ(plan.code, 0);
  for (const char* part : {"train loss: 2 collectives, 760 B", "[0] all_reduce(sum) over model",
                           "[1] all_reduce(sum) over data", "models/mlp.gsd:14:23, forward", "because"}) {
    EXPECT_TRUE(has(plan.out, part)) << part << "\n" << plan.out;
  }
  const Outcome line = gshardc({"explain", "digits_mlp.gsd", "--line", "19"}, kExamples);
  EXPECT_TRUE(has(line.out, "digits_mlp.gsd:19 | ") && !has(line.out, "digits_mlp.gsd:18 | ")) << line.out;
  EXPECT_TRUE(has(gshardc({"explain", "E0201"}).out, "E0201"));
}

// X6: more memory than allowed, told before anything runs, with the line of the peak and what is largest there.
TEST(Commands, MemoryLimit) {
  const Scratch scratch;
  const std::string file = scratch.write("wide.gsd",
                                         "mesh [a: 4]\n"
                                         "model Net() { param w: f32[64, 512] @split(1, a) = zeros() }\n"
                                         "let net = Net()\n"
                                         "entry fn f(x: f32[256, 64]) -> f32[256] {\n"
                                         "    let h = matmul(x, net.w)\n"
                                         "    return sum(h * h, axis: 1)\n"
                                         "}\n");
  const Outcome over = gshardc({file, "--mem-limit", "128KiB", "-o", scratch.file("wide")});
  EXPECT_EQ(over.code, 1) << over.all();
  for (const char* part : {"error[E0501]: `f` takes", "on each device, and the limit is 128 KiB", "wide.gsd:6:12",
                           "there: 32 KiB parameters", "`h`: f32[256, 512@a] takes 128 KiB (5:13)",
                           "`x`: f32[256, 64] takes 64 KiB, whole on every device",
                           "`net.w`: f32[64, 512@a] takes 32 KiB", "help: split what is whole over an axis"}) {
    EXPECT_TRUE(has(over.err, part)) << part << "\n" << over.err;
  }
  EXPECT_FALSE(fs::exists(scratch.file("wide")));
  EXPECT_EQ(gshardc({file, "--mem-limit", "1MiB", "-o", scratch.file("wide")}).code, 0);
  // The plan is exact: its own peak is no excess, a byte less is.
  const Outcome tight = gshardc({file, "--mem-limit", "1", "-o", scratch.file("wide")});
  EXPECT_EQ(tight.code, 1);
  expectEnd(gshardc({file, "--mem-limit", "much"}), 2, {"`much` is no size"});
}

// T26 (a): what was chosen, and what else would have moved the value.
TEST(Commands, ExplainShowsRejectedPlans) {
  const Scratch scratch;
  const std::string file = scratch.write("mix.gsd",
                                         "mesh [x: 4, y: 2]\n"
                                         "entry fn t(a: f32[16, 16, 16] @shard([y, _, x])) -> f32[16, 16, 16] {\n"
                                         "    return a @split(1, x, y)\n"
                                         "}\n");
  const Outcome lines = gshardc({"explain", file});
  ASSERT_EQ(lines.code, 0) << lines.all();
  for (const char* part : {"exchange over x, y   1.75 KiB   7 steps",
                           "rejected   all_to_all over x, then all_to_all over y   2.5 KiB   4 steps",
                           "rejected   all_gather in full, then slice   14 KiB   7 steps",
                           "more bytes, and a buffer of 16 KiB for the whole"}) {
    EXPECT_TRUE(has(lines.out, part)) << part << "\n" << lines.out;
  }
}

TEST(Commands, RunCompilesOnce) {
  const Scratch scratch;
  setenv("GSHARD_CACHE_DIR", scratch.file("cache").c_str(), 1);
  const Words words = {"run", kRows, "-w", "-v", "-n", "3", "--", "predict", "-q"};
  const Outcome first = gshardc(words), second = gshardc(words);
  ASSERT_EQ(first.code, 0) << first.all();
  EXPECT_EQ(first.out, second.out);
  EXPECT_EQ(first.err, second.err);
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path() / "cache"), fs::directory_iterator()), 1);
  expectEnd(gshardc({"run", kRows, "-w", "-n", "3", "--", "predict", "--inptu", "x"}), 2, {"did you mean `--input`?"});
  const Outcome trained = gshardc({"run", kRows, "-w", "-n", "3", "--", "train", "--steps", "2"});
  expectEnd(trained, 0, {"step 2: loss"});
  unsetenv("GSHARD_CACHE_DIR");
}

TEST(CommandsMpi, RunStartsMpirun) {
  const Scratch scratch;
  setenv("GSHARD_CACHE_DIR", scratch.file("cache").c_str(), 1);
  const Outcome local = gshardc({"run", kRows, "-w", "-n", "3", "--", "predict", "-q"});
  const Outcome mpi = gshardc({"run", kRows, "-w", "-n", "3", "--mpi", "--", "predict", "-q"});
  ASSERT_EQ(mpi.code, 0) << mpi.all();
  EXPECT_EQ(mpi.out, local.out);
  expectEnd(gshardc({"verify", kSmall, "-n", "2", "--mpi"}), 0);
  unsetenv("GSHARD_CACHE_DIR");
}

TEST(Commands, Verify) {
  const Outcome equal = gshardc({"verify", kSmall, "-n", "1,2,3,2x2"});
  ASSERT_EQ(equal.code, 0) << equal.all();
  for (const char* part : {"2 devices:", "3 devices:", "2x2 devices:", "gradients result.0", "loss per step",
                           "after 3 steps net.w1", "equal: every result above is that of one device"}) {
    EXPECT_TRUE(has(equal.out, part)) << part << "\n" << equal.out;
  }
}

TEST(Commands, VerifySkipsSplitsThatDoNotFit) {
  const Scratch scratch;
  const std::string file =
      scratch.write("parts.gsd", "entry fn twice(x: f32[6] @split(0, 3)) -> f32[6] { return x + x }\n");
  const Outcome outcome = gshardc({"verify", file, "-n", "2,3"});
  EXPECT_EQ(outcome.code, 0) << outcome.all();
  EXPECT_TRUE(has(outcome.out, "2 devices: skipped")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "3 devices:\n  twice ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "equal")) << outcome.out;
  const Outcome none = gshardc({"verify", file, "-n", "2,4"});
  EXPECT_EQ(none.code, 1);
  EXPECT_FALSE(has(none.out, "equal")) << none.out;
}

}  // namespace
}  // namespace gshard::testing
