// Random small programs with random annotations, for tests that compare a program on one device with the same on many.
// Values are small integers in f64, so that sums are exact in any order and equality is exact.
#pragma once

#include <random>

#include "ir/builder.h"
#include "ir/tensor.h"

namespace gshard::fuzz {

// Forward: some values are handed out. Gradients: one scalar and its gradients. Training: the gradients update
// parameters and states, in a train function.
enum class ProgramKind : std::uint8_t { Forward, Gradients, Training };

struct ProgramOptions {
  std::uint64_t seed = 1;
  std::vector<std::int64_t> mesh = {2};  // axis sizes
  int operations = 8;
  ProgramKind kind = ProgramKind::Forward;
};

struct RandomProgram {
  Module module;
  std::vector<Tensor> arguments;  // of its one function
};

RandomProgram makeProgram(const ProgramOptions& options);

}  // namespace gshard::fuzz
