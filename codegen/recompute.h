// What the backward pass computes again instead of reading: elementwise values of the forward pass (the parts of a
// gelu, a normalised row) that follow from others which are kept anyway. Each of them would lie in memory from the
// forward pass to the backward one, be written there and be read back, while to a kernel that runs anyway it costs a
// few instructions.
//
// Which to keep is a minimal cut: the fewest bytes that lie between the two passes such that the rest follows by maps.
// An element computed twice has the same bits twice, so no result depends on this.
#pragma once

#include "codegen/views.h"

namespace gshard {

// The function with copies of such ops before their first users of later phases; nothing where none pays.
std::optional<Function> recomputeInBackward(const FunctionViews& views);

}  // namespace gshard
