// Infinities that a program writes itself, as `-inf` in a mask: --check-numerics must not call them mistakes.
#pragma once
#include "codegen/views.h"

namespace gshard {

// Per value of the function: whether infinities may reach it from a literal through ops that keep them.
std::vector<bool> writtenInfinities(const FunctionViews& views);

}  // namespace gshard
