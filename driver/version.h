// Version of gshardc and of what it was built with.
#pragma once

#include <string>

namespace gshard {

std::string versionNumber();  // "0.1.0"
std::string versionText();    // for --version: first line "gshardc 0.1.0"

}  // namespace gshard
