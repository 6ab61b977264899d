// Building and collecting diagnostics; see diagnostics.h.
#include "support/diagnostics.h"

#include "support/check.h"
#include "support/text.h"

namespace gshard {

std::string_view severityName(Severity severity) {
  switch (severity) {
    case Severity::Error:
      return "error";
    case Severity::Warning:
      return "warning";
    case Severity::Remark:
      return "remark";
  }
  GSHARD_UNREACHABLE("severity");
}

DiagBuilder::~DiagBuilder() noexcept(false) {
  if (sink_) sink_->report(std::move(diagnostic_));
}

DiagBuilder& DiagBuilder::primaryLabel(std::string text) {
  diagnostic_.label = std::move(text);
  return *this;
}

DiagBuilder& DiagBuilder::label(SourceRange range, std::string text) {
  if (range.known()) diagnostic_.labels.push_back({range, std::move(text)});
  return *this;
}

DiagBuilder& DiagBuilder::note(std::string text) {
  diagnostic_.notes.push_back({std::move(text), {}});
  return *this;
}

DiagBuilder& DiagBuilder::note(SourceRange range, std::string text) {
  diagnostic_.notes.push_back({std::move(text), range});
  return *this;
}

DiagBuilder& DiagBuilder::help(std::string text) {
  diagnostic_.help.push_back({std::move(text), false, {}});
  return *this;
}

DiagBuilder& DiagBuilder::fix(std::string message, bool machineApplicable, std::vector<Edit> edits) {
  diagnostic_.help.push_back({std::move(message), machineApplicable, std::move(edits)});
  return *this;
}

DiagBuilder& DiagBuilder::group(std::string name) {
  diagnostic_.group = std::move(name);
  return *this;
}

DiagBuilder& DiagBuilder::shardingJson(std::string object) {
  diagnostic_.shardingJson = std::move(object);
  return *this;
}

std::string diagArgument(std::int64_t value) {
  return std::to_string(value);
}
std::string diagArgument(double value) {
  return formatNumber(value);
}

// A name of a megabyte would hide what is said of it.
static std::string shortened(const std::string& argument) {
  constexpr std::size_t kLongest = 1000;
  if (argument.size() <= kLongest) return argument;
  std::size_t end = kLongest / 2;
  while (end > 0 && (static_cast<unsigned char>(argument[end]) & 0xC0u) == 0x80u) --end;
  return argument.substr(0, end) + "…";
}

Diagnostic makeDiagnostic(SourceRange range, const char* code, Severity severity, const char* name, const char* text,
                          const std::vector<std::string>& arguments) {
  Diagnostic result;
  result.code = code;
  result.name = name;
  result.severity = severity;
  result.range = range;
  std::size_t next = 0;
  for (const char* p = text; *p != '\0'; ++p) {
    if ((p[0] == '{' && p[1] == '{') || (p[0] == '}' && p[1] == '}')) {
      result.message += *p++;
    } else if (p[0] == '{' && p[1] == '}') {
      GSHARD_CHECK(next < arguments.size(), std::string("too few arguments for ") + code);
      result.message += shortened(arguments[next++]);
      ++p;
    } else {
      result.message += *p;
    }
  }
  GSHARD_CHECK(next == arguments.size(), std::string("too many arguments for ") + code);
  return result;
}

void CollectingSink::report(Diagnostic diagnostic) {
  if (diagnostic.severity == Severity::Error) ++errors_;
  if (diagnostic.severity == Severity::Warning) ++warnings_;
  diagnostics_.push_back(std::move(diagnostic));
}

void CollectingSink::clear() {
  diagnostics_.clear();
  errors_ = 0;
  warnings_ = 0;
}

}  // namespace gshard
