// Diagnostics as data: every message is a row of a folder's diagnostics.def, emitted with typed arguments and ranges
// into a DiagSink that the caller handed in. Rendering (support/render.h) is apart, so library code never prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/source.h"

namespace gshard {

enum class Severity { Error, Warning, Remark };

/// "error", "warning", "remark"
std::string_view severityName(Severity severity);

/// A secondary range and what it is.
struct Label {
  SourceRange range;
  std::string text;
};

/// A fact or an origin below the source lines; `range` may be unknown.
struct Note {
  std::string text;
  SourceRange range;
};

/// Replace `range` by `text`; an empty range inserts.
struct Edit {
  SourceRange range;
  std::string text;
};

/// One proposal. Without edits it is advice only.
struct FixIt {
  std::string message;
  bool machineApplicable = false;
  std::vector<Edit> edits;
};

struct Diagnostic {
  std::string code;   // "E0312"
  std::string name;   // "InnerDimsDiffer", of the row in diagnostics.def
  std::string group;  // for -Wno-GROUP, as "reshard"; may be empty
  Severity severity = Severity::Error;
  std::string message;
  SourceRange range;  // primary
  std::string label;  // of the primary range; may be empty
  std::vector<Label> labels;
  std::vector<Note> notes;
  std::vector<FixIt> help;
  std::string shardingJson;  // text of the JSON object `sharding` of ux.md section 2; may be empty
};

/// One row of a diagnostics.def. `Args` are std::string, std::int64_t or double, one per `{}` in `text`.
template <class... Args>
struct Diag {
  const char* code;
  Severity severity;
  const char* name;
  const char* text;
};

class DiagSink;

/// Adds to a diagnostic that is about to be reported; reports it when destroyed.
class DiagBuilder {
 public:
  DiagBuilder(DiagSink& sink, Diagnostic diagnostic) : sink_(&sink), diagnostic_(std::move(diagnostic)) {}
  DiagBuilder(DiagBuilder&& other) noexcept
      : sink_(std::exchange(other.sink_, nullptr)), diagnostic_(std::move(other.diagnostic_)) {}
  DiagBuilder(const DiagBuilder&) = delete;
  DiagBuilder& operator=(const DiagBuilder&) = delete;
  DiagBuilder& operator=(DiagBuilder&&) = delete;
  ~DiagBuilder() noexcept(false);

  DiagBuilder& primaryLabel(std::string text);
  /// A label on an unknown range is left out.
  DiagBuilder& label(SourceRange range, std::string text);
  DiagBuilder& note(std::string text);
  DiagBuilder& note(SourceRange range, std::string text);
  DiagBuilder& help(std::string text);
  DiagBuilder& fix(std::string message, bool machineApplicable, std::vector<Edit> edits);
  DiagBuilder& group(std::string name);
  DiagBuilder& shardingJson(std::string object);

 private:
  DiagSink* sink_;
  Diagnostic diagnostic_;
};

inline std::string diagArgument(std::string value) {
  return value;
}
std::string diagArgument(std::int64_t value);
std::string diagArgument(double value);

/// A Diagnostic from a row; `text` has one `{}` per argument (`{{` and `}}` are braces).
Diagnostic makeDiagnostic(SourceRange range, const char* code, Severity severity, const char* name, const char* text,
                          const std::vector<std::string>& arguments);

/// Where a stage reports to.
class DiagSink {
 public:
  virtual ~DiagSink() = default;
  virtual void report(Diagnostic diagnostic) = 0;

  template <class... Args>
  DiagBuilder emit(SourceRange range, const Diag<Args...>& row, std::type_identity_t<Args>... arguments) {
    return DiagBuilder(*this, makeDiagnostic(range, row.code, row.severity, row.name, row.text,
                                             {diagArgument(std::move(arguments))...}));
  }
};

/// Keeps everything, in the order reported.
class CollectingSink : public DiagSink {
 public:
  void report(Diagnostic diagnostic) override;

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  std::int64_t errorCount() const { return errors_; }
  std::int64_t warningCount() const { return warnings_; }
  bool hasErrors() const { return errors_ > 0; }
  void clear();

 private:
  std::vector<Diagnostic> diagnostics_;
  std::int64_t errors_ = 0;
  std::int64_t warnings_ = 0;
};

}  // namespace gshard

/// Takes the parentheses off the type list of a GSHARD_DIAG row. A folder's diagnostics.h reads (the define on one
/// line):
///   namespace gshard::diag {
///   #define GSHARD_DIAG(code, severity, name, text, types)
///     inline constexpr Diag<GSHARD_DIAG_TYPES types> name{#code, Severity::severity, #name, text};
///   #include "<folder>/diagnostics.def"
///   #undef GSHARD_DIAG
///   }
#define GSHARD_DIAG_TYPES(...) __VA_ARGS__
