// docs/ops.md, written from the op table and the table of scalar functions, so that it cannot fall behind them.
#pragma once

#include <string>

namespace gshard {

std::string opReference();

}  // namespace gshard
