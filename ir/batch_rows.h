// Functions that work on whole batches of any size: which dims of which values hold the rows of the batch.
#pragma once

#include "ir/module.h"

namespace gshard {

// Sets Value::rowDim of every value that has rows, so that the function runs on fewer rows than it is written for.
// False (function unchanged) where an op does more with rows than pass them on or reduce them.
bool markBatchRows(const Module& module, Function& function);

}  // namespace gshard
