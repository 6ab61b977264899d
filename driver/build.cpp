// SPMD module to object and executable: calling codegen with what the command line says.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "codegen/codegen.h"
#include "driver/diagnostics.h"
#include "driver/stages.h"
#include "driver/version.h"
#include "support/check.h"

namespace gshard {

namespace {

// Fixed, not the number of cores: the binary must not depend on the machine that compiled it.
constexpr unsigned kPieces = 4;

// FNV-1a over all sources: the same program gives the same hash wherever it lies.
std::string sourceHash(const SourceManager& sources) {
  std::uint64_t hash = 14695981039346656037ull;
  for (std::size_t i = 0; i < sources.fileCount(); ++i) {
    for (const char c : sources.text(FileId{static_cast<std::uint32_t>(i)}))
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

CodegenResult generateOrStop(Session& session, const Partitioned& partitioned, CodegenOutput output,
                             unsigned pieces = 1) {
  const Options& options = session.options();
  CodegenOptions codegen;
  codegen.target = {options.target, options.cpu, static_cast<OptimizationLevel>(options.optimization)};
  codegen.target.threadSanitizer = findsRaces();
  codegen.output = output;
  codegen.pieces = pieces;
  codegen.threads = options.threads;
  codegen.debug = options.debug;
  codegen.memoryLimit = options.memoryLimit;
  codegen.compiler = "gshardc " + versionNumber();
  codegen.sourceHash = sourceHash(session.sources());
  const auto start = std::chrono::steady_clock::now();
  std::optional<CodegenResult> result =
      generate(partitioned.module, &partitioned.plan, codegen, session.sources(), session.sink());
  session.times().push_back(
      {"codegen", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), -1});
  if (session.flush() || !result) throw Stopped{session.exitCode()};
  return std::move(*result);
}

}  // namespace

BuildOutputs buildOutputs(Session& session, const Partitioned& partitioned) {
  BuildOutputs outputs;
  for (const auto& [kind, path] : session.options().emit) {
    if (kind == "obj") outputs.object = generateOrStop(session, partitioned, CodegenOutput::Object).bytes;
    if (kind == "asm") outputs.assembly = generateOrStop(session, partitioned, CodegenOutput::Assembly).bytes;
    if (kind == "llvm-ir") outputs.llvmIr = generateOrStop(session, partitioned, CodegenOutput::LlvmIr).bytes;
  }
  return outputs;
}

void buildExecutable(Session& session, const Partitioned& partitioned, const std::string& path) {
  const Installation installation = findInstallation();
  if (!session.options().target.empty()) {
    session.sink()
        .emit({}, diag::TargetNotHere, session.options().target, path)
        .help("`--emit=obj` makes the object file");
    throw Stopped{kUsage};
  }
  if (installation.runtime.empty()) {
    session.sink().emit({}, diag::FileUnreadable, std::string("libgshard_runtime.a"),
                        std::string("it is neither beside gshardc nor in GSHARD_RUNTIME"));
    throw Stopped{kInputOutput};
  }
  const CodegenResult result = generateOrStop(session, partitioned, CodegenOutput::Object, kPieces);
  const char* cxx = std::getenv("GSHARD_CXX");
  const auto start = std::chrono::steady_clock::now();
  const bool linked = linkExecutable(result.objects, path,
                                     {installation.runtime + "/libgshard_runtime.a", cxx != nullptr ? cxx : "c++",
                                      session.options().debug || findsRaces()},
                                     session.sink());
  session.times().push_back(
      {"link", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), -1});
  if (session.flush() || !linked) throw Stopped{kInputOutput};
}

}  // namespace gshard
