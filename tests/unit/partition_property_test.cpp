// Random programs with random annotations, partitioned and run on simulated devices: the same numbers as on one device.
// tests/fuzz/ runs thousands more.
#include <gtest/gtest.h>

#include "tests/fuzz/partition_check.h"

namespace gshard {
namespace {

TEST(PartitionProperty, RandomProgramsGiveTheSameNumbers) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const std::optional<std::string> fault = fuzz::checkPartitioned(fuzz::optionsOfSeed(seed));
    ASSERT_FALSE(fault) << "seed " << seed << ": " << *fault;
  }
}

}  // namespace
}  // namespace gshard
