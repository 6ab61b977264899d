// The clock of the runtime: seconds that never go back, equal on all threads of a machine.
#pragma once
#include <time.h>

namespace gshard::runtime {

inline double monotonicSeconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace gshard::runtime
