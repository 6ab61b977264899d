// Reading and writing of contraction letters.
#include "ir/contract_spec.h"

#include "support/check.h"

namespace gshard {

namespace {
bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
}  // namespace

std::string ContractSpec::letters() const {
  std::string all = result;
  for (const std::string& operand : operands) {
    for (const char letter : operand) {
      if (all.find(letter) == std::string::npos) all += letter;
    }
  }
  return all;
}

std::string ContractSpec::summed() const {
  return letters().substr(result.size());
}

std::optional<ContractSpec> parseContractSpec(std::string_view text, std::string& fault) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) {
    fault = "has no `->`";
    return std::nullopt;
  }
  ContractSpec spec;
  spec.operands.emplace_back();
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      spec.operands.emplace_back();
    } else if (isLetter(c)) {
      spec.operands.back() += c;
    } else if (c != ' ') {
      fault = std::string("has `") + c + "`, which is no letter";
      return std::nullopt;
    }
  }
  for (const char c : text.substr(arrow + 2)) {
    if (c == ' ') continue;
    if (!isLetter(c)) {
      fault = std::string("has `") + c + "`, which is no letter";
      return std::nullopt;
    }
    if (spec.result.find(c) != std::string::npos) {
      fault = std::string("names `") + c + "` twice in its result";
      return std::nullopt;
    }
    spec.result += c;
  }
  for (const char letter : spec.result) {
    bool found = false;
    for (const std::string& operand : spec.operands) found = found || operand.find(letter) != std::string::npos;
    if (found) continue;
    fault = std::string("names `") + letter + "` in its result, but no operand has it";
    return std::nullopt;
  }
  return spec;
}

ContractSpec contractSpec(std::string_view text) {
  std::string fault;
  const std::optional<ContractSpec> spec = parseContractSpec(text, fault);
  GSHARD_CHECK(spec.has_value(), std::string(text) + " " + fault);
  return *spec;
}

std::string printContractSpec(const ContractSpec& spec) {
  std::string text;
  for (std::size_t i = 0; i < spec.operands.size(); ++i) text += (i > 0 ? "," : "") + spec.operands[i];
  return text + "->" + spec.result;
}

}  // namespace gshard
