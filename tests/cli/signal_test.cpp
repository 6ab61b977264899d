// A run that is stopped: SIGTERM and SIGINT finish the step and save, on threads and under mpirun; a rank that dies,
// crashes or hangs ends all with a message that names it; SIGUSR1 asks where a run is. No clock: a signal is sent when
// the first step is in the metrics file.
#include <gtest/gtest.h>

#include <regex>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

// $1: what is done to the started process $pid; $2: the metrics file; the rest: the command.
const std::string kScript =
    "act=$1 metrics=$2; shift 2\n"
    "rm -f \"$metrics\"\n"
    "\"$@\" & pid=$!\n"
    "until grep -q '\"step\"' \"$metrics\" 2>/dev/null; do sleep 0.02; kill -0 $pid || exit 99; done\n"
    "eval \"$act\"\n"
    "wait $pid\n";

class Signals : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    scratch_ = new Scratch;
    binary_ = compile(*scratch_, kProgram, "rows", 4, {"-w"});
  }
  static void TearDownTestSuite() { delete scratch_; }

 protected:
  inline static const std::string kProgram = GSHARD_SOURCE_DIR "/tests/cli/rows.gsd";
  static std::string metrics() { return scratch_->file("metrics.jsonl"); }
  static std::string checkpoint() { return scratch_->file("checkpoint"); }
  static Words training() {
    return {"train",     "--steps", "1000000000",   "--progress", "none",
            "--metrics", metrics(), "--checkpoint", checkpoint()};
  }

  // Starts the training by `how` (words before the binary's arguments), acts on it, and waits.
  static Outcome trainAnd(const std::string& act, Words how, const Words& more = {}) {
    std::filesystem::remove_all(checkpoint());
    Words words = {"bash", "-c", kScript, "bash", act, metrics()};
    words.insert(words.end(), how.begin(), how.end());
    const Words arguments = training();
    words.insert(words.end(), arguments.begin(), arguments.end());
    words.insert(words.end(), more.begin(), more.end());
    return runCommand(words);
  }

  // Saved at the very step at which it stopped, and what was saved is complete.
  static void expectSaved(const Outcome& outcome, int code) {
    EXPECT_EQ(outcome.code, code) << outcome.all();
    std::smatch step;
    ASSERT_TRUE(std::regex_search(outcome.err, step, std::regex("stopped by a signal after step ([0-9]+)\n")))
        << outcome.all();
    EXPECT_TRUE(std::filesystem::exists(checkpoint() + "/step-" + step[1].str() + ".safetensors")) << outcome.all();
    EXPECT_EQ(binary_({"eval", "-q", "--checkpoint", checkpoint()}).code, 0);
  }

  static Words command() { return {binary_.path}; }
  static Words ranks() {
    setMpiEnvironment();
    return {GSHARD_MPIRUN, "-n", "4", binary_.path};
  }
  // Puts the process of the last rank into $last.
  static std::string lastRank() { return "for child in $(ps -o pid= --ppid $pid); do last=$child; done; "; }

 private:
  inline static Scratch* scratch_ = nullptr;
  inline static Binary binary_;
};

TEST_F(Signals, SaveAndEndWith128AndTheSignal) {
  expectSaved(trainAnd("kill -TERM $pid", command()), 143);
  expectSaved(trainAnd("kill -INT $pid", command()), 130);
}

TEST_F(Signals, ReachTheProgramThroughRun) {
  setenv("GSHARD_CACHE_DIR", (metrics() + ".cache").c_str(), 1);
  expectSaved(trainAnd("kill -TERM $pid", {GSHARD_COMPILER, "run", kProgram, "-w", "--"}), 143);
  unsetenv("GSHARD_CACHE_DIR");
}

TEST_F(Signals, ReachAllRanksUnderMpi) {
  setenv("GSHARD_CACHE_DIR", (metrics() + ".cache").c_str(), 1);
  expectSaved(trainAnd("kill -TERM $pid", {GSHARD_COMPILER, "run", kProgram, "-w", "--mpi", "--"}), 143);
  unsetenv("GSHARD_CACHE_DIR");
}

// By the ranks that watch it, unless mpirun was faster.
void expectDeadRank(const Outcome& outcome) {
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 99) << outcome.all();
  EXPECT_TRUE(std::regex_search(outcome.err, std::regex("device [0-9] ended; device [0-9] was in .*E0758"
                                                        "|process rank [0-9] .*signal 9")))
      << outcome.all();
}

TEST_F(Signals, ADeadRankEndsAllUnderMpi) {
  expectDeadRank(trainAnd(lastRank() + "kill -KILL $last", ranks()));
}

TEST_F(Signals, ADeadRankEndsMessagesUnderMpi) {
  expectDeadRank(trainAnd(lastRank() + "kill -KILL $last", ranks(), {"--transport", "mpi-messages"}));
}

// A rank that hangs is not dead: the watchdog finds it, and says where all are.
TEST_F(Signals, AHangingRankEndsAllUnderMpi) {
  const Outcome outcome = trainAnd(lastRank() + "kill -STOP $last", ranks(), {"--timeout", "1"});
  EXPECT_EQ(outcome.code, 5) << outcome.all();
  EXPECT_TRUE(std::regex_search(
      outcome.err,
      std::regex("step [0-9]+: device [0-9] has waited 1[.0-9]* s in .*[(]plan [0-9]+, .*[.]gsd:[0-9:]+[)].*E0756"
                 "|has waited 1[.0-9]* s in the agreement")))
      << outcome.all();
  for (int device = 0; device < 4; ++device) {
    EXPECT_TRUE(std::regex_search(
        outcome.err, std::regex("\n  device " + std::to_string(device) + "  (waits|computes) +.*, step [0-9]+")))
        << outcome.all();
  }
}

TEST_F(Signals, AHangingRankEndsMessagesUnderMpi) {
  const Outcome outcome =
      trainAnd(lastRank() + "kill -STOP $last", ranks(), {"--timeout", "1", "--transport", "mpi-messages"});
  EXPECT_EQ(outcome.code, 5) << outcome.all();
  EXPECT_TRUE(std::regex_search(outcome.err, std::regex("device [0-9] has waited [0-9.]+ s in "))) << outcome.all();
  EXPECT_TRUE(std::regex_search(outcome.err, std::regex("device [0-9]  does not answer"))) << outcome.all();
}

// SIGUSR1 asks; the run goes on.
void expectStatus(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 143) << outcome.all();
  EXPECT_TRUE(std::regex_search(outcome.err, std::regex("rows: step [0-9]+, loss [0-9.]+\n"
                                                        "  device 0  [a-z]+ +.*, step [0-9]+\n"
                                                        "  device 1  [a-z]+ +.*, step [0-9]+\n"
                                                        "  device 2  [a-z]+ +.*, step [0-9]+\n"
                                                        "  device 3  [a-z]+ +.*, step [0-9]+\n")))
      << outcome.all();
}

TEST_F(Signals, StatusIsToldWhenAsked) {
  expectStatus(trainAnd("kill -USR1 $pid; kill -TERM $pid", command()));
}

TEST_F(Signals, StatusIsToldWhenAskedUnderMpi) {
  expectStatus(trainAnd("kill -USR1 $pid; sleep 0.2; kill -USR2 $pid", ranks()));
}

// A crash of generated code cannot be made to order; its signal can.
TEST_F(Signals, ACrashSaysWhereTheDevicesWere) {
  const Outcome outcome = trainAnd("kill -SEGV $pid", command());
  EXPECT_EQ(outcome.code, 70) << outcome.all();
  EXPECT_TRUE(std::regex_search(outcome.err, std::regex("rows: error: crashed: SIGSEGV.*\n"
                                                        "  device [0-9]  .*, step [0-9]+\n")))
      << outcome.all();
}

TEST_F(Signals, ACrashOfARankNamesItUnderMpi) {
  const Outcome outcome = trainAnd(lastRank() + "kill -FPE $last", ranks());
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 99) << outcome.all();
  EXPECT_TRUE(std::regex_search(outcome.err, std::regex("rows: error: (device [0-9] )?crashed: SIGFPE.*\n"
                                                        "  device [0-9]  .*, step [0-9]+\n")))
      << outcome.all();
}

}  // namespace
}  // namespace gshard::testing
