// What argmax, argmin and their per-part candidates share.
#pragma once

#include "ir/op_rules.h"

namespace gshard {

// Whether `candidate` wins over the earlier `best`: the first NaN wins, of equals the first.
bool winsOver(bool max, double candidate, double best);
bool winsOver(bool max, std::int64_t candidate, std::int64_t best);

std::optional<ResultTypes> inferArgReduce(const OpView& op, DiagSink& diag);
void argReduceFactors(const OpView& op, FactorBuilder& factors);
void evaluateArgReduce(const OpView& op, EvalFrame& frame, bool max);

}  // namespace gshard
