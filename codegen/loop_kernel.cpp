// Loop order, joining of loops, chunks, and the canonical key of a kernel. Over 400 lines, because whoever adds a kind
// of kernel or of node has to answer all of these questions for it, and finds them side by side.
#include "codegen/loop_kernel.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace gshard {
namespace {

// A chunk has about this many element steps, enough to pay for handing it to a thread.
constexpr std::int64_t kChunkWork = 16384;
// Chunks of the loop that vectors run along begin at multiples of this.
constexpr std::int64_t kChunkAlign = 64;
// Every chunk of a sort has a workspace of its own.
constexpr std::int64_t kSortChunks = 16;

void forEachIndex(LoopKernel& kernel, const std::function<void(LinearIndex&)>& visit) {
  for (Node& node : kernel.nodes) {
    switch (node.kind) {
      case NodeKind::Load:
        visit(node.access.index);
        break;
      case NodeKind::Table:
      case NodeKind::Index:
        visit(node.position);
        break;
      case NodeKind::Gather:
      case NodeKind::Place:
        visit(node.access.index);
        for (RunTimeDim& move : node.moves) {
          visit(move.position);
          visit(move.within);
        }
        break;
      case NodeKind::Apply:
        if (node.siteArg >= 0) visit(node.position);
        break;
      case NodeKind::Constant:
      case NodeKind::TotalRows:
      case NodeKind::Inside:
        break;
    }
  }
  for (KernelOutput& output : kernel.outputs) visit(output.access.index);
  if (kernel.kind == KernelKind::Scatter || kernel.kind == KernelKind::Random) visit(kernel.position);
  if (kernel.totalsPartArg >= 0) visit(kernel.totals.index);
}

// Every loop runs over elements of the outputs, none is special.
bool isPlain(KernelKind kind) {
  switch (kind) {
    case KernelKind::Map:
    case KernelKind::Random:
    case KernelKind::Sort:
    case KernelKind::Route:
    case KernelKind::WindowWrite:
      return true;
    case KernelKind::Reduce:
    case KernelKind::ArgReduce:
    case KernelKind::Scan:
    case KernelKind::Scatter:
      return false;
  }
  return false;
}

// 0: kept, 1: reduced or index dims, 2: row dims of a scatter. Loops of different groups are never joined.
int groupOf(const LoopKernel& kernel, std::size_t loop) {
  if (isPlain(kernel.kind)) return 0;
  if (loop < kernel.keptLoops) return 0;
  if (kernel.kind == KernelKind::Scatter && loop + kernel.rowLoops >= kernel.loops.size()) return 2;
  return 1;
}

void eraseLoop(LoopKernel& kernel, std::size_t loop) {
  const int group = groupOf(kernel, loop);
  if (group == 0 && !isPlain(kernel.kind)) --kernel.keptLoops;
  if (group == 2) --kernel.rowLoops;
  kernel.loops.erase(kernel.loops.begin() + static_cast<std::ptrdiff_t>(loop));
  forEachIndex(kernel, [&](LinearIndex& index) {
    index.scales.erase(index.scales.begin() + static_cast<std::ptrdiff_t>(loop));
  });
}

void moveLoop(LoopKernel& kernel, std::size_t from, std::size_t to) {
  const auto shift = [&](auto& items) {
    const auto item = items[from];
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(from));
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(to), item);
  };
  shift(kernel.loops);
  forEachIndex(kernel, [&](LinearIndex& index) { shift(index.scales); });
}

void dropUnitLoops(LoopKernel& kernel) {
  for (std::size_t i = kernel.loops.size(); i-- > 0;) {
    if (kernel.loops[i].size != 1 || kernel.loops[i].liveArg >= 0) continue;
    const bool hasAxis = kernel.kind == KernelKind::ArgReduce || kernel.kind == KernelKind::Scan;
    if (hasAxis && i + 1 == kernel.loops.size()) continue;
    eraseLoop(kernel, i);
  }
}

void joinLoops(LoopKernel& kernel) {
  for (std::size_t i = kernel.loops.size(); i-- > 1;) {
    const std::size_t outer = i - 1;
    if (kernel.loops[i].liveArg >= 0 || groupOf(kernel, i) != groupOf(kernel, outer)) continue;
    const std::int64_t size = kernel.loops[i].size;
    bool dense = true;
    forEachIndex(kernel, [&](LinearIndex& index) { dense = dense && index.scales[outer] == index.scales[i] * size; });
    if (!dense) continue;
    forEachIndex(kernel, [&](LinearIndex& index) { index.scales[outer] = index.scales[i]; });
    kernel.loops[outer].size *= size;
    kernel.loops[outer].liveFactor *= size;
    eraseLoop(kernel, i);
  }
}

// How many loads run along this loop element by element.
std::int64_t contiguousLoads(const LoopKernel& kernel, std::size_t loop) {
  std::int64_t count = 0;
  for (const Node& node : kernel.nodes) {
    if ((node.kind == NodeKind::Load || node.kind == NodeKind::Gather) && node.access.index.scales[loop] == 1) ++count;
  }
  return count;
}

void orderReduction(LoopKernel& kernel) {
  std::size_t best = kernel.loops.size();
  std::int64_t bestScore = -1;
  for (std::size_t i = 0; i < kernel.loops.size(); ++i) {
    if (kernel.loops[i].size < 2) continue;
    std::int64_t score = 2 * contiguousLoads(kernel, i);
    // Along a kept loop vectors need no final sum over lanes; with few columns they would hardly be filled.
    if (i < kernel.keptLoops && kernel.loops[i].size >= 8) ++score;
    if (score >= bestScore) {
      best = i;
      bestScore = score;
    }
  }
  if (best == kernel.loops.size()) return;
  kernel.rowReduce = best >= kernel.keptLoops;
  moveLoop(kernel, best, kernel.rowReduce ? kernel.loops.size() - 1 : kernel.keptLoops - 1);
}

void chooseChunks(LoopKernel& kernel) {
  const bool reduces = !isPlain(kernel.kind);
  if (kernel.loops.empty() || (reduces && kernel.keptLoops == 0)) {
    kernel.chunkSize = kernel.loops.empty() ? 1 : std::max<std::int64_t>(kernel.loops[0].size, 1);
    kernel.chunks = 1;
    return;
  }
  std::int64_t inner = 1;
  for (std::size_t i = 1; i < kernel.loops.size(); ++i) inner *= std::max<std::int64_t>(kernel.loops[i].size, 1);
  if (kernel.kind == KernelKind::Sort) inner *= std::max<std::int64_t>(kernel.sortSize, 1);
  if (kernel.kind == KernelKind::Route) inner *= kernel.route.tokens * kernel.route.experts;
  std::int64_t step = std::max<std::int64_t>((kChunkWork + inner - 1) / inner, 1);
  if (kernel.kind == KernelKind::Sort) step = std::max(step, (kernel.loops[0].size + kSortChunks - 1) / kSortChunks);
  const bool vectorLoop = kernel.loops.size() == 1 || (reduces && kernel.keptLoops == 1);
  if (vectorLoop) step = (step + kChunkAlign - 1) / kChunkAlign * kChunkAlign;
  kernel.chunkSize = step;
  kernel.chunks = std::max<std::int64_t>((kernel.loops[0].size + step - 1) / step, 1);
}

void addNumber(std::string& key, std::int64_t number) {
  key += std::to_string(number);
  key += ' ';
}

void addIndex(std::string& key, const LinearIndex& index) {
  key += '(';
  addNumber(key, index.offset);
  for (const std::int64_t scale : index.scales) addNumber(key, scale);
  for (const auto& [extra, stride] : index.tileOffsets) {
    key += '@';
    addNumber(key, extra);
    addNumber(key, stride);
  }
  key += ')';
}

void addNode(std::string& key, const Node& node) {
  key += "\nn";
  addNumber(key, static_cast<std::int64_t>(node.kind));
  addNumber(key, static_cast<std::int64_t>(node.dtype));
  switch (node.kind) {
    case NodeKind::Load:
      addNumber(key, node.access.buffer);
      addIndex(key, node.access.index);
      break;
    case NodeKind::Constant:
    case NodeKind::Table:
      for (const std::int64_t value : node.literal.ints) addNumber(key, value);
      for (const double value : node.literal.floats) addNumber(key, std::bit_cast<std::int64_t>(value));
      if (node.kind == NodeKind::Table) addIndex(key, node.position);
      break;
    case NodeKind::Index:
      addIndex(key, node.position);
      break;
    case NodeKind::TotalRows:
      addNumber(key, node.number);
      break;
    case NodeKind::Apply:
      key += scalarInfo(node.fn).name;
      for (const int input : node.inputs) {
        key += ' ';
        addNumber(key, input);
      }
      if (node.siteArg >= 0) {
        addNumber(key, node.siteArg);
        addIndex(key, node.position);
      }
      break;
    case NodeKind::Gather:
    case NodeKind::Place:
      for (const int input : node.inputs) addNumber(key, input);
      addNumber(key, node.access.buffer);
      addIndex(key, node.access.index);
      for (const RunTimeDim& move : node.moves) {
        for (const std::int64_t number : {move.stride, move.limit}) addNumber(key, number);
        for (const int number : {move.startDim, move.splitArg}) addNumber(key, number);
        addIndex(key, move.position);
        addIndex(key, move.within);
        addNumber(key, std::int64_t{move.mayMiss});
      }
      addNumber(key, node.siteArg);
      for (const double value : node.literal.floats) addNumber(key, std::bit_cast<std::int64_t>(value));
      break;
    case NodeKind::Inside:
      addNumber(key, node.inputs[0]);
      break;
  }
}

}  // namespace

void finishKernel(LoopKernel& kernel) {
  dropUnitLoops(kernel);
  joinLoops(kernel);
  if (kernel.kind == KernelKind::Reduce) orderReduction(kernel);
  chooseChunks(kernel);
}

// Whether vectors run along the outermost loop.
static bool vectorsRunOutside(const LoopKernel& kernel) {
  if (kernel.kind == KernelKind::Reduce) return !kernel.rowReduce && kernel.keptLoops == 1;
  return kernel.loops.size() == 1;
}

bool takesOuterSize(const LoopKernel& kernel) {
  if (kernel.loops.empty() || kernel.loops[0].liveArg >= 0) return false;
  switch (kernel.kind) {
    case KernelKind::Map:
    case KernelKind::Random:
      break;
    case KernelKind::Reduce:
    case KernelKind::ArgReduce:
      if (kernel.keptLoops == 0) return false;
      break;
    case KernelKind::Scan:
    case KernelKind::Sort:
    case KernelKind::Route:
    case KernelKind::Scatter:
    case KernelKind::WindowWrite:
      return false;
  }
  return !vectorsRunOutside(kernel) || kernel.loops[0].size >= KernelLoop::kLeastExtra;
}

static std::vector<std::int64_t> routeNumbers(const RouteNumbers& route) {
  return {route.tokens,
          route.experts,
          route.choices,
          route.capacity,
          route.rest,
          route.normalise,
          std::bit_cast<std::int64_t>(route.limit),
          std::int64_t{route.hasUniform},
          std::int64_t{route.hasLive}};
}

std::string kernelKey(const LoopKernel& kernel) {
  std::string key = "k";
  addNumber(key, static_cast<std::int64_t>(kernel.kind));
  for (const KernelLoop& loop : kernel.loops) {
    key += 'l';
    addNumber(key, loop.sizeArg < 0 ? loop.size : vectorsRunOutside(kernel) ? loop.knownSize() : 0);
    addNumber(key, loop.sizeArg);
    addNumber(key, loop.liveArg);
    addNumber(key, loop.liveArg < 0 ? 1 : loop.liveFactor);
  }
  for (const std::size_t number : {kernel.keptLoops, kernel.rowLoops})
    addNumber(key, static_cast<std::int64_t>(number));
  for (const DType dtype : kernel.buffers) addNumber(key, static_cast<std::int64_t>(dtype));
  for (const Node& node : kernel.nodes) addNode(key, node);
  for (const KernelOutput& output : kernel.outputs) {
    key += "\no";
    addNumber(key, output.node);
    addNumber(key, static_cast<std::int64_t>(output.dtype));
    addNumber(key, output.access.buffer);
    addIndex(key, output.access.index);
  }
  key += '\n';
  switch (kernel.kind) {
    case KernelKind::Map:
      break;
    case KernelKind::Reduce:
      for (const std::int64_t number : {static_cast<std::int64_t>(kernel.reduction), std::int64_t{kernel.zeroIfEmpty},
                                        std::int64_t{kernel.fusedProduct}, std::int64_t{kernel.rowReduce}}) {
        addNumber(key, number);
      }
      break;
    case KernelKind::ArgReduce:
      for (const std::int64_t number :
           {std::int64_t{kernel.isMax}, std::int64_t{kernel.indexOffsetArg}, kernel.indexLimit}) {
        addNumber(key, number);
      }
      break;
    case KernelKind::Scan:
      for (const std::int64_t number : {std::int64_t{kernel.reverse}, std::int64_t{kernel.exclusive},
                                        std::int64_t{kernel.totalsPartArg}, kernel.parts}) {
        addNumber(key, number);
      }
      if (kernel.totalsPartArg >= 0) {
        addNumber(key, kernel.totals.buffer);
        addIndex(key, kernel.totals.index);
      }
      break;
    case KernelKind::Sort:
      for (const std::int64_t number :
           {std::int64_t{kernel.descending}, std::int64_t{kernel.sortsValues}, std::int64_t{kernel.sortsIndices},
            kernel.sortSize, kernel.sortKept, kernel.sortStride, kernel.sortOutputStride,
            std::int64_t{kernel.workspaceArg}, std::int64_t{kernel.indexOffsetArg}, kernel.indexLimit}) {
        addNumber(key, number);
      }
      break;
    case KernelKind::Route:
      for (const std::int64_t number : routeNumbers(kernel.route)) addNumber(key, number);
      break;
    case KernelKind::WindowWrite:
      addNumber(key, kernel.placeNode);
      break;
    case KernelKind::Scatter:
      for (const std::int64_t number : {std::int64_t{kernel.indexNode}, kernel.axisStride, kernel.axisSize,
                                        std::int64_t{kernel.splitArg}, std::int64_t{kernel.siteArg}}) {
        addNumber(key, number);
      }
      addIndex(key, kernel.position);
      break;
    case KernelKind::Random:
      for (const std::int64_t number : {std::int64_t{kernel.isNormal}, std::bit_cast<std::int64_t>(kernel.low),
                                        std::bit_cast<std::int64_t>(kernel.high), std::int64_t{kernel.stepNode},
                                        std::int64_t{kernel.firstNode}, std::int64_t{kernel.siteArg}}) {
        addNumber(key, number);
      }
      addIndex(key, kernel.position);
      break;
  }
  addNumber(key, kernel.chunkSize);
  addNumber(key, !kernel.loops.empty() && kernel.loops[0].sizeArg >= 0 ? 0 : kernel.chunks);
  return key;
}

// A key and a place: 8 bytes together where the key has 4 (runtime/sort_kernels.h).
std::int64_t LoopKernel::sortRowBytes() const {
  const std::int64_t entry = byteSize(nodes[0].dtype) <= 4 ? 8 : 16;
  return (sortSize * entry + 63) / 64 * 64;
}

std::string kernelSummary(const LoopKernel& kernel) {
  std::string text;
  switch (kernel.kind) {
    case KernelKind::Map:
      text = "map";
      break;
    case KernelKind::Reduce:
      text = std::string(reductionName(kernel.reduction)) + (kernel.rowReduce ? " rows" : " columns");
      break;
    case KernelKind::ArgReduce:
      text = kernel.isMax ? "argmax" : "argmin";
      break;
    case KernelKind::Scan:
      text = "cumsum";
      break;
    case KernelKind::Sort:
      text = "sort";
      break;
    case KernelKind::Route:
      text = "route";
      break;
    case KernelKind::WindowWrite:
      text = "dynamic_update";
      break;
    case KernelKind::Scatter:
      text = "scatter_add";
      break;
    case KernelKind::Random:
      text = kernel.isNormal ? "random_normal" : "random_uniform";
      break;
  }
  text += " [";
  for (std::size_t i = 0; i < kernel.loops.size(); ++i) {
    if (i > 0) text += i == kernel.keptLoops && !isPlain(kernel.kind) ? " | " : ", ";
    text += std::to_string(kernel.loops[i].size);
  }
  text += "]";
  for (const Node& node : kernel.nodes) {
    if (node.kind == NodeKind::Apply) text += " " + std::string(scalarInfo(node.fn).name);
    if (node.kind == NodeKind::Gather)
      text += node.moves[0].mayMiss ? " slots" : node.moves[0].startDim < 0 ? " take" : " dynamic_slice";
  }
  text +=
      ", " + std::to_string(kernel.outputs.size()) + " out of " + std::to_string(kernel.buffers.size()) + " buffers";
  return text;
}

std::vector<bool> dependsOnLoop(const LoopKernel& kernel, std::size_t loop) {
  std::vector<bool> depends(kernel.nodes.size(), false);
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    const Node& node = kernel.nodes[i];
    bool is = false;
    switch (node.kind) {
      case NodeKind::Load:
        is = node.access.index.scales[loop] != 0;
        break;
      case NodeKind::Table:
      case NodeKind::Index:
        is = node.position.scales[loop] != 0;
        break;
      case NodeKind::Gather:
      case NodeKind::Place:
        is = node.access.index.scales[loop] != 0;
        for (const RunTimeDim& move : node.moves) is = is || move.within.scales[loop] != 0;
        break;
      case NodeKind::Constant:
      case NodeKind::TotalRows:
      case NodeKind::Apply:
      case NodeKind::Inside:
        break;
    }
    for (const int input : node.inputs) is = is || depends[static_cast<std::size_t>(input)];
    depends[i] = is;
  }
  return depends;
}

}  // namespace gshard
