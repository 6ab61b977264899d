// Running passes: time, stop at errors, verify, keep the text that a failure needs.
#include "ir/pass_manager.h"

#include <chrono>
#include <map>

#include "ir/known_ops.h"
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

using FunctionTexts = std::map<std::string, std::string>;  // by name, since a pass may move functions

FunctionTexts functionTexts(const Module& module) {
  FunctionTexts texts;
  for (const Function& function : module.functions) texts[function.name] = printFunction(module, function);
  return texts;
}

// Is there a function that the pass changed, and says it did not?
std::optional<std::string> claimFault(const FunctionTexts& before, const FunctionTexts& after,
                                      const std::set<const Function*>& unchanged) {
  for (const Function* function : unchanged) {
    const auto was = before.find(function->name), is = after.find(function->name);
    if (was == before.end() || is == after.end() || was->second != is->second)
      return "it changes a function that it names unchanged";
  }
  return std::nullopt;
}
}  // namespace

namespace {
// What `module`, as it came in, was before pass `count`, for a report: passes give the same again, so that no run has
// to keep or print what only a failure asks for.
std::string textBefore(Module module, std::span<const Pass> passes, std::size_t count, const PassOptions& options) {
  CollectingSink sink;
  PassContext context{options, sink};
  for (const Pass& pass : passes.first(count)) pass.run(module, context);
  return printModule(module);
}
}  // namespace

PassRun runPasses(Module& module, std::span<const Pass> passes, PassContext& context,
                  const PassManagerOptions& options) {
  PassRun run;
  const std::function<Module()> again = options.again ? options.again : [first = module] { return first; };
  KnownOps known;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const Pass& pass = passes[i];
    PassRecord record;
    record.name = pass.name;
    const bool isDumped = options.dumpAfter == "all" || options.dumpAfter == pass.name;
    const std::string before = isDumped ? printModule(module) : std::string();
    const FunctionTexts textsBefore = options.checkRoundTrip ? functionTexts(module) : FunctionTexts();
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
    if (!fault && options.checkRoundTrip && !watched.unchanged.empty())
      fault = claimFault(textsBefore, functionTexts(module), watched.unchanged);
    // What comes in was not looked at yet, nor for another form.
    if (i == 0 || passes[i - 1].form != pass.form) watched.unchanged.clear();
    if (!fault && !sink.sawError()) fault = verify(module, pass.form, known, watched.unchanged);
    std::string after;
    if (!fault && (isDumped || options.checkRoundTrip)) after = printModule(module);
    if (!fault && options.checkRoundTrip && !sink.sawError()) fault = roundTripFault(after);
    if (fault) {
      run.failure = PassFailure{std::string(pass.name), *fault, textBefore(again(), passes, i, context.options)};
      run.stopped = true;
      return run;
    }
    record.ops = opCount(module);
    if (isDumped) record.text = after == before ? "// unchanged\n" : after;
    run.records.push_back(std::move(record));
    if (sink.sawError()) {
      run.stopped = true;
      return run;
    }
    if (options.after) options.after(pass, module);
  }
  return run;
}

}  // namespace gshard
