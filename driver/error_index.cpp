// Joining the tables of all folders.
#include "driver/error_index.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/session.h"
#include "support/text.h"

namespace gshard {

namespace {

struct Row {
  std::string_view code, severity, name, text;
};

constexpr Row kRows[] = {
#define GSHARD_DIAG(code, severity, name, text, types) {#code, #severity, #name, text},
#include "codegen/diagnostics.def"
#include "driver/diagnostics.def"
#include "frontend/diagnostics.def"
#include "ir/diagnostics.def"
#include "partition/diagnostics.def"
#include "runtime/diagnostics.def"
#include "sema/diagnostics.def"
#undef GSHARD_DIAG
};

// `{}` of a message stands for what the program has there.
std::string readable(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "{}") == 0) {
      result += "\u2026";
      ++i;
    } else if (text.compare(i, 2, "{{") == 0 || text.compare(i, 2, "}}") == 0) {
      result += text[i++];
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

bool looksLikeCode(const std::string& word) {
  return word.size() == 5 && (word[0] == 'E' || word[0] == 'W' || word[0] == 'R') &&
         std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> allCodes() {
  std::vector<std::string> codes;
  for (const Row& row : kRows) codes.emplace_back(row.code);
  std::sort(codes.begin(), codes.end());
  return codes;
}

std::string explainCode(const std::string& code) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& item) { return item.code == code; });
  if (row == std::end(kRows)) return "";
  std::ifstream file(std::filesystem::path(findInstallation().errorIndex) / (code + ".md"));
  if (file) {
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  return "# " + code + "\n\n" + readable(row->text) + "\n";
}

std::vector<SarifRule> errorIndex() {
  std::vector<SarifRule> rules;
  for (const Row& row : kRows) {
    SarifRule rule;
    rule.code = row.code;
    rule.shortText = readable(row.text);
    rule.severity = row.severity == "Error"     ? Severity::Error
                    : row.severity == "Warning" ? Severity::Warning
                                                : Severity::Remark;
    // A page is a title, an empty line, and the paragraph that says why.
    const std::vector<std::string> lines = splitText(explainCode(rule.code), '\n');
    for (std::size_t i = 2; i < lines.size() && !lines[i].empty(); ++i)
      rule.fullText += (rule.fullText.empty() ? "" : " ") + lines[i];
    rules.push_back(std::move(rule));
  }
  std::sort(rules.begin(), rules.end(), [](const SarifRule& a, const SarifRule& b) { return a.code < b.code; });
  return rules;
}

}  // namespace gshard
