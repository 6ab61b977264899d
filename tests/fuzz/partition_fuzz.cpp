// gshard_fuzz_partition [--seed=FIRST] [--count=N]: random programs on simulated devices against one device. Prints the
// seed of each that differs; exit code 1 if any does.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/partition_check.h"

int main(int argc, char** argv) {
  std::uint64_t first = 1, count = 3000;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--seed=", 7) == 0) first = std::strtoull(argv[i] + 7, nullptr, 10);
    if (std::strncmp(argv[i], "--count=", 8) == 0) count = std::strtoull(argv[i] + 8, nullptr, 10);
  }
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    const auto fault = gshard::fuzz::checkPartitioned(gshard::fuzz::optionsOfSeed(seed));
    if (!fault) continue;
    ++failures;
    std::printf("--seed=%llu --count=1\n%s\n", static_cast<unsigned long long>(seed), fault->c_str());
  }
  std::printf("%llu programs from seed %llu: %d differ\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(first), failures);
  return failures == 0 ? 0 : 1;
}
