// Values and ops that the verifier found right, by number: equal layers, and equal ops of one pass after another, are
// looked at once. Apart from verifier.h, which many include.
#pragma once

#include <array>

#include "ir/op_signature.h"

namespace gshard {

using Marks = std::vector<std::uint8_t>;  // by number; bits would be slower to ask

struct KnownOps {
  Mesh mesh;  // that they were right on
  ValueNumbers values{/*sharded=*/true};
  KeyNumbers signatures;
  std::array<Marks, 2> rightValues, rightOps;  // by form
};

}  // namespace gshard
