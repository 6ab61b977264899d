// What sort, argsort and top_k share: one order of the elements along an axis. NaN is the largest, equals keep their
// order.
#pragma once

#include <functional>

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

bool checkSort(const OpView& op, DiagSink& diag);
void sortFactors(const OpView& op, FactorBuilder& factors);  // for every result
// For each lane of operand 0 along `axis`: visit(global index at 0 of the axis, places along it in order).
void forEachSorted(const OpView& op, EvalFrame& frame, bool descending,
                   const std::function<void(Index, const std::vector<std::int64_t>&)>& visit);
// The gradient of x when `gradient` is that of the elements of x chosen by `index` along `axis`, each at most once.
ValueId scatterAlong(GradBuilder& b, ValueId gradient, ValueId index, const Type& x, std::int64_t axis,
                     SourceRange range);

}  // namespace gshard
