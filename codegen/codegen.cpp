// The way from SPMD IR to an object, step by step. Functions are lowered and given their memory first; only then is
// LLVM IR built, since a kernel's arguments are arena offsets.
#include "codegen/codegen.h"

#include <algorithm>
#include <deque>

#include "codegen/debug_info.h"
#include "codegen/diagnostics.h"
#include "codegen/memory_limit.h"
#include "codegen/program_tables.h"
#include "codegen/recompute.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "support/check.h"

namespace gshard {
namespace {

// Bytes that a unit needs beside its operands while it runs.
std::vector<std::int64_t> workspaces(const LoweredFunction& lowered, const TargetShape& shape, std::int64_t threads) {
  std::vector<std::int64_t> bytes;
  for (const Unit& unit : lowered.units) {
    std::int64_t own = 0;
    if (const auto* product = std::get_if<ProductWork>(&unit.work))
      own = planGemm(product->desc, shape).workspaceBytes(threads);
    if (const auto* kernel = std::get_if<KernelWork>(&unit.work)) own = kernel->kernel.workspaceBytes();
    bytes.push_back(own);
  }
  return bytes;
}

std::vector<PlannedFunction> planFunctions(const std::deque<FunctionViews>& views, const CodegenOptions& options,
                                           const TargetShape& shape, const FixedMemory& fixed) {
  std::vector<PlannedFunction> functions;
  std::map<std::string, AccumulatorMemory> accumulators;  // by the name that both stages share
  std::int64_t site = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Function& function = views[i].function();
    if (function.stage != Stage::Accumulate) continue;
    accumulators[function.name.substr(0, function.name.rfind('.'))] = placeAccumulators(views[i], fixed.bytes);
  }
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Function& function = views[i].function();
    PlannedFunction planned;
    planned.views = &views[i];
    planned.firstSite = site;
    site += 1 + static_cast<std::int64_t>(function.ops.size());
    LoweringOptions lowering;
    lowering.fuse = options.fuse && options.target.level != OptimizationLevel::O0;
    lowering.siteBase = planned.firstSite + 1;
    planned.lowered = lowerFunction(views[i], lowering);
    planned.accumulators.end = fixed.bytes;
    if (function.stage != Stage::Whole)
      planned.accumulators = accumulators[function.name.substr(0, function.name.rfind('.'))];
    planned.memory = planMemory(views[i], planned.lowered, fixed, planned.accumulators,
                                workspaces(planned.lowered, shape, options.threads));
    functions.push_back(std::move(planned));
  }
  return functions;
}

std::vector<std::int64_t> collectivesOf(const Function& function) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    if (std::holds_alternative<LowerCollective>(*opDef(function.ops[i].kind).lower))
      numbers.push_back(static_cast<std::int64_t>(i));
  }
  return numbers;
}

// The plan names collectives by their places among the ops of the module's functions; they are the same ones, in the
// same order, in the functions that are lowered, but at other places.
CommPlan planFor(const std::deque<FunctionViews>& lowered, const Module& module, CommPlan plan) {
  for (PlanFunction& entries : plan.functions) {
    const std::size_t function = static_cast<std::size_t>(entries.function);
    if (&lowered[function].function() == &module.functions[function]) continue;
    const std::vector<std::int64_t> from = collectivesOf(module.functions[function]),
                                    to = collectivesOf(lowered[function].function());
    GSHARD_CHECK(from.size() == to.size(), "no collective is computed again");
    for (PlanEntry& entry : entries.collectives) {
      const auto place = std::lower_bound(from.begin(), from.end(), entry.op);
      GSHARD_CHECK(place != from.end() && *place == entry.op, "an entry of the plan is a collective");
      entry.op = to[static_cast<std::size_t>(place - from.begin())];
    }
  }
  return plan;
}

}  // namespace

std::optional<CodegenResult> generate(const Module& module, const CommPlan* plan, const CodegenOptions& options,
                                      const SourceManager& sources, DiagSink& diag) {
  std::string error;
  const std::unique_ptr<Target> target = Target::create(options.target, error);
  if (target == nullptr) {
    diag.emit(SourceRange{}, diag::TargetUnknown, error);
    return std::nullopt;
  }
  ExtentTable extents;
  std::deque<Function> rewritten;   // functions that compute again what is not worth keeping
  std::deque<FunctionViews> views;  // addresses stay: planned functions point to them
  const FixedMemory fixed = placeFixed(module, extents);
  const bool fuses = options.fuse && options.target.level != OptimizationLevel::O0;
  for (const Function& function : module.functions) {
    views.emplace_back(module, function, extents);
    if (!fuses) continue;
    std::optional<Function> other = recomputeInBackward(views.back());
    if (!other) continue;
    views.pop_back();
    views.emplace_back(module, rewritten.emplace_back(*std::move(other)), extents);
  }
  std::optional<CommPlan> placed;
  if (plan != nullptr) plan = &placed.emplace(planFor(views, module, *plan));
  const std::vector<PlannedFunction> functions = planFunctions(views, options, target->shape(), fixed);

  CodegenResult result;
  if (options.memoryLimit > 0 && exceedsMemory(module, functions, fixed, extents, options.memoryLimit, diag))
    return std::nullopt;

  llvm::LLVMContext context;
  llvm::Module llvmModule(module.name.empty() ? "program" : module.name, context);
  target->prepareModule(llvmModule);
  std::optional<DebugInfo> debug;
  if (options.debug)
    debug.emplace(llvmModule, sources, sources.fileCount() > 0 ? FileId{0} : FileId{}, options.compiler);
  // In pieces the tables have a module of their own, which need not be cut.
  const bool inPieces = options.output == CodegenOutput::Object && options.pieces > 1;
  llvm::Module tablesModule("tables", context);
  target->prepareModule(tablesModule);
  ProgramTables tables(module, plan, options, sources, *target, fixed, extents, llvmModule,
                       inPieces ? tablesModule : llvmModule, debug ? &*debug : nullptr);
  tables.build(functions);
  if (debug) debug->finish();

  if (inPieces) {
    std::string tablesObject;
    result.objects = emitObjectsInParallel(options.target, llvmModule, options.pieces,
                                           [&] { tablesObject = target->emitObject(tablesModule); });
    result.objects.push_back(std::move(tablesObject));
  } else {
    target->optimize(llvmModule);
    switch (options.output) {
      case CodegenOutput::Object:
        result.bytes = target->emitObject(llvmModule);
        break;
      case CodegenOutput::Assembly:
        result.bytes = target->emitAssembly(llvmModule);
        break;
      case CodegenOutput::LlvmIr:
        result.bytes = irText(llvmModule);
        break;
    }
  }
  result.steps = tables.steps();
  result.kernels = tables.kernelCount();
  result.arenaBytes = tables.arenaBytes();
  result.persistentBytes = fixed.bytes;
  return result;
}

}  // namespace gshard
