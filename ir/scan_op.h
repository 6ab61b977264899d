// What cumsum and its form on split dims share.
#pragma once

#include <functional>

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

std::optional<ResultTypes> inferScan(const OpView& op, DiagSink& diag);
void scanFactors(const OpView& op, FactorBuilder& factors);  // of operand 0 and result 0
// Running sums along the tile's part of the axis, each lane beginning with `start` of its indices.
void evaluateScan(const OpView& op, EvalFrame& frame, const std::function<Number(const Index&)>& start);

}  // namespace gshard
