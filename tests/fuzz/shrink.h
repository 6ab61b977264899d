// Cutting a program that fails down to a few lines that still fail.
#pragma once

#include <functional>

#include "tests/fuzz/gsd_program.h"

namespace gshard::fuzz {

// Greedy: hands out less, turns statements into inputs or passes them by, drops annotations, shrinks the mesh, as long
// as `fails` holds; at most `budget` calls of it.
GsdProgram shrink(GsdProgram program, const std::function<bool(const GsdProgram&)>& fails, int budget = 600);

}  // namespace gshard::fuzz
