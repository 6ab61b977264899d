// The verifier: types (infer = declared), dominance, sharding legality, partial legality, signature against the
// module's parameters and states. Runs after every pass.
#pragma once

#include <array>

#include "ir/op_signature.h"

namespace gshard {

enum class Form : std::uint8_t {
  Global,  // no SPMD op; shardings allowed (after propagation) but operands may disagree with them
  Spmd,    // every value has a sharding, and every op's operands and results fit each other factor by factor
};

// Values and ops that were found right, by number: equal layers and equal ops of one pass after another are looked at
// once. Of one mesh.
struct KnownOps {
  Mesh mesh;
  ValueNumbers values{/*sharded=*/true};
  KeyNumbers signatures;
  std::array<std::vector<bool>, 2> rightValues, rightOps;  // by form
};

// The first fault in words ("func @loss: op 3 `contract` …"), or nothing. `known` may come from an earlier look at any
// module.
std::optional<std::string> verify(const Module& module, Form form, KnownOps& known);
std::optional<std::string> verify(const Module& module, Form form);
// The SPMD rule for one op: are these shardings of operands and results ones with which the op can run on tiles?
std::optional<std::string> verifySpmdOp(const OpView& op);

}  // namespace gshard
