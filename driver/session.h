// One run of the compiler: its sources, what was reported, and how that is shown. Commands share it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/options.h"
#include "ir/pass_manager.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace gshard {

// Exit codes of gshardc (ux.md section 3).
enum ExitCode { kOk = 0, kProgramErrors = 1, kUsage = 2, kInputOutput = 3, kInternalError = 70 };

// Time of one stage or pass, for --time-passes.
struct StageTime {
  std::string name;
  double seconds = 0;
  std::int64_t ops = -1;
};

class Session {
 public:
  // `silent`: nothing is printed; for runs whose messages are only looked at.
  explicit Session(const Options& options, bool silent = false) : options_(options), silent_(silent) {}

  const Options& options() const { return options_; }
  SourceManager& sources() { return sources_; }
  const SourceManager& sources() const { return sources_; }
  CollectingSink& sink() { return sink_; }
  std::vector<StageTime>& times() { return times_; }

  // Prints what was reported since the last call to stderr; remarks only in their groups. With -Werror warnings count
  // as errors. True when there were errors.
  bool flush();
  bool failed() const { return errors_ > 0; }
  // What errors end a run with: options that name nothing are usage, files that cannot be read or written I/O, all else
  // is the program's. The first error decides.
  ExitCode exitCode() const;
  // The line that closes a run with errors: "error: 2 errors in digits_mlp.gsd".
  void summarize() const;
  // With --diagnostics=sarif the log of everything shown so far; `evenEmpty`: also when nothing was.
  void writeSarif(bool evenEmpty);
  void printTimes() const;

 private:
  bool silenced(const Diagnostic& diagnostic) const;

  const Options& options_;
  bool silent_;
  SourceManager sources_;
  CollectingSink sink_;
  std::size_t shown_ = 0;
  std::int64_t errors_ = 0;
  std::vector<Diagnostic> findings_;  // for SARIF, which is one log
  std::vector<StageTime> times_;
};

// Folders of this installation: next to the executable in a build tree, share/ and lib/ in an install tree.
// GSHARD_RUNTIME and GSHARD_PATH of the environment come first.
struct Installation {
  std::string stdlib, runtime, errorIndex;
};
Installation findInstallation();
std::vector<std::string> environmentPaths();  // of GSHARD_PATH
bool findsRaces();                            // GSHARD_SANITIZER=thread: programs are made for ThreadSanitizer

// Writes to a temporary name beside `path` and renames it, so nothing half-written is ever seen. `-` is stdout.
bool writeFile(const std::string& path, const std::string& bytes, DiagSink& diag);

}  // namespace gshard
