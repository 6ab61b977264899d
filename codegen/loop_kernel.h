// A kernel as data: a loop nest, an expression over its indices, and what becomes of the expression. Lowering builds
// it, kernel_emitter turns it into LLVM IR; equal kernels have equal keys and are emitted once.
//
// Nothing in it says where buffers lie or which device runs it: those are the call's args. args[i] for i <
// buffers.size() is the arena offset of buffer i in bytes; the numbers after them (extents, sites) are the extras.
#pragma once

#include <string>
#include <utility>

#include "ir/attribute.h"
#include "ir/scalar_functions.h"

namespace gshard {

// Loops run over [0, live): `size`, or the live size of the extent that extra `liveArg` names times liveFactor.
// The outermost loop's size may be an extra instead of a constant of the code (`sizeArg`): tensors of many sizes then
// share a kernel.
struct KernelLoop {
  std::int64_t size = 1;
  int liveArg = -1;
  std::int64_t liveFactor = 1;
  int sizeArg = -1;

  // What the code knows of the size and may choose by: of an extra, by which power of two up to 64 it divides.
  std::int64_t knownSize() const { return sizeArg < 0 ? size : kLeastExtra + (size & (kLeastExtra - 1) & -size); }
  static constexpr std::int64_t kLeastExtra = 64;  // smaller sizes of loops that vectors run along stay constants
};

// offset + sum of scales[loop] * index[loop] + sum over tileOffsets of stride * (begin of the tile in the extent of an
// extra).
struct LinearIndex {
  std::int64_t offset = 0;
  std::vector<std::int64_t> scales;                       // one per loop
  std::vector<std::pair<int, std::int64_t>> tileOffsets;  // (extra, stride)
};

// Element of a buffer at index offset + sum of scales * indices.
struct Access {
  int buffer = 0;
  LinearIndex index;
};

enum class NodeKind : std::uint8_t {
  Load,       // access
  Constant,   // literal, one element
  Table,      // element `position` of the constant array `literal`
  Index,      // `position` as an integer (iota)
  TotalRows,  // number * context->total_rows
  Apply,      // fn of inputs
  Gather,     // access moved by inputs[0] * axisStride; the index is clamped to [0, axisSize), and a fault recorded
};

struct Node {
  NodeKind kind = NodeKind::Load;
  DType dtype = DType::F32;
  ScalarFn fn = ScalarFn::Add;
  std::vector<int> inputs;
  Access access;
  Literal literal;
  LinearIndex position;  // Table, Index; Gather and failing Apply: of a fault
  std::int64_t number = 1;
  std::int64_t axisStride = 0, axisSize = 0;  // Gather
  int splitArg = -1;     // Gather: extent of the split axis; rows of other devices read as `literal`
  int siteArg = -1;      // Gather, failing Apply
  std::int64_t op = -1;  // of the function: whose line this is with -g. No part of the key
};

enum class KernelKind : std::uint8_t { Map, Reduce, ArgReduce, Scatter, Random };

struct KernelOutput {
  int node = 0;
  DType dtype = DType::F32;
  Access access;
};

struct LoopKernel {
  KernelKind kind = KernelKind::Map;
  std::vector<KernelLoop> loops;
  std::size_t keptLoops = 0;  // Reduce, ArgReduce: loops from here on are reduced. Scatter: loops before index dims
  std::vector<Node> nodes;    // inputs before users
  std::vector<KernelOutput> outputs;  // Map: any number; Reduce: one; ArgReduce: [values,] indices
  std::vector<DType> buffers;

  // Reduce
  Reduction reduction = Reduction::Sum;
  bool zeroIfEmpty = false;   // the sum of nothing is +0 here (complete), else -0
  bool fusedProduct = false;  // the node is a * b and is added with one rounding (contractions)

  // ArgReduce: one reduced loop, the last
  bool isMax = true;
  int indexOffsetArg = -1;      // extent whose offset makes the local index global
  std::int64_t indexLimit = 0;  // global size of the axis

  // Scatter: loops are [kept | index dims | row dims]; outputs[0].node is added at its access + index * axisStride
  int indexNode = -1;
  std::size_t rowLoops = 0;
  std::int64_t axisStride = 0, axisSize = 0;
  int splitArg = -1, siteArg = -1;
  LinearIndex position;  // Scatter: of the index element, for faults. Random: of the element

  // Random: outputs[0].access and position
  bool isNormal = false;
  double low = 0, high = 1;
  int stepNode = -1;
  int firstNode = -1;  // elements before this block of rows, or -1: none

  // Filled by finishKernel
  bool rowReduce = false;      // Reduce: the vector runs along the last reduced loop, else along the last kept one
  std::int64_t chunkSize = 1;  // iterations of the outermost loop per chunk
  std::int64_t chunks = 1;
};

// Joins neighbouring loops where every access allows it, chooses loop order and chunks. Changes no element's value.
void finishKernel(LoopKernel& kernel);
// Of a finished kernel: whether the outermost loop's size can be an extra.
bool takesOuterSize(const LoopKernel& kernel);
// Canonical text: equal kernels have equal keys.
std::string kernelKey(const LoopKernel& kernel);
// What it does in a few words, for listings: "map 3 loops=[4096] add relu".
std::string kernelSummary(const LoopKernel& kernel);
// Whether the node's value changes with the loop's index, itself or through its inputs; by node.
std::vector<bool> dependsOnLoop(const LoopKernel& kernel, std::size_t loop);

}  // namespace gshard
