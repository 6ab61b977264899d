// SARIF rendering: ux.md section 2 says which part of a diagnostic becomes which property.
#include "support/render_sarif.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

namespace gshard {

using Json = nlohmann::ordered_json;

namespace {

const char* levelOf(Severity severity) {
  switch (severity) {
    case Severity::Error:
      return "error";
    case Severity::Warning:
      return "warning";
    case Severity::Remark:
      return "note";
  }
  return "none";
}

// Relative, with what a URI reserves written as %XX.
std::string uriOf(const std::string& name, const std::string& root) {
  std::filesystem::path path(name);
  if (path.is_absolute()) path = path.lexically_relative(root);
  const std::string text = path.lexically_normal().generic_string();
  std::string uri;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    if (plain) {
      uri += c;
      continue;
    }
    constexpr const char* digits = "0123456789ABCDEF";
    uri += '%';
    uri += digits[static_cast<unsigned char>(c) >> 4];
    uri += digits[static_cast<unsigned char>(c) & 15];
  }
  return uri;
}

class SarifWriter {
 public:
  SarifWriter(const std::string& root, const SourceManager& sources) : root_(root), sources_(sources) {}

  Json artifact(FileId file) const { return {{"uri", uriOf(sources_.name(file), root_)}, {"uriBaseId", "SRCROOT"}}; }

  Json region(SourceRange range) const {
    const LineColumn begin = sources_.lineColumn(range.file, range.begin);
    const LineColumn end = sources_.lineColumn(range.file, range.end);
    return {{"startLine", begin.line}, {"startColumn", begin.column}, {"endLine", end.line},
            {"endColumn", end.column}, {"byteOffset", range.begin},   {"byteLength", range.end - range.begin}};
  }

  Json location(SourceRange range, const std::string& text) const {
    Json result;
    result["physicalLocation"] = {{"artifactLocation", artifact(range.file)}, {"region", region(range)}};
    if (!text.empty()) result["message"] = {{"text", text}};
    return result;
  }

  Json fix(const FixIt& fix) const {
    std::map<FileId, Json> perFile;
    for (const Edit& edit : fix.edits) {
      if (!edit.range.known()) continue;
      Json& list = perFile.try_emplace(edit.range.file, Json::array()).first->second;
      list.push_back({{"deletedRegion", region(edit.range)}, {"insertedContent", {{"text", edit.text}}}});
    }
    Json changes = Json::array();
    for (auto& [file, replacements] : perFile)
      changes.push_back({{"artifactLocation", artifact(file)}, {"replacements", std::move(replacements)}});
    Json result;
    result["description"] = {{"text", fix.message}};
    result["artifactChanges"] = std::move(changes);
    result["properties"] = {{"applicability", fix.machineApplicable ? "machine-applicable" : "maybe-incorrect"}};
    return result;
  }

  Json result(const SarifFinding& finding, std::int64_t rule, const std::string& fingerprint) const {
    const Diagnostic& diagnostic = finding.diagnostic;
    Json result;
    result["ruleId"] = diagnostic.code;
    if (rule >= 0) result["ruleIndex"] = rule;
    result["level"] = levelOf(diagnostic.severity);
    std::string text = diagnostic.message;
    for (const Note& note : diagnostic.notes) text += "\nnote: " + note.text;
    for (const FixIt& help : diagnostic.help) text += "\nhelp: " + help.message;
    result["message"] = {{"text", text}};
    if (diagnostic.range.known()) result["locations"] = Json::array({location(diagnostic.range, diagnostic.label)});
    Json related = Json::array(), fixes = Json::array();
    for (const Label& label : diagnostic.labels) {
      if (label.range.known()) related.push_back(location(label.range, label.text));
    }
    for (const Note& note : diagnostic.notes) {
      if (note.range.known()) related.push_back(location(note.range, note.text));
    }
    for (const FixIt& help : diagnostic.help) {
      if (!help.edits.empty()) fixes.push_back(fix(help));
    }
    if (!related.empty()) result["relatedLocations"] = std::move(related);
    if (!fixes.empty()) result["fixes"] = std::move(fixes);
    result["partialFingerprints"] = {{"codeAndDeclaration/v1", fingerprint}};
    if (!diagnostic.shardingJson.empty()) result["properties"] = {{"sharding", Json::parse(diagnostic.shardingJson)}};
    return result;
  }

 private:
  const std::string& root_;
  const SourceManager& sources_;
};

}  // namespace

std::string renderSarif(const std::vector<SarifFinding>& findings, const std::vector<SarifRule>& rules,
                        const std::string& version, const std::string& root, const SourceManager& sources) {
  std::map<std::string, std::int64_t> indexOf;
  Json ruleList = Json::array();
  for (const SarifRule& rule : rules) {
    const bool used = std::any_of(findings.begin(), findings.end(),
                                  [&](const SarifFinding& one) { return one.diagnostic.code == rule.code; });
    if (!used) continue;
    indexOf[rule.code] = static_cast<std::int64_t>(ruleList.size());
    Json one;
    one["id"] = rule.code;
    one["shortDescription"] = {{"text", rule.shortText}};
    one["fullDescription"] = {{"text", rule.fullText}};
    one["defaultConfiguration"] = {{"level", levelOf(rule.severity)}};
    ruleList.push_back(std::move(one));
  }
  const SarifWriter writer(root, sources);
  Json results = Json::array();
  std::map<std::string, int> seen;  // the second of one code in one declaration is another finding
  for (const SarifFinding& finding : findings) {
    std::string print = finding.diagnostic.code + ":" + finding.declaration;
    const int count = seen[print]++;
    if (count > 0) print += ":" + std::to_string(count);
    const auto rule = indexOf.find(finding.diagnostic.code);
    results.push_back(writer.result(finding, rule == indexOf.end() ? -1 : rule->second, print));
  }
  Json driver;
  driver["name"] = "gshardc";
  driver["version"] = version;
  driver["rules"] = std::move(ruleList);
  Json run;
  run["tool"] = {{"driver", std::move(driver)}};
  run["columnKind"] = "unicodeCodePoints";
  run["results"] = std::move(results);
  Json log;
  log["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json";
  log["version"] = "2.1.0";
  log["runs"] = Json::array({std::move(run)});
  return log.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gshard
