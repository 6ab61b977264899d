// No allocation happens in a step (design.md section 6): a run of many steps takes as many blocks from the heap as a
// run of few, counted from outside by a preloaded library. Reporting is off; it writes text, which is no part of a
// step.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

struct Case {
  const char* name;
  const char* source;
  std::int64_t devices;
  Words options;
  Transport transport = Transport::Local;
  bool data = false;
};

void PrintTo(const Case& each, std::ostream* out) {
  *out << each.name;
}

class Allocations : public ::testing::TestWithParam<Case> {
 protected:
  // Of all processes of the run together.
  std::int64_t count(const Binary& binary, const Words& arguments) {
    const std::string counts = scratch_.file("counts");
    std::filesystem::remove_all(counts);
    std::filesystem::create_directories(counts);
    Words words;
    if (binary.transport == Transport::Mpi) {
      setMpiEnvironment();
      words = {GSHARD_MPIRUN, "-n", std::to_string(binary.devices)};
    }
    words.insert(words.end(), {"env", "LD_PRELOAD=" GSHARD_COUNT_ALLOCATIONS, "GSHARD_ALLOCATIONS=" + counts + "/of",
                               binary.path, "train", "-q"});
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Outcome outcome = runCommand(words);
    EXPECT_EQ(outcome.code, 0) << outcome.all();
    std::int64_t sum = 0, processes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(counts)) {
      sum += std::stoll(readFile(entry.path().string()));
      ++processes;
    }
    EXPECT_EQ(processes, binary.transport == Transport::Mpi ? binary.devices : 1);
    return sum;
  }
  Scratch scratch_;
};

TEST_P(Allocations, DoNotGrowWithTheSteps) {
  if (isSanitized()) GTEST_SKIP() << "the allocator is the sanitizer's";
  const Case& each = GetParam();
  Words options = each.options;
  options.insert(options.end(), {"-w", "--devices", std::to_string(each.devices)});
  const Binary binary =
      compile(scratch_, std::string(GSHARD_SOURCE_DIR) + each.source, "counted", each.devices, options, each.transport);
  Words data;
  if (each.data) {
    Numbers x{{20, 5}, std::vector<double>(100, 0.5)}, y{{20}, std::vector<double>(20, 1)};
    data = {"--input", "x=" + writeNumbers(scratch_.file("x.npy"), x), "--input",
            "y=" + writeNumbers(scratch_.file("y.npy"), y)};
  }
  const auto train = [&](const char* steps) {
    Words words = {"--steps", steps};
    words.insert(words.end(), data.begin(), data.end());
    return count(binary, words);
  };
  const std::int64_t few = train("7");
  EXPECT_GT(few, 0) << "the library counts nothing";
  const std::int64_t many = train("60");
  if (each.transport == Transport::Mpi) {
    EXPECT_LT(many - few, 60 - 7) << "MPI allocates now and then by itself, but not in every step";
  } else {
    EXPECT_EQ(many, few);
  }
}

INSTANTIATE_TEST_SUITE_P(OnThreads, Allocations,
                         ::testing::Values(Case{"data", "/tests/cli/rows.gsd", 3, {}, Transport::Local, true},
                                           Case{"seeded", "/tests/cli/rows.gsd", 4, {}},
                                           Case{"threads", "/examples/digits_mlp.gsd", 2, {"--threads", "2"}},
                                           Case{"one", "/examples/fashion_mlp.gsd", 1, {}}));
INSTANTIATE_TEST_SUITE_P(UnderMpi, Allocations,
                         ::testing::Values(Case{"data", "/tests/cli/rows.gsd", 2, {}, Transport::Mpi, true}));

}  // namespace
}  // namespace gshard::testing
