// The verifier: types (infer = declared), dominance, sharding legality, partial legality, signature against the
// module's parameters and states. Runs after every pass.
#pragma once

#include <set>

#include "ir/module.h"

namespace gshard {

enum class Form : std::uint8_t {
  Global,  // no SPMD op; shardings allowed (after propagation) but operands may disagree with them
  Spmd,    // every value has a sharding, and every op's operands and results fit each other factor by factor
};

// The first fault in words ("func @loss: op 3 `contract` …"), or nothing.
std::optional<std::string> verify(const Module& module, Form form);
// The same, told what was found right before (ir/known_ops.h), which may come from any module, and which functions are
// as they were when they were last found right in this form.
struct KnownOps;
std::optional<std::string> verify(const Module& module, Form form, KnownOps& known,
                                  const std::set<const Function*>& unchanged);
// The SPMD rule for one op: are these shardings of operands and results ones with which the op can run on tiles?
std::optional<std::string> verifySpmdOp(const OpView& op);

}  // namespace gshard
