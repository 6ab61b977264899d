// Random .gsd programs on many devices against one: what differs, or nothing.
#pragma once

#include <optional>
#include <string>

#include "tests/fuzz/gsd_program.h"

namespace gshard::fuzz {

// Text to SPMD form in process, run on the evaluator's simulated devices, compared with the program as elaborated: so
// simplification, gradients and partitioning are all in between.
std::optional<std::string> checkOnEvaluator(const GsdProgram& program);

enum class Runner : std::uint8_t { Local, Mpi };
// All programs as one binary (they share a mesh), fed from files; its outputs against the evaluator.
std::optional<std::string> checkCompiled(const std::vector<const GsdProgram*>& programs, Runner runner);

}  // namespace gshard::fuzz
