// Showing diagnostics, finding the installation, writing files.
#include "driver/session.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "codegen/diagnostics.h"
#include "driver/diagnostics.h"
#include "driver/enclosing.h"
#include "driver/error_index.h"
#include "driver/version.h"
#include "sema/diagnostics.h"
#include "support/render.h"
#include "support/render_sarif.h"
#include "support/text.h"

namespace gshard {

namespace fs = std::filesystem;

namespace {

bool useColor(ColorMode mode) {
  switch (mode) {
    case ColorMode::Always:
      return true;
    case ColorMode::Never:
      return false;
    case ColorMode::Auto:
      break;
  }
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr &&
         (term == nullptr || std::strcmp(term, "dumb") != 0);
}

// Text may hold a NUL of a file that is no text.
void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

bool Session::silenced(const Diagnostic& diagnostic) const {
  switch (diagnostic.severity) {
    case Severity::Error:
      return false;
    case Severity::Warning:
      return options_.noWarnings || contains(options_.silenced, diagnostic.group) ||
             contains(options_.silenced, diagnostic.code) ||
             (contains(options_.silenced, "perf") && diagnostic.code.starts_with("W04"));
    case Severity::Remark:
      return !contains(options_.remarks, diagnostic.group);
  }
  return false;
}

bool Session::flush() {
  bool failedNow = false;
  const RenderOptions render{.color = useColor(options_.color)};
  for (; shown_ < sink_.diagnostics().size(); ++shown_) {
    Diagnostic diagnostic = sink_.diagnostics()[shown_];
    if (silenced(diagnostic)) continue;
    if (diagnostic.severity == Severity::Warning && options_.warningsAsErrors) diagnostic.severity = Severity::Error;
    if (diagnostic.severity == Severity::Error) {
      failedNow = true;
      if (++errors_ > options_.errorLimit) continue;
    } else if (options_.quiet) {
      continue;
    }
    if (silent_) continue;
    switch (options_.diagnostics) {
      case DiagnosticsFormat::Text:
        print(renderText(diagnostic, sources_, render));
        break;
      case DiagnosticsFormat::Short:
        print(renderShort(diagnostic, sources_));
        break;
      case DiagnosticsFormat::Json:
        print(renderJson(diagnostic, sources_));
        break;
      case DiagnosticsFormat::Sarif:
        findings_.push_back(std::move(diagnostic));
        break;
    }
  }
  return failedNow;
}

ExitCode Session::exitCode() const {
  const auto isOne = [](const Diagnostic& diagnostic, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return diagnostic.name == name; });
  };
  for (const Diagnostic& diagnostic : sink_.diagnostics()) {
    if (diagnostic.severity != Severity::Error) continue;
    if (isOne(diagnostic, {sema::diag::FileNotReadable.name, diag::FileUnreadable.name, diag::FileUnwritable.name}))
      return kInputOutput;
    if (isOne(diagnostic, {sema::diag::MeshOption.name, sema::diag::DefineUnknown.name, sema::diag::DefineValue.name,
                           diag::UnknownPlatform.name, diag::UnknownPass.name, diag::TargetUnknown.name,
                           diag::TargetNotHere.name, diag::StandardOutputTwice.name, diag::UnknownCode.name})) {
      return kUsage;
    }
    return kProgramErrors;
  }
  return kProgramErrors;  // warnings, with -Werror
}

void Session::summarize() const {
  if (errors_ == 0 || options_.diagnostics == DiagnosticsFormat::Json ||
      options_.diagnostics == DiagnosticsFormat::Sarif)
    return;
  const std::string name = fs::path(options_.input).filename().string();
  const std::string hidden =
      errors_ > options_.errorLimit ? " (" + std::to_string(options_.errorLimit) + " shown)" : "";
  std::fprintf(stderr, "error: %s in %s%s\n", plural(errors_, "error").c_str(), name.c_str(), hidden.c_str());
}

void Session::writeSarif(bool evenEmpty) {
  if (options_.diagnostics != DiagnosticsFormat::Sarif || (findings_.empty() && !evenEmpty)) return;
  std::vector<SarifFinding> findings;
  for (Diagnostic& diagnostic : findings_) {
    std::string declaration = enclosingDeclaration(diagnostic.range, sources_);
    findings.push_back({std::move(diagnostic), std::move(declaration)});
  }
  findings_.clear();
  std::error_code error;
  const std::string root = fs::current_path(error).string();
  std::fputs(renderSarif(findings, errorIndex(), versionNumber(), root, sources_).c_str(), stderr);
}

void Session::printTimes() const {
  double total = 0;
  for (const StageTime& time : times_) total += time.seconds;
  for (const StageTime& time : times_) {
    std::fprintf(stderr, "%9.3f ms %5.1f %%  %s", time.seconds * 1e3, total > 0 ? 100 * time.seconds / total : 0.0,
                 time.name.c_str());
    if (time.ops >= 0) std::fprintf(stderr, "  (%lld ops)", static_cast<long long>(time.ops));
    std::fputc('\n', stderr);
  }
  std::fprintf(stderr, "%9.3f ms          total\n", total * 1e3);
}

Installation findInstallation() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
  Installation found;
  for (const fs::path& candidate : {self / "../share/gshard/stdlib", fs::path(GSHARD_SOURCE_STDLIB)}) {
    if (found.stdlib.empty() && fs::exists(candidate / "prelude.gsd", error))
      found.stdlib = fs::weakly_canonical(candidate, error).string();
  }
  for (const fs::path& candidate : {self / "../share/gshard/errors", fs::path(GSHARD_SOURCE_ERRORS)}) {
    if (found.errorIndex.empty() && fs::is_directory(candidate, error)) found.errorIndex = candidate.string();
  }
  std::vector<fs::path> runtimes = {self / "../lib/gshard", self / "../runtime"};
  if (const char* set = std::getenv("GSHARD_RUNTIME")) runtimes.insert(runtimes.begin(), fs::path(set));
  for (const fs::path& candidate : runtimes) {
    if (found.runtime.empty() && fs::exists(candidate / "libgshard_runtime.a", error)) {
      found.runtime = fs::weakly_canonical(candidate, error).string();
    }
  }
  return found;
}

std::vector<std::string> environmentPaths() {
  const char* set = std::getenv("GSHARD_PATH");
  if (set == nullptr || *set == '\0') return {};
  return splitText(set, ':');
}

bool findsRaces() {
  const char* set = std::getenv("GSHARD_SANITIZER");
  return set != nullptr && std::string_view(set) == "thread";
}

bool writeFile(const std::string& path, const std::string& bytes, DiagSink& diag) {
  if (path == "-") {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    return std::fflush(stdout) == 0;
  }
  // Through links to the file itself, which rename would replace.
  std::error_code noFile;
  const fs::path known = fs::canonical(path, noFile);
  const std::string target = noFile ? path : known.string();
  const std::string part = target + ".part" + std::to_string(getpid());
  errno = 0;
  std::ofstream file(part, std::ios::binary);
  // What is replaced keeps its permissions.
  const fs::file_status old = fs::status(target, noFile);
  if (!noFile && fs::is_regular_file(old)) fs::permissions(part, old.permissions(), noFile);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code error;
  if (file) fs::rename(part, target, error);
  if (file && !error) return true;
  const std::string reason = error ? error.message() : std::strerror(errno);
  fs::remove(part, error);
  diag.emit({}, diag::FileUnwritable, path, reason);
  return false;
}

}  // namespace gshard
