// Random values of the evaluator, on Random123: the same functions of (seed, site, step, global element index) as
// runtime/random_values.h states; a test compares the two.
#pragma once

#include <cstdint>

#include "ir/type.h"

namespace gshard {

struct RandomStream {
  std::uint64_t seed = 0;
  std::uint32_t site = 0;
  std::uint32_t step = 0;
};

// In [low, high), rounded to the dtype (f32, f64; f16 and bf16 as f32, then rounded).
double randomUniform(const RandomStream& stream, std::uint64_t index, DType dtype, double low, double high);
// Normal with mean 0 and deviation 1.
double randomNormal(const RandomStream& stream, std::uint64_t index, DType dtype);

}  // namespace gshard
