// The produced binary as a user meets it, on the sample program: commands, data, checkpoints, faults, exit codes, and
// the same results under mpirun.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace {

struct Outcome {
  int code = -1;
  std::string out, err;
};

class SampleProgram : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "gshard_sample_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::system(("rm -rf '" + folder_ + "'").c_str()); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  static std::string contents(const std::string& name) {
    std::ifstream file(name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }

  Outcome run(const std::string& arguments, const std::string& launcher = "") const {
    const std::string command =
        "cd '" + folder_ + "' && " + launcher + " " + GSHARD_SAMPLE_PROGRAM + " " + arguments + " >out 2>err";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(path("out")), contents(path("err"))};
  }

  std::string folder_;
};

// Seven rows of three: one batch of five, two left over; a short block in `predict`.
constexpr const char* kCsv = "1,2,3\n4,5,6\n7,8,9\n10,11,12\n13,14,15\n16,17,18\n19,20,21\n";

TEST_F(SampleProgram, PredictTakesAnyNumberOfRows) {
  write("x.csv", kCsv);
  const Outcome outcome = run("predict --input x=x.csv");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "2 4 6\n8 10 12\n14 16 18\n20 22 24\n26 28 30\n32 34 36\n38 40 42\n");
}

TEST_F(SampleProgram, SelectsColumnsAndRows) {
  write("x.csv", "9,1,2,3\n9,4,5,6\n9,7,8,9\n");
  const Outcome outcome = run("predict --input 'x=x.csv[1:, 1:4]' -q");
  EXPECT_EQ(outcome.out, "8 10 12\n14 16 18\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(SampleProgram, TrainsSavesAndEvaluates) {
  write("x.csv", "1,1,1\n1,1,1\n1,1,1\n1,1,1\n1,1,1\n");
  const Outcome trained =
      run("train --input x=x.csv --steps 4 --checkpoint saved --metrics m.jsonl --verify-plan --measure-peak");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.err.find("2 devices = data 2 (local, 2 threads)"), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("1 batches of 5 per epoch, 0 rows left over"), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("planned peak 260 bytes, measured 260 bytes"), std::string::npos) << trained.err;
  const std::string metrics = contents(path("m.jsonl"));
  EXPECT_NE(metrics.find("{\"step\":4,\"set\":\"train\",\"loss\":15.0,\"at\":3.0,\"samples\":20,\"comm_bytes\":4,"),
            std::string::npos)
      << metrics;
  EXPECT_EQ(run("eval --input x=x.csv --checkpoint saved").out, "loss 15\n");
  // Four steps added 15 to every element; the start was drawn by global index.
  const Outcome fresh = run("weights");
  const Outcome loaded = run("weights --checkpoint saved");
  std::stringstream before(fresh.out), after(loaded.out);
  float x = 0, y = 0;
  int count = 0;
  while (before >> x && after >> y) {
    EXPECT_NEAR(y - x, 60.0f, 1e-4f);
    ++count;
  }
  EXPECT_EQ(count, 7);
  EXPECT_NE(loaded.err.find("loaded saved/step-4.safetensors, step 4"), std::string::npos) << loaded.err;
}

TEST_F(SampleProgram, ResumesWhereItStopped) {
  ASSERT_EQ(run("train --steps 6 --checkpoint whole -q").code, 0);
  ASSERT_EQ(run("train --steps 2 --checkpoint parts -q").code, 0);
  ASSERT_EQ(run("train --steps 4 --checkpoint parts --resume auto -q").code, 0);
  EXPECT_EQ(run("weights --checkpoint whole").out, run("weights --checkpoint parts").out);
  EXPECT_EQ(contents(path("parts/latest")), "step-6.safetensors\n");
}

TEST_F(SampleProgram, MpiGivesTheSameBits) {
  if (GSHARD_MPIRUN[0] == '\0') GTEST_SKIP() << "SKIP: built without MPI";
  // Open MPI leaks by itself: what a sanitizer makes of that is no finding of ours.
  const std::string launcher = std::string("env ASAN_OPTIONS=detect_leaks=0 GSHARD_RUNTIME='") + GSHARD_MPI_FOLDER +
                               "' " + GSHARD_MPIRUN + " --oversubscribe -n 2";
  ASSERT_EQ(run("train --steps 5 --checkpoint local -q").code, 0);
  for (const char* transport : {"mpi", "mpi-messages"}) {
    const Outcome outcome =
        run(std::string("train --steps 5 --checkpoint ranks --verify-plan --transport ") + transport, launcher);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("(mpi, 2 ranks)"), std::string::npos) << outcome.err;
    EXPECT_EQ(contents(path("local/step-5.safetensors")), contents(path("ranks/step-5.safetensors")));
  }
  write("x.csv", kCsv);
  EXPECT_EQ(run("predict --input x=x.csv", launcher).out, run("predict --input x=x.csv").out);
  const Outcome wrong = run("train", std::string("env GSHARD_RUNTIME='") + GSHARD_MPI_FOLDER + "' " + GSHARD_MPIRUN +
                                         " --oversubscribe -n 3");
  EXPECT_EQ(wrong.code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("started with 3 devices, but compiled for 2"), std::string::npos) << wrong.err;
  const Outcome fault = run("pick", launcher);
  EXPECT_EQ(fault.code, 1) << fault.err;
  EXPECT_NE(fault.err.find("take `embed`: index 12 is out of range for 10"), std::string::npos) << fault.err;
}

TEST_F(SampleProgram, AFaultNamesOpPlaceAndDevice) {
  const Outcome outcome = run("pick");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(
      outcome.err.find("sample: error: sample.gsd:7:9: take `embed`: index 12 is out of range for 10, at element 3"),
      std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("note: found on device 1"), std::string::npos);
  EXPECT_EQ(outcome.out, "");
}

TEST_F(SampleProgram, InitTakesNamesBelowTheModel) {
  // A checkpoint is a file of parameters, too: its names are whole paths.
  ASSERT_EQ(run("train --steps 3 --checkpoint saved -q").code, 0);
  EXPECT_EQ(run("weights --init saved/step-3.safetensors").out, run("weights --checkpoint saved").out);
  ASSERT_EQ(run("weights -o w.npz").code, 0);
  const Outcome wrong = run("weights --init w.npz");
  EXPECT_EQ(wrong.code, 4);
  EXPECT_NE(wrong.err.find("`net.w` is missing; `net.result` is surplus"), std::string::npos) << wrong.err;
}

TEST_F(SampleProgram, UsageErrors) {
  EXPECT_EQ(run("").code, 2);
  EXPECT_NE(run("trian").err.find("no command or entry `trian`, did you mean `train`?"), std::string::npos);
  EXPECT_EQ(run("trian").code, 2);
  EXPECT_NE(run("train --step 3").err.find("did you mean `--steps`?"), std::string::npos);
  EXPECT_EQ(run("train --steps many").code, 2);
  EXPECT_EQ(run("train --input q=x.csv").code, 2);
  EXPECT_EQ(run("train --data missing.npz").code, 3);
  write("x.csv", "1,2\n3,4\n");
  const Outcome shape = run("train --input x=x.csv");
  EXPECT_EQ(shape.code, 4);
  EXPECT_NE(shape.err.find("input `x` is f32[5, 3], but `x.csv` holds f64[2, 2]: a row has 2 elements, not 3"),
            std::string::npos)
      << shape.err;
  write("few.csv", "1,2,3\n");
  EXPECT_EQ(run("train --input x=few.csv").code, 4);
  EXPECT_EQ(run("eval --checkpoint nowhere").code, 3);
  EXPECT_EQ(run("info").code, 0);
  EXPECT_NE(run("--help").out.find("net.w: f32[7@data]  the weights"), std::string::npos);
}

}  // namespace
