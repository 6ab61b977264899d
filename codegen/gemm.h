// The matrix product: from a contraction's letters to a plan (which letters form M, N and K, tile, blocks, workspace)
// and from the plan to microkernels, packing kernels and a constant descriptor for runtime/gemm_driver.cpp.
//
//   GemmPlan plan = planGemm(desc, target.shape());
//   plan.workspaceBytes(threads)                      // reserve in the arena, 64-byte aligned
//   GemmEmitter emitter(module, target);              // one per module
//   llvm::GlobalVariable* d = emitter.emit(plan);     // a gshard_rt_gemm_desc; equal products: the same one
//   run time: gshard_rt_gemm(d, a, b, c, workspace, live, context, thread, threads)    (runtime/gemm_abi.h)
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/llvm_target.h"

namespace llvm {
class Function;
class GlobalVariable;
class Module;
}  // namespace llvm

namespace gshard {

// The type of result and arithmetic. Other dtypes are loop nests.
enum class GemmElement : std::uint8_t { F32, F64 };
// The type of both operands in memory: that of the result, or 16 bits that are widened, exactly, while they are packed.
enum class GemmSource : std::uint8_t { Element, BF16, F16 };
std::int64_t sourceBytes(GemmElement element, GemmSource source);

// Which role a letter plays; derived from where it occurs: A, B and C: Batch; A and C: Rows (M); B and C: Columns (N);
// A and B: Sum (K). A letter that occurs in one operand only and not in C must be reduced by the caller first.
enum class GemmGroup : std::uint8_t { Batch, Rows, Columns, Sum };

struct GemmLetter {
  GemmGroup group = GemmGroup::Batch;
  std::int64_t size = 1;  // of the local buffer: the ceil part of an uneven split
  // Strides in elements, any values (transposes, broadcasts with 0, slices with steps, reversals with negatives);
  // ignored for the operand that lacks the letter.
  std::int64_t strideA = 0, strideB = 0, strideC = 0;
  // Index into the `live` array of the call when the letter's live size may be smaller than `size` on some device,
  // else -1. Only sums need it for correctness (tails of M and N hold any bits); for M and N it saves work.
  // In a program: 2 * extent + 1, and `live` is the context's `extents` (runtime/abi.h).
  int liveSlot = -1;
};

struct GemmDesc {
  GemmElement element = GemmElement::F32;
  GemmSource source = GemmSource::Element;
  std::vector<GemmLetter> letters;  // in any order; groups may be empty (an outer product, a dot product)
  bool addToC = false;              // C += A * B
  bool skipsEmpty = false;          // rows may be empty slots of experts: zeros that need no product
  // Name of a function `gshard_rt_gemm_epilogue` in the module, or empty. It sees the core product's rows and columns
  // and the outer loops, both as in GemmPlan.
  std::string epilogue;
};

// One of M, N, K after merging: which letters of the desc it stands for, major first. Strides in elements.
struct GemmSide {
  std::int64_t size = 1;
  std::int64_t strideA = 0, strideB = 0, strideC = 0;
  int liveSlot = -1;
  std::int64_t liveFactor = 1;  // live size = live[liveSlot] * liveFactor
  std::vector<int> letters;
};

struct GemmLoop {
  GemmSide side;
  bool isSum = false;
};

enum class GemmAccess : std::uint8_t { Packed, InPlace };

// Everything that decides the code; a pure function of desc and shape. An element of the result is ONE chain of
// fused multiply-adds over k in ascending order (outer sum loops first), whatever tile, block, thread or place.
struct GemmPlan {
  GemmElement element = GemmElement::F32;
  GemmSource source = GemmSource::Element;
  bool addToC = false, skipsEmpty = false;
  std::string epilogue;
  bool swapped = false;  // A and B were exchanged so that the result's columns are adjacent; m, n, loops are after it
  GemmSide m, n, k;      // the core product
  std::vector<GemmLoop> loops;  // outside it, major first, sums last

  std::int64_t vectorLanes = 4;
  std::int64_t height = 1, panelsM = 1, tallPanels = 1;  // balanced: panels have `height` rows or one less
  std::int64_t width = 1, panelsN = 1, lastWidth = 1;    // columns; the last panel is masked
  GemmAccess accessA = GemmAccess::Packed, accessB = GemmAccess::Packed;
  std::int64_t blockK = 1, blockPanelsM = 1, blockPanelsN = 1;
  bool scatterC = false;   // neither M nor N is adjacent in C
  bool prefetchB = false;  // skinny: bound by reading B once

  std::int64_t packedWidth(std::int64_t columns) const;  // rounded up to whole vectors
  std::int64_t workspaceBytesA() const, workspaceBytesB() const, workspaceBytesTile() const;
  // What the arena must hold for a call with `threads` threads; a multiple of 64, may be 0.
  std::int64_t workspaceBytes(std::int64_t threads) const;
  // Floating-point operations of one call at full size.
  double flops() const;
  // Equal for products that share all code; deterministic text.
  std::string key() const;
};

// At most 8 letters may stay outside the core product after merging; false only beyond that.
bool gemmFits(const GemmDesc& desc);
GemmPlan planGemm(const GemmDesc& desc, const TargetShape& shape);

// Emits into one module; kernels and descriptors that are equal are emitted once. All symbols are internal.
class GemmEmitter {
 public:
  GemmEmitter(llvm::Module& module, const Target& target) : module_(module), target_(target) {}
  // The constant descriptor.
  llvm::GlobalVariable* emit(const GemmPlan& plan);

 private:
  llvm::Module& module_;
  const Target& target_;
  std::map<std::string, llvm::GlobalVariable*> descriptors_;
};

}  // namespace gshard
