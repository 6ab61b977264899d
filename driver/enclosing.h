// Which declaration a place of a file belongs to: what stays the same when lines move.
#pragma once

#include <string>

#include "support/source.h"

namespace gshard {

// "loss", "Mlp.call"; empty outside of all, and for an unknown range.
std::string enclosingDeclaration(SourceRange range, const SourceManager& sources);

}  // namespace gshard
