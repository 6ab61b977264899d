// Where everything lies in the arena of a device: one arena, offsets from liveness over the units, known before the run
// and exact. Parameters and states have fixed places for the whole program and are updated in place.
#pragma once

#include "codegen/lowering.h"

namespace gshard {

constexpr std::int64_t kArenaAlign = 64;

// Fixed places, the same in all functions.
struct FixedMemory {
  std::vector<std::int64_t> parameters, states;
  std::int64_t bytes = 0;  // [0, bytes)
};
FixedMemory placeFixed(const Module& module, ExtentTable& extents);

// Accumulators of a function that is run per block and the one that finishes it, above the fixed part.
struct AccumulatorMemory {
  std::vector<std::int64_t> offsets;  // by accumulator number
  std::int64_t end = 0;               // where the functions' own memory begins
};
AccumulatorMemory placeAccumulators(const FunctionViews& views, std::int64_t begin);

struct MemoryCopy {
  std::int64_t from = 0, to = 0, bytes = 0;
};

struct FunctionMemory {
  std::vector<std::int64_t> offsets;      // per storage value; -1: has no buffer
  std::vector<std::int64_t> workspaces;   // per unit; -1: needs none
  std::vector<std::int64_t> results;      // per result: where it lies at the end
  std::vector<bool> skipped;              // units that would copy a buffer onto itself
  std::vector<MemoryCopy> before, after;  // old values that are still needed; results that could not be made in place
  std::int64_t peakBytes = 0;             // highest arena byte that the function may touch
  std::int64_t peakUnit = -1;             // where most is alive
  // What is alive there.
  std::int64_t inputs = 0, values = 0, workspace = 0;
  std::vector<ValueId> alive;  // storage values, but those in fixed places
};

FunctionMemory planMemory(const FunctionViews& views, const LoweredFunction& lowered, const FixedMemory& fixed,
                          const AccumulatorMemory& accumulators, const std::vector<std::int64_t>& workspaceBytes);

}  // namespace gshard
