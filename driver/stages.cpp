// Source to SPMD module and plan. The order of things here is the order of docs/architecture.md.
#include "driver/stages.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>

#include "driver/diagnostics.h"
#include "frontend/parse.h"
#include "ir/passes.h"
#include "ir/text.h"
#include "partition/comm_plan.h"
#include "partition/passes.h"
#include "sema/elaborate.h"
#include "support/check.h"
#include "support/text.h"

namespace gshard {

namespace {

// Adds the time of a stage to the session when it goes out of scope.
class StageTimer {
 public:
  StageTimer(Session& session, std::string name) : session_(session), name_(std::move(name)), start_(Clock::now()) {}
  ~StageTimer() {
    session_.times().push_back({name_, std::chrono::duration<double>(Clock::now() - start_).count(), -1});
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  Session& session_;
  std::string name_;
  Clock::time_point start_;
};

void stopOnErrors(Session& session) {
  if (session.flush() || session.failed()) throw Stopped{session.exitCode()};
}

bool isIr(const Session& session) {
  return session.options().input.ends_with(".ir");
}

FileId loadInput(Session& session) {
  std::string error;
  const std::optional<FileId> file = session.sources().addFileFromDisk(session.options().input, error);
  if (file && isIr(session)) {
    // IR text has no check of its own for this; the front end has.
    if (const auto broken = findInvalidUtf8(session.sources().text(*file)))
      error = "byte " + std::to_string(*broken) + " is not UTF-8 text";
  }
  if (file && error.empty()) return *file;
  session.sink().emit({}, diag::FileUnreadable, session.options().input, error);
  throw Stopped{kInputOutput};
}

std::vector<Pass> allPasses() {
  std::vector<Pass> passes(globalPipeline().begin(), globalPipeline().end());
  passes.insert(passes.end(), partitionPipeline().begin(), partitionPipeline().end());
  return passes;
}

void checkPassNames(Session& session) {
  const std::string& name = session.options().dumpAfter;
  std::vector<std::string> names;
  for (const Pass& pass : allPasses()) names.emplace_back(pass.name);
  if (session.options().printPasses) {
    for (const Pass& pass : allPasses()) {
      std::fprintf(stderr, "%-32s %s\n", std::string(pass.name).c_str(), std::string(pass.help).c_str());
    }
  }
  if (name.empty() || name == "all" || std::find(names.begin(), names.end(), name) != names.end()) return;
  auto builder = session.sink().emit({}, diag::UnknownPass, name);
  if (const auto near = suggest(name, names))
    builder.help("did you mean `" + *near + "`?");
  else
    builder.help("passes: " + join(names, ", "));
  // The builder reports when it ends, which has to be before the stop.
}

// A module in SPMD form needs no partitioning: every value has its sharding, and collectives are there.
bool isSpmd(const Module& module) {
  for (const Function& function : module.functions) {
    for (const Op& op : function.ops) {
      if (op.kind == OpKind::AllReduce || op.kind == OpKind::AllGather || op.kind == OpKind::ReduceScatter ||
          op.kind == OpKind::Exchange)
        return true;
    }
  }
  return false;
}

[[noreturn]] void failPass(Session& session, const PassFailure& failure) {
  const std::string path = "gshardc-crash-" + std::to_string(getpid()) + ".ir";
  std::ofstream(path) << "// after the passes before " << failure.pass << "\n" << failure.textBefore;
  session.flush();
  throw InternalError("pass " + failure.pass + ": " + failure.fault + " (" + path + " is the IR before it)");
}

}  // namespace

std::unique_ptr<ast::File> parseInput(Session& session) {
  const FileId file = loadInput(session);
  const StageTimer timer(session, "parse");
  return parseFile(file, session.sources(), session.sink());
}

// Of `.ir` files as they are; of others elaborated.
static Module inputModule(Session& session) {
  if (isIr(session)) {
    const FileId file = loadInput(session);
    std::optional<Module> module = parseModule(file, session.sources(), session.sink());
    stopOnErrors(session);
    GSHARD_CHECK(module.has_value(), "no module and no error");
    return std::move(*module);
  }
  const std::unique_ptr<ast::File> file = parseInput(session);
  stopOnErrors(session);
  const Options& options = session.options();
  ElaborateOptions elaborateOptions;
  elaborateOptions.defines = options.defines;
  elaborateOptions.importPaths = options.importPaths;
  for (const std::string& path : environmentPaths()) elaborateOptions.importPaths.push_back(path);
  elaborateOptions.stdlibPath = findInstallation().stdlib;
  if (!options.mesh.empty()) elaborateOptions.mesh = options.mesh;
  elaborateOptions.devices = options.devices;
  elaborateOptions.layouts = options.layouts;
  elaborateOptions.rows = options.rows;
  std::optional<Module> module;
  {
    const StageTimer timer(session, "elaborate");
    module = elaborate(*file, session.sources(), elaborateOptions, session.sink());
  }
  stopOnErrors(session);
  GSHARD_CHECK(module.has_value(), "no module and no error");
  return std::move(*module);
}

// Runs passes; --dump-after, --time-passes and a failure's repro file are handled here. `make` makes the module that
// comes in, of a session: a failure asks for it once more. `after` is shown the module after each pass.
static void runPipeline(Session& session, Module& module, std::span<const Pass> passes, Module (*make)(Session&),
                        const std::function<void(const Pass&, const Module&)>& after = {}) {
  const PassOptions options{.strictSharding = session.options().strictSharding};
  PassContext context{options, session.sink()};
  const auto again = [&] {
    Session silent(session.options(), /*silent=*/true);
    return make(silent);
  };
  const PassRun run =
      runPasses(module, passes, context,
                {.dumpAfter = session.options().dumpAfter, .checkRoundTrip = false, .again = again, .after = after});
  for (const PassRecord& record : run.records) {
    session.times().push_back({record.name, record.seconds, record.ops});
    if (record.text) std::printf("// ---- after %s\n%s", record.name.c_str(), record.text->c_str());
  }
  if (run.failure) failPass(session, *run.failure);
  stopOnErrors(session);
}

// The passes that come first: none on `.ir` files, which are read as they are.
static std::vector<Pass> globalPasses(const Session& session) {
  if (isIr(session)) return {};
  return {globalPipeline().begin(), globalPipeline().end()};
}

Module globalModule(Session& session) {
  checkPassNames(session);
  stopOnErrors(session);
  Module module = inputModule(session);
  runPipeline(session, module, globalPasses(session), inputModule);
  return module;
}

const Platform& platformOf(Session& session) {
  const std::string& name = session.options().platform;
  if (const Platform* platform = findPlatform(name.empty() ? "laptop" : name)) return *platform;
  std::vector<std::string> names;
  for (const Platform& platform : platforms()) names.emplace_back(platform.name);
  session.sink().emit({}, diag::UnknownPlatform, name).help("platforms: " + join(names, ", "));
  throw Stopped{kUsage};
}

Partitioned partitionedModule(Session& session) {
  const Platform& platform = platformOf(session);
  checkPassNames(session);
  stopOnErrors(session);
  Partitioned result;
  result.module = inputModule(session);
  std::vector<Pass> passes = globalPasses(session);
  if (!isSpmd(result.module)) passes.insert(passes.end(), partitionPipeline().begin(), partitionPipeline().end());
  const std::vector<std::pair<std::string, std::string>>& emit = session.options().emit;
  const bool keepsText =
      std::any_of(emit.begin(), emit.end(), [](const auto& item) { return item.first == "sharded-ir"; });
  runPipeline(session, result.module, passes, inputModule, [&](const Pass& pass, const Module& module) {
    if (keepsText && pass.name == "propagate-shardings") result.shardedText = printModule(module);
  });
  const StageTimer timer(session, "plan");
  result.plan = makeCommPlan(result.module, platform);
  return result;
}

}  // namespace gshard
