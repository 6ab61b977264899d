// Code generation: from an SPMD module to an object file that holds kernels and the constant tables of runtime/abi.h,
// and from that to an executable. Also tells what it planned: memory per function and the list of steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/llvm_target.h"
#include "ir/module.h"
#include "ir/plan.h"
#include "support/diagnostics.h"

namespace gshard {

enum class CodegenOutput : std::uint8_t { Object, Assembly, LlvmIr };

struct CodegenOptions {
  TargetRequest target;  // triple, CPU, optimisation level
  CodegenOutput output = CodegenOutput::Object;
  std::int64_t threads = 1;  // per device; workspaces are planned for these
  bool debug = false;        // a kernel per site instead of one for all equal ones
  bool fuse = true;
  bool listSteps = false;
  unsigned pieces = 1;               // objects made at once, for linking; 1: one object in `bytes`
  std::string compiler = "gshardc";  // as `info` shows it
  std::string sourceHash;
  std::int64_t memoryLimit = 0;  // bytes of one device that no function may exceed; 0: none
};

struct StepSummary {
  std::string function, kind;  // "kernel", "gemm", "collective", "copy"
  std::string text;            // "map [65536] mul add …, 3 out of 4 buffers"
  std::string location;
};

struct CodegenResult {
  std::string bytes;                 // of the object, or text
  std::vector<std::string> objects;  // with CodegenOptions::pieces > 1, instead of `bytes`
  std::vector<StepSummary> steps;    // with CodegenOptions::listSteps
  std::int64_t kernels = 0;          // distinct ones
  std::int64_t arenaBytes = 0, persistentBytes = 0;
};

// The module is verified SPMD form. `plan` may be null (no byte counts in the program).
std::optional<CodegenResult> generate(const Module& module, const CommPlan* plan, const CodegenOptions& options,
                                      const SourceManager& sources, DiagSink& diag);

struct LinkOptions {
  std::string runtimeArchive;  // path of libgshard_runtime.a
  std::string cxx = "c++";
  bool debug = false;  // keep debug information
};
// Writes the executable under a temporary name and renames it.
bool linkExecutable(const std::vector<std::string>& objects, const std::string& outPath, const LinkOptions& options,
                    DiagSink& diag);

}  // namespace gshard
