// Programs of one op as the partitioner makes them, when one dim of an operand or result is asked to be split. Shared
// with the tests of compiled code.
#pragma once

#include "example_program.h"

namespace gshard::conformance {

// A dim, of an argument or of a result, over all axes of the mesh.
struct Wish {
  bool ofResult = false;
  std::size_t tensor = 0;
  std::int64_t dim = 0;
  std::string text;  // "operand 0 dim 1"
};
// All dims of operands and results.
std::vector<Wish> wishesOf(const Program& base);

// The SPMD form; nothing when a pass failed, with the reason in `error`.
std::optional<Module> partitionedAs(const Program& base, const Wish& wish, std::string* error = nullptr);

}  // namespace gshard::conformance
