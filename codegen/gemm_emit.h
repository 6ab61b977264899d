// What the GEMM emitter shares between its files: the shapes that microkernels and packing kernels are specialised
// for, and the vector loads and stores of a known number of lanes. Includes IRBuilder.h: for gemm_*.cpp only.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "codegen/gemm.h"
#include "llvm/IR/IRBuilder.h"

namespace gshard {

// Each field is a constant of the code, and part of the symbol's name. Strides are arguments, so that products of many
// shapes share a kernel; but for those of A that are 1, which save registers.
struct KernelShape {
  GemmElement element = GemmElement::F32;
  std::int64_t height = 1, columns = 1;
  bool adjacentRows = false;   // A's rows lie side by side: a packed panel, or a transposed operand
  bool adjacentSteps = false;  // A's values of k lie side by side
  bool wholeVectorsB = false;  // rows of B may be read beyond `columns`, to whole vectors: a packed panel
  bool prefetchB = false;      // the columns after these are fetched ahead
};

enum class PackMethod : std::uint8_t {
  Copy,       // the lines of a step are adjacent
  Transpose,  // the steps of a line are adjacent
  Gather      // neither
};

// Packed element (k, line) is at k * padded + line; lines from `lines` on are zeros. Strides are arguments.
struct PackShape {
  GemmElement element = GemmElement::F32;
  GemmSource source = GemmSource::Element;
  PackMethod method = PackMethod::Gather;
  std::int64_t lines = 1, padded = 1;  // a line is a row of A or a column of B
  bool aligned = false;                // every packed step starts on a whole vector
};

// Functions of the module, by name; emitted on first use.
llvm::Function* gemmKernel(llvm::Module& module, const Target& target, const KernelShape& shape);
llvm::Function* gemmPack(llvm::Module& module, const Target& target, const PackShape& shape);

// Vectors of one element type on one target.
class VectorBuilder {
 public:
  // At most `maxLanes` lanes, a power of two; by default all that a register has.
  VectorBuilder(llvm::IRBuilder<>& builder, const Target& target, GemmElement element, std::int64_t maxLanes = 64);

  std::int64_t lanes() const { return lanes_; }
  std::int64_t bytes() const { return bytes_; }
  llvm::Type* elementType() const { return elementType_; }
  llvm::Type* vectorType() const { return vectorType_; }
  llvm::Value* zero() const;

  // The address of element `index` (a constant) after `base`.
  llvm::Value* at(llvm::Value* base, std::int64_t index);
  llvm::Value* at(llvm::Value* base, llvm::Value* index);
  // Only the first `count` lanes are read or written; the others read as zero.
  llvm::Value* load(llvm::Value* address, std::int64_t count, bool aligned = false);
  void store(llvm::Value* value, llvm::Value* address, std::int64_t count, bool aligned = false);
  llvm::Value* loadElement(llvm::Value* address);
  void storeElement(llvm::Value* value, llvm::Value* address);
  llvm::Value* splat(llvm::Value* element);
  // sum + a * b, fused where the target can
  llvm::Value* multiplyAdd(llvm::Value* a, llvm::Value* b, llvm::Value* sum);

 private:
  llvm::Constant* mask(std::int64_t count);
  llvm::IRBuilder<>& builder_;
  const TargetShape shape_;
  std::int64_t bytes_, lanes_;
  llvm::Type* elementType_;
  llvm::FixedVectorType* vectorType_;
};

// Leaves a loop as it is written: what is worth unrolling is unrolled here, and LLVM's further copies only cost time.
void keepLoop(llvm::IRBuilder<>& builder, llvm::BranchInst* branch);

// for (i = 0; i < count; i += step); leaves the builder after the loop. `count` is a multiple of `step` or is rounded
// down by the caller. The body gets i. Kept as it is.
void emitLoop(llvm::IRBuilder<>& builder, const std::string& name, llvm::Value* count, std::int64_t step,
              const std::function<void(llvm::Value*)>& body);

}  // namespace gshard
