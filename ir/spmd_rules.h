// What the rules of SPMD ops share: they say which result sharding follows from the operand's.
#pragma once

#include "ir/op_rules.h"

namespace gshard {

// Whether minor parts of total size b may join or leave a dim that is cut into a parts: tiles nest.
bool tilesNestIn(std::int64_t dim, std::int64_t a, std::int64_t b);
// Of one operand: `whole` with `axes` appended minor to one dim is `split`, all else being equal, and tiles nest.
std::optional<std::string> checkMinorAxes(const OpView& op, const Sharding& whole, const Sharding& split,
                                          std::int64_t dim, const std::vector<AxisRef>& axes, std::size_t operand = 0);
// `done` made partial over `axes` with `reduction` is `pending`, all else being equal.
std::optional<std::string> checkPending(const OpView& op, const Sharding& done, const Sharding& pending,
                                        const std::vector<AxisRef>& axes, Reduction reduction);
Reduction reductionAttr(const OpView& op);
std::optional<ResultTypes> inferCollective(const OpView& op,
                                           DiagSink& diag);  // identity; checks dims and reduction named

}  // namespace gshard
