// The constant tables of a program (runtime/abi.h): mesh, extents, parameters, functions as lists of steps, sites,
// plan. Every struct is built field by field in the order in which abi.h declares it.
#pragma once

#include "codegen/codegen.h"
#include "codegen/gemm.h"
#include "codegen/kernel_emitter.h"
#include "codegen/memory_plan.h"
#include "codegen/table_builder.h"

namespace gshard {

// All that codegen knows of one function before anything is emitted.
struct PlannedFunction {
  const FunctionViews* views = nullptr;
  LoweredFunction lowered;
  AccumulatorMemory accumulators;
  FunctionMemory memory;
  std::int64_t firstSite = 0;  // of the function itself; op i has firstSite + 1 + i
};

class ProgramTables {
 public:
  ProgramTables(const Module& module, const CommPlan* plan, const CodegenOptions& options, const SourceManager& sources,
                const Target& target, const FixedMemory& fixed, ExtentTable& extents, llvm::Module& llvmModule,
                DebugInfo* debug);

  void build(const std::vector<PlannedFunction>& functions);
  const std::vector<StepSummary>& steps() const { return steps_; }
  std::int64_t kernelCount() const { return kernels_.kernelCount(); }
  std::int64_t arenaBytes() const { return arenaBytes_; }

 private:
  using Fields = TableBuilder::Fields;

  llvm::Constant* mesh();
  llvm::Constant* axes(const std::vector<AxisRef>& refs);
  llvm::Constant* extentTable();
  llvm::Constant* tensor(const Type& type, const Layout& layout, std::int64_t offset);
  llvm::Constant* parameters();
  llvm::Constant* states();
  llvm::Constant* settings();
  llvm::Constant* constants();
  llvm::Constant* sites(const std::vector<PlannedFunction>& functions);
  llvm::Constant* planEntries(const std::vector<PlannedFunction>& functions);

  llvm::Constant* function(std::size_t number, const std::vector<PlannedFunction>& functions);
  void addArguments(Fields& fields, const PlannedFunction& planned);
  std::vector<llvm::Constant*> madeTensors(std::size_t unit, const PlannedFunction& planned,
                                           const std::vector<bool>& written,
                                           const std::vector<std::size_t>& lastWriters);
  llvm::Constant* stepList(std::size_t number, const PlannedFunction& planned, std::int64_t& count);
  llvm::Constant* kernelCall(const KernelWork& work, std::int64_t op, const PlannedFunction& planned,
                             std::int64_t workspace);
  llvm::Constant* gemmCall(const ProductWork& work, const PlannedFunction& planned, std::int64_t workspace);
  llvm::Constant* collective(std::size_t function, const Unit& unit, const PlannedFunction& planned,
                             std::int64_t workspace);
  llvm::Constant* transfer(const OpView& op, std::size_t operand, std::size_t piece, const PlannedFunction& planned);
  std::int64_t planIndex(std::size_t function, std::int64_t op) const;

  const Module& module_;
  const CommPlan* plan_;
  const CodegenOptions& options_;
  const SourceManager& sources_;
  const Target& target_;
  const FixedMemory& fixed_;
  ExtentTable& extents_;
  TableBuilder tables_;
  KernelEmitter kernels_;
  GemmEmitter gemms_;
  std::vector<StepSummary> steps_;
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> planIndices_;
  std::int64_t arenaBytes_ = 0;
};

// "take `embed`": op and value as users know them.
std::string describeOp(const Function& function, const Op& op);
// The axes whose devices take part in a collective.
std::vector<AxisRef> groupAxes(const OpView& op);

}  // namespace gshard
