// Ordered lists of axis pieces (the split of one dim or factor): prefixes, overlap, joining. Two spellings of one list
// ("x" and its pieces "x(1,2), x(2,2)") count as equal, so nobody else has to take axes apart.
#pragma once

#include "ir/sharding.h"

namespace gshard {

using AxisList = std::vector<AxisRef>;

// Appends a piece, joining it with the last one where the two are adjacent.
void appendAxis(AxisList& list, const AxisRef& ref);
// The longest list that both begin with.
AxisList commonPrefix(const AxisList& a, const AxisList& b);
bool isPrefix(const AxisList& prefix, const AxisList& list);
// What is left of `list` after `prefix`, which it must begin with.
AxisList withoutPrefix(const AxisList& list, const AxisList& prefix);
bool overlapsAny(const AxisList& list, const AxisRef& ref);
bool overlapAny(const AxisList& a, const AxisList& b);

}  // namespace gshard
