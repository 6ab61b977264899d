// What must hold of every example of every op (style.md section 2). A property returns its faults; an empty list is
// success.
#pragma once

#include <string>
#include <vector>

#include "example_program.h"

namespace gshard::conformance {

using Faults = std::vector<std::string>;

struct Property {
  std::string_view name;
  bool (*applies)(const OpDef& def, const Example& example);
  Faults (*check)(const Example& example, const std::string& mesh);
  std::vector<std::string> meshes;  // one case each
};

const std::vector<Property>& allProperties();

Faults checkInfer(const Example& example, const std::string& mesh);
Faults checkText(const Example& example, const std::string& mesh);
Faults checkExpected(const Example& example, const std::string& mesh);
Faults checkOtherMesh(const Example& example, const std::string& mesh);
Faults checkGradient(const Example& example, const std::string& mesh);
Faults checkSplit(const Example& example, const std::string& mesh);
Faults checkDtypes(const Example& example, const std::string& mesh);
Faults checkPartitioned(const Example& example, const std::string& mesh);
Faults checkPartial(const Example& example, const std::string& mesh);

}  // namespace gshard::conformance
