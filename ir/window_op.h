// What dynamic_slice and dynamic_update share: a window into a tensor whose start is known at run time, one scalar per
// dim.
#pragma once

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

// Operands from `first` on are the starts of a window of `size` in operand 0.
bool checkWindow(const OpView& op, DiagSink& diag, const std::vector<std::int64_t>& size, std::size_t first);
// The starts of a window, clamped so that it fits; one that did not is a fault, numbered by its dim.
Index windowStart(const OpView& op, EvalFrame& frame, const std::vector<std::int64_t>& size, std::size_t first);
// The operands that say where the window begins.
std::vector<ValueId> startsOf(const OpView& op, std::size_t first);

}  // namespace gshard
