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
  Gather,     // access moved to where `moves` say
  Place,      // the same for a store: where, and no value
  Inside,     // whether the gather inputs[0] finds an element of this device
};

// A dim of an access whose index is known at run time: a row (take, scatter_add) or the start of a window. Of a node,
// inputs[i] is the index that moves[i] reads. It is clamped to [0, limit), and a fault recorded; or
// what lies outside reads as `literal` (`mayMiss`).
struct RunTimeDim {
  std::int64_t stride = 0, limit = 0;
  int startDim = -1;     // a window's start: its dim, for faults. A row: -1
  LinearIndex position;  // a row: of the index element, for faults
  int splitArg = -1;     // extent of a split dim: what lies on other devices reads as `literal` or is not written
  LinearIndex within;    // of a split dim: index from the row or start on
  bool mayMiss = false;
};

struct Node {
  NodeKind kind = NodeKind::Load;
  DType dtype = DType::F32;
  ScalarFn fn = ScalarFn::Add;
  std::vector<int> inputs;
  Access access;
  Literal literal;
  LinearIndex position;  // Table, Index; failing Apply: of a fault
  std::int64_t number = 1;
  std::vector<RunTimeDim> moves;  // Gather, Place
  int siteArg = -1;               // Gather, Place, failing Apply
  std::int64_t op = -1;           // of the function: whose line this is with -g. No part of the key
};

enum class KernelKind : std::uint8_t { Map, Reduce, ArgReduce, Scan, Sort, Route, Scatter, WindowWrite, Random };

struct KernelOutput {
  int node = 0;
  DType dtype = DType::F32;
  Access access;
};

// Of the op `route`, as the runtime wants it.
struct RouteNumbers {
  std::int64_t tokens = 0, experts = 0, choices = 0, capacity = 0;
  std::int64_t rest = 0, normalise = 0;  // GSHARD_RT_REST_*, GSHARD_RT_NORMALISE_*
  double limit = 0;                      // scale or threshold
  bool hasUniform = false, hasLive = false;
};

struct LoopKernel {
  KernelKind kind = KernelKind::Map;
  std::vector<KernelLoop> loops;
  // Reduce, ArgReduce: loops from here on are reduced. Scan: the last loop. Scatter: loops before index dims
  std::size_t keptLoops = 0;
  std::vector<Node> nodes;  // inputs before users
  // Map: any number; Reduce, Scan: one; ArgReduce: [values,] indices; Sort: [values,] [indices], no nodes of theirs
  std::vector<KernelOutput> outputs;
  std::vector<DType> buffers;

  // Reduce
  Reduction reduction = Reduction::Sum;
  bool zeroIfEmpty = false;   // the sum of nothing is +0 here (complete), else -0
  bool fusedProduct = false;  // the node is a * b and is added with one rounding (contractions)

  // ArgReduce: one reduced loop, the last
  bool isMax = true;
  int indexOffsetArg = -1;      // extent whose offset makes the local index global
  std::int64_t indexLimit = 0;  // global size of the axis

  // Scan: along the last loop, from its end when reversed; a part of a split dim begins with the totals before it
  bool reverse = false, exclusive = false;
  int totalsPartArg = -1;  // extent whose begin is the number of this part; -1: not split
  std::int64_t parts = 1;
  Access totals;  // of part 0; the parts lie side by side

  // Sort: rows of nodes[0], a load, along an axis that has no loop; outputs at the same place. A kernel of the runtime
  // does a row
  bool descending = false;
  bool sortsValues = false, sortsIndices = false;
  std::int64_t sortSize = 0, sortKept = 0;  // elements of a row, and of those in order how many are wanted
  std::int64_t sortStride = 1, sortOutputStride = 1;
  int workspaceArg = -1;  // arena offset, put in when memory is planned
  std::int64_t workspaceBytes() const { return kind == KernelKind::Sort ? chunks * sortRowBytes() : 0; }
  std::int64_t sortRowBytes() const;

  // Route: loops over groups, which a kernel of the runtime routes one by one. Nodes: gates [uniform] [live], loads;
  // outputs as the op's results
  RouteNumbers route;

  // WindowWrite: loops over the update; outputs[0].node is stored at nodes[placeNode]
  int placeNode = -1;

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
