// Passes and their manager: a pass is one free function and one line in a passes.def. The manager times, verifies after
// every pass, and keeps what --dump-after and a failure need. It serves every pipeline.
#pragma once

#include <functional>

#include "ir/verifier.h"
#include "support/diagnostics.h"

namespace gshard {

// Options that passes read; the driver fills it once and everybody reads it by const reference.
struct PassOptions {
  bool strictSharding = false;
  std::int64_t combineBytes = 1 << 20;  // collectives up to this size are combined
};

struct PassContext {
  const PassOptions& options;
  DiagSink& diag;
  std::set<const Function*> unchanged = {};  // what a pass left as it was may be named: it is not verified again
};

struct Pass {
  std::string_view name, help;
  void (*run)(Module&, PassContext&);
  Form form = Form::Global;  // what must hold afterwards
};

struct PassRecord {
  std::string name;
  double seconds = 0;
  std::int64_t ops = 0;             // in the whole module, afterwards
  std::optional<std::string> text;  // when asked for: the IR after it, or "// unchanged"
};

// A fault of ours: the driver turns it into exit code 70 and a file that reproduces it.
struct PassFailure {
  std::string pass, fault, textBefore;
};

struct PassRun {
  std::vector<PassRecord> records;
  std::optional<PassFailure> failure;
  bool stopped = false;  // a pass emitted an error
};

struct PassManagerOptions {
  std::string dumpAfter;        // pass name, "all" or empty
  bool checkRoundTrip = false;  // in tests: parse(print(m)) == m
  // Makes the module once more as it comes in: asked when a pass fails, for the text before it. Without it a copy is
  // kept, which a deep model pays for.
  std::function<Module()> again = {};
  // Shown the module after each pass that is verified and reported no error.
  std::function<void(const Pass&, const Module&)> after = {};
};

PassRun runPasses(Module& module, std::span<const Pass> passes, PassContext& context,
                  const PassManagerOptions& options);

}  // namespace gshard
