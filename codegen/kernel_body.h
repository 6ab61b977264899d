// The inside of one kernel function while its LLVM IR is built: args, loops, loads, stores, and the values of nodes.
// Shared by the kernel kinds (kernels_*.cpp); nobody else includes it, because it brings LLVM headers.
#pragma once

#include <functional>

#include "codegen/llvm_target.h"
#include "codegen/loop_kernel.h"
#include "codegen/memory_lanes.h"
#include "llvm/IR/IRBuilder.h"

namespace gshard {

// `fn` on lanes of dtype `operand` (llvm_scalar.cpp).
llvm::Value* emitScalarFn(llvm::IRBuilder<>& builder, ScalarFn fn, DType operand, DType result,
                          std::span<llvm::Value* const> operands);
// A runtime function of abi.h's table, declared in the module.
llvm::FunctionCallee runtimeFunction(llvm::Module& module, std::string_view name);

class KernelBody {
 public:
  using Value = llvm::Value*;

  KernelBody(llvm::Function& function, const LoopKernel& kernel, const TargetShape& shape);

  llvm::IRBuilder<>& ir() { return ir_; }
  const LoopKernel& kernel() const { return kernel_; }
  const TargetShape& shape() const { return shape_; }
  Value context() const { return context_; }
  Value number(std::int64_t value) { return ir_.getInt64(static_cast<std::uint64_t>(value)); }

  // ---- loops
  Value extra(int arg) const { return extras_[static_cast<std::size_t>(arg)]; }
  Value tileBegin(int arg);  // of the extent that extra `arg` names
  Value tileLive(int arg);
  Value live(std::size_t loop);  // number of iterations of the loop
  // [begin, end) of the outermost loop for the chunks of this call.
  std::pair<Value, Value> outerRange();
  // for (i = begin; i < end; i += step) body(i). Returns what i is afterwards: the first value not run.
  Value forLoop(Value begin, Value end, std::int64_t step, const std::function<void(Value)>& body);
  // Whole steps only: runs while i + step <= end.
  Value forWholeSteps(Value begin, Value end, std::int64_t step, const std::function<void(Value)>& body);
  // Runs `body` for [begin, end) of the loop in vectors of `lanes`, and leaves no rest: if the loop's size is no
  // multiple of the vector, the lanes beyond the end are masked off. Only where coversRest holds.
  void forVectors(Value begin, Value end, std::size_t loop, std::int64_t lanes, const std::function<void(Value)>& body);
  void ifThen(Value condition, const std::function<void()>& body);

  void setIndex(std::size_t loop, Value index) { index_[loop] = index; }
  Value index(std::size_t loop) const { return index_[loop]; }

  // ---- lanes: how many iterations of `vectorLoop` one evaluation covers
  void setLanes(std::size_t vectorLoop, std::int64_t lanes);
  std::int64_t lanes() const { return lanes_; }
  // The widest power of two of lanes that target, loop and nodes allow.
  std::int64_t chooseLanes(std::size_t vectorLoop) const;
  // Whether vectors of so many lanes can do the whole loop, without a rest that is done one by one: the size is a
  // multiple, or the target masks loads and stores and everything varies with the loop element by element.
  bool coversRest(std::size_t vectorLoop, std::int64_t lanes) const;
  // `value` where a lane is live, `other` where it is masked off.
  Value whereLive(Value value, Value other) { return mask_ == nullptr ? value : ir_.CreateSelect(mask_, value, other); }

  // ---- nodes
  // Evaluates nodes that depend on the loops [0, depth) only and have no value yet: called on entering a loop.
  void evaluateUpTo(std::size_t depth);
  // The node's value at the current indices, as many lanes as set.
  Value value(int node);
  // With -g: where an op of the function stands in the source.
  void setPlaces(std::function<llvm::DebugLoc(std::int64_t op)> places) { places_ = std::move(places); }
  Value scalarValue(int node);  // of a node that does not vary with the vector loop
  // Where a gather or a store at run-time indices goes: elements to move by, and whether this device has it (or null).
  struct Row {
    Value offset = nullptr;
    Value inside = nullptr;
    std::vector<Value> starts;  // while incomplete: of split windows, whose elements are told apart one by one
  };
  Row place(int node);  // at the current indices
  // Values found so far, to go back to when an index changes.
  struct Values {
    std::vector<Value> values;
    std::vector<Row> rows;
  };
  const Values& values() const { return found_; }
  void restore(const Values& values) { found_ = values; }

  // ---- memory
  Value elementPointer(const Access& access, Value moreElements = nullptr);
  Value loadAt(const Access& access, Value moreElements = nullptr);
  void storeAt(const Access& access, Value value, Value moreElements = nullptr);
  Value linear(const LinearIndex& index);                // at the first lane
  Value temporary(llvm::Type* type);                     // a stack slot in the entry block
  Value workspace(int arg, std::int64_t bytesPerChunk);  // of the chunks of this call

  llvm::Type* laneType(DType dtype);  // of a value in registers
  llvm::Type* memoryType(DType dtype);
  Value identity(DType dtype, Reduction reduction);  // one lane; -0 for sums of floats
  Value splat(Value scalar);
  Value combine(Reduction reduction, DType dtype, Value a, Value b);

  void recordFault(int siteArg, Value position, Value offending, std::int64_t limit);

 private:
  Value evaluate(int node);
  Value evaluateHere(int node);
  Value runTimeIndex(const Node& node, std::size_t which);
  const Row& row(int node);
  void addSplit(Row& row, const RunTimeDim& move, Value at);
  void addMaybe(Row& row, const RunTimeDim& move, Value index);
  void addInside(Row& row, const RunTimeDim& move, Value at, Value limit);
  Value gather(int node);
  void checkDivisor(const Node& node, Value divisor);
  std::int64_t scaleOfVector(const LinearIndex& index) const;
  bool isWhole(std::size_t loop, std::int64_t lanes) const;
  bool canMask(std::size_t loop) const;

  const LoopKernel& kernel_;
  const TargetShape& shape_;
  llvm::Function& function_;
  llvm::IRBuilder<> ir_;
  Value context_ = nullptr, arena_ = nullptr, extents_ = nullptr;
  std::function<llvm::DebugLoc(std::int64_t op)> places_;
  std::vector<Value> bases_, extras_, index_;
  Values found_;                            // by node
  std::vector<std::vector<bool>> depends_;  // per loop, per node
  std::size_t vectorLoop_ = 0;
  std::int64_t lanes_ = 1;
  Value mask_ = nullptr;  // the live lanes, or null: all
};

// One per kernel kind: fills the body.
void emitMapKernel(KernelBody& body);
void emitReduceKernel(KernelBody& body);
void emitArgReduceKernel(KernelBody& body);
void emitScanKernel(KernelBody& body);
void emitSortKernel(KernelBody& body);
void emitRouteKernel(KernelBody& body);
void emitScatterKernel(KernelBody& body);
void emitWindowWriteKernel(KernelBody& body);
// Kept loops [depth, count) around `inner`; the first one over the chunks of this call.
void emitKeptLoops(KernelBody& body, std::size_t depth, std::size_t count, const std::function<void()>& inner);
std::int64_t abiDtype(DType dtype);
void emitRandomKernel(KernelBody& body);

}  // namespace gshard
