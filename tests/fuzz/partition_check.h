// One random program, partitioned and run on simulated devices: what differs from one device, or nothing.
#pragma once

#include <optional>
#include <string>

#include "tests/fuzz/random_program.h"

namespace gshard::fuzz {

std::optional<std::string> checkPartitioned(const ProgramOptions& options);

// Mesh, size and kind of program `seed`: the meshes 2, 3, 4, 2x2, 2x3 and 1x4 in turn.
ProgramOptions optionsOfSeed(std::uint64_t seed);

}  // namespace gshard::fuzz
