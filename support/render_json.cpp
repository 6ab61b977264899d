// JSON rendering: one object a line, keys in the order of ux.md section 2, absent rather than null.
#include <nlohmann/json.hpp>

#include "support/render.h"

namespace gshard {

using Json = nlohmann::ordered_json;

static Json spanJson(SourceRange range, bool primary, const std::string& label, const SourceManager& sources) {
  const LineColumn begin = sources.lineColumn(range.file, range.begin);
  const LineColumn end = sources.lineColumn(range.file, range.end);
  Json span;
  span["file"] = sources.name(range.file);
  span["byte_start"] = range.begin;
  span["byte_end"] = range.end;
  span["line"] = begin.line;
  span["column"] = begin.column;
  span["end_line"] = end.line;
  span["end_column"] = end.column;
  span["primary"] = primary;
  if (!label.empty()) span["label"] = label;
  return span;
}

static Json childJson(const char* level, const std::string& message, SourceRange range, const SourceManager& sources) {
  Json child;
  child["level"] = level;
  child["message"] = message;
  child["spans"] = Json::array();
  if (range.known()) child["spans"].push_back(spanJson(range, true, "", sources));
  return child;
}

static Json fixJson(const FixIt& fix, const SourceManager& sources) {
  Json result;
  result["message"] = fix.message;
  result["applicability"] = fix.machineApplicable ? "machine-applicable" : "maybe-incorrect";
  result["edits"] = Json::array();
  for (const Edit& edit : fix.edits) {
    if (!edit.range.known()) continue;
    Json one;
    one["file"] = sources.name(edit.range.file);
    one["byte_start"] = edit.range.begin;
    one["byte_end"] = edit.range.end;
    one["text"] = edit.text;
    result["edits"].push_back(std::move(one));
  }
  return result;
}

std::string renderJson(const Diagnostic& diagnostic, const SourceManager& sources) {
  Json json;
  json["format"] = 1;
  if (!diagnostic.code.empty()) json["code"] = diagnostic.code;
  json["level"] = severityName(diagnostic.severity);
  if (!diagnostic.group.empty()) json["group"] = diagnostic.group;
  json["message"] = diagnostic.message;
  json["spans"] = Json::array();
  if (diagnostic.range.known()) json["spans"].push_back(spanJson(diagnostic.range, true, diagnostic.label, sources));
  for (const Label& label : diagnostic.labels) {
    if (label.range.known()) json["spans"].push_back(spanJson(label.range, false, label.text, sources));
  }
  json["children"] = Json::array();
  for (const Note& note : diagnostic.notes)
    json["children"].push_back(childJson("note", note.text, note.range, sources));
  json["fixes"] = Json::array();
  for (const FixIt& fix : diagnostic.help) {
    if (fix.edits.empty())
      json["children"].push_back(childJson("help", fix.message, {}, sources));
    else
      json["fixes"].push_back(fixJson(fix, sources));
  }
  if (!diagnostic.shardingJson.empty()) json["sharding"] = Json::parse(diagnostic.shardingJson);
  json["rendered"] = renderText(diagnostic, sources);
  // Source text may hold broken UTF-8; it is shown replaced, never thrown on.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gshard
