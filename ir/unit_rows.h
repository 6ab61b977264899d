// Blocks of one row: dims of size 1 tell nothing about which of them holds rows (they have no factor), so such a
// function is analysed as if it took two. Apart from the analysis, which then needs no special case.
#pragma once

#include "ir/module.h"

namespace gshard {

// Turns `function`, whose rows are 1, into the same one for 2 rows. False (function unchanged) where shapes do not
// follow.
bool widenUnitRows(const Module& module, Function& function);

}  // namespace gshard
