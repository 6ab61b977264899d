// Running passes: time, stop at errors, verify, keep the text that a failure needs.
#include "ir/pass_manager.h"

#include <chrono>

#include "ir/text.h"
#include "support/check.h"

namespace gshard {

namespace {
// Passes on what a pass reports and remembers whether an error was among it.
class WatchingSink : public DiagSink {
 public:
  explicit WatchingSink(DiagSink& target) : target_(&target) {}
  void report(Diagnostic diagnostic) override {
    sawError_ = sawError_ || diagnostic.severity == Severity::Error;
    target_->report(std::move(diagnostic));
  }
  bool sawError() const { return sawError_; }

 private:
  DiagSink* target_;
  bool sawError_ = false;
};

std::int64_t opCount(const Module& module) {
  std::int64_t count = 0;
  for (const Function& function : module.functions) count += static_cast<std::int64_t>(function.ops.size());
  return count;
}

std::optional<std::string> roundTripFault(const std::string& text) {
  SourceManager sources;
  CollectingSink sink;
  const std::optional<Module> again = parseModule(sources.addFile("round-trip.ir", text), sources, sink);
  if (!again)
    return "its text does not parse: " + (sink.diagnostics().empty() ? "" : sink.diagnostics().front().message);
  return printModule(*again) == text ? std::nullopt
                                     : std::optional<std::string>("its text changes when parsed and printed");
}
}  // namespace

PassRun runPasses(Module& module, std::span<const Pass> passes, PassContext& context,
                  const PassManagerOptions& options) {
  PassRun run;
  // A copy, not a text: printing costs more than most passes, and only a failure or a dump needs it.
  Module before = module;
  for (const Pass& pass : passes) {
    PassRecord record;
    record.name = pass.name;
    WatchingSink sink(context.diag);
    PassContext watched{context.options, sink};
    const auto start = std::chrono::steady_clock::now();
    std::optional<std::string> fault;
    try {
      pass.run(module, watched);
    } catch (const InternalError& error) {
      fault = error.what();
    }
    record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!fault && !sink.sawError()) fault = verify(module, pass.form);
    if (!fault && options.checkRoundTrip && !sink.sawError()) fault = roundTripFault(printModule(module));
    if (fault) {
      run.failure = PassFailure{std::string(pass.name), *fault, printModule(before)};
      run.stopped = true;
      return run;
    }
    record.ops = opCount(module);
    if (options.dumpAfter == "all" || options.dumpAfter == pass.name) {
      std::string after = printModule(module);
      record.text = after == printModule(before) ? "// unchanged\n" : std::move(after);
    }
    run.records.push_back(std::move(record));
    if (sink.sawError()) {
      run.stopped = true;
      return run;
    }
    before = module;
  }
  return run;
}

}  // namespace gshard
