// The error index: what `gshardc explain E0312` prints. Codes come from the diagnostics.def of every folder, long texts
// from docs/errors/, which lie beside the stdlib in an install tree.
#pragma once

#include <string>
#include <vector>

#include "support/render_sarif.h"

namespace gshard {

bool looksLikeCode(const std::string& word);  // E0312, W0402, R0401
std::vector<std::string> allCodes();          // sorted
// The long text, or the message alone where none is written yet. Empty when there is no such code.
std::string explainCode(const std::string& code);
// All codes with their texts; the long one is the first paragraph of the page.
std::vector<SarifRule> errorIndex();

}  // namespace gshard
