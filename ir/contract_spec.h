// The letters of a contraction: "bi,ih->bh" read once for its rules, evaluator and codegen.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gshard {

struct ContractSpec {
  std::vector<std::string> operands;  // letters per operand
  std::string result;
  // All letters, those of the result first, then by first appearance.
  std::string letters() const;
  // Letters absent from the result.
  std::string summed() const;
};

// Nothing, and words in `fault` ("has no `->`"), when the text is no spec.
std::optional<ContractSpec> parseContractSpec(std::string_view text, std::string& fault);
ContractSpec contractSpec(std::string_view text);  // of a verified op
std::string printContractSpec(const ContractSpec& spec);

}  // namespace gshard
