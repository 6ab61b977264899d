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
                const Target& target, const FixedMemory& fixed, ExtentTable& extents, llvm::Module& code,
                llvm::Module& tables, DebugInfo* debug);

  void build(const std::vector<PlannedFunction>& functions);
  const std::vector<StepSummary>& steps() const { return steps_; }
  std::int64_t kernelCount() const { return kernels_.kernelCount(); }
  std::int64_t arenaBytes() const { return arenaBytes_; }

 private:
  using Tensor = std::array<TableWord, 6>;  // gshard_rt_tensor

  TableRows mesh();
  TableWord axes(const std::vector<AxisRef>& refs);
  TableRows extentTable();
  Tensor tensor(const Type& type, const Layout& layout, std::int64_t offset);
  TableRows parameters();
  TableRows states();
  TableRows settings();
  TableRows constants();
  TableRows sites(const std::vector<PlannedFunction>& functions);
  TableRows planEntries(const std::vector<PlannedFunction>& functions);
  TableWord location(SourceRange range);

  // Adds the function's record.
  void addFunction(TableRows& rows, std::size_t number, const std::vector<PlannedFunction>& functions);
  void addArguments(TableRows& rows, const PlannedFunction& planned);
  TableRows madeTensors(std::size_t unit, const PlannedFunction& planned, const std::vector<bool>& written,
                        const std::vector<std::size_t>& lastWriters);
  TableRows stepList(std::size_t number, const PlannedFunction& planned);
  TableWord kernelCall(const KernelWork& work, std::int64_t op, const PlannedFunction& planned, std::int64_t workspace);
  TableWord gemmCall(const ProductWork& work, const PlannedFunction& planned, std::int64_t workspace);
  TableWord collective(std::size_t function, const Unit& unit, const PlannedFunction& planned, std::int64_t workspace);
  void addTransfer(TableRows& rows, const OpView& op, std::size_t operand, std::size_t piece,
                   const PlannedFunction& planned);
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
  std::map<SourceRange, TableWord> locations_;  // layers share ranges
  std::int64_t arenaBytes_ = 0;
};

// "take `embed`": op and value as users know them.
std::string describeOp(const Function& function, const Op& op);
// The axes whose devices take part in a collective.
std::vector<AxisRef> groupAxes(const OpView& op);

}  // namespace gshard
