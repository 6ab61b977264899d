// Deriving boxes from tiles; see derive_moves.h.
#include "runtime/derive_moves.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "runtime/failure.h"

namespace gshard::runtime {
namespace {

std::vector<std::int64_t> stridesOf(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

// Members from the reader on, cyclically: the order in which holders are preferred.
std::vector<int> preferred(const std::vector<int>& group, int reader) {
  std::vector<int> order = group;
  const int position = std::max(0, positionIn(group, reader));
  std::rotate(order.begin(), order.begin() + position, order.end());
  return order;
}

std::int64_t floorDiv(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
std::int64_t ceilDiv(std::int64_t a, std::int64_t b) {
  return -floorDiv(-a, b);
}

// Result indices firstResult + t*resultStep read operand indices firstOperand + t*operandStep, t < count.
struct Progression {
  std::int64_t count = 0, firstResult = 0, resultStep = 1, firstOperand = 0, operandStep = 0;
};

// Result range [r0, r1), operand range [s0, s1), operand index (scale * r + offset) / divide where whole.
Progression intersect(const gshard_rt_move_dim& move, std::int64_t r0, std::int64_t r1, std::int64_t s0,
                      std::int64_t s1) {
  Progression none;
  if (r0 >= r1 || s0 >= s1) return none;
  if (move.scale == 0) {
    if (move.offset % move.divide != 0) return none;
    const std::int64_t operand = move.offset / move.divide;
    if (operand < s0 || operand >= s1) return none;
    return {r1 - r0, r0, 1, operand, 0};
  }
  const std::int64_t common = std::gcd(move.scale, move.divide);
  if (move.offset % common != 0) return none;
  const std::int64_t step = move.divide / common;
  std::int64_t first = r0;
  while ((move.scale * first + move.offset) % move.divide != 0) ++first;  // at most `step` tries
  if (first >= r1) return none;
  const std::int64_t operand = (move.scale * first + move.offset) / move.divide;
  const std::int64_t operandStep = move.scale / common;
  std::int64_t low = operandStep > 0 ? ceilDiv(s0 - operand, operandStep) : ceilDiv(operand - (s1 - 1), -operandStep);
  std::int64_t high = operandStep > 0 ? floorDiv(s1 - 1 - operand, operandStep) : floorDiv(operand - s0, -operandStep);
  low = std::max<std::int64_t>(low, 0);
  high = std::min(high, (r1 - 1 - first) / step);
  if (low > high) return none;
  return {high - low + 1, first + low * step, step, operand + low * operandStep, operandStep};
}

std::optional<BoxCopy> affineCopy(const gshard_rt_transfer& transfer, const Tile& target, const Tile& source) {
  const std::vector<std::int64_t> targetStrides = stridesOf(target.part);
  const std::vector<std::int64_t> sourceStrides = stridesOf(source.part);
  const std::int64_t size = elementBytes(static_cast<ElementType>(transfer.to.dtype));
  BoxCopy copy;
  copy.type = static_cast<ElementType>(transfer.to.dtype);
  copy.source.offset = transfer.from.offset;
  copy.target.offset = transfer.to.offset;
  std::vector<bool> read(source.part.size(), false);
  const int rank = static_cast<int>(target.part.size());
  copy.source.extents.rank = copy.source.strides.rank = copy.target.strides.rank = rank;
  for (int d = 0; d < rank; ++d) {
    const std::size_t at = static_cast<std::size_t>(d);
    const gshard_rt_move_dim move = transfer.move != nullptr ? transfer.move[d] : gshard_rt_move_dim{d, 1, 0, 1};
    const std::int64_t r0 = target.offset[at];
    const std::int64_t r1 = r0 + target.live[at];
    Progression indices{r1 - r0, r0, 1, 0, 0};
    std::int64_t sourceStride = 0;
    if (move.operand_dim >= 0) {
      const std::size_t operand = static_cast<std::size_t>(move.operand_dim);
      read[operand] = true;
      indices = intersect(move, r0, r1, source.offset[operand], source.offset[operand] + source.live[operand]);
      sourceStride = sourceStrides[operand];
      copy.source.offset += (indices.firstOperand - source.offset[operand]) * sourceStride * size;
    }
    if (indices.count == 0) return std::nullopt;
    copy.target.offset += (indices.firstResult - r0) * targetStrides[at] * size;
    copy.source.extents.dim[at] = indices.count;
    copy.source.strides.dim[at] = indices.operandStep * sourceStride;
    copy.target.strides.dim[at] = indices.resultStep * targetStrides[at];
  }
  // A dim that no result dim reads has one index, 0.
  for (std::size_t d = 0; d < read.size(); ++d) {
    if (!read[d] && (source.offset[d] != 0 || source.live[d] == 0)) return std::nullopt;
  }
  copy.target.extents = copy.source.extents;
  return copy;
}

// A run of elements that are adjacent in the flat index of the whole value and in both buffers.
struct Run {
  int from = 0;
  std::int64_t source = 0, target = 0, length = 0;  // elements within the buffers
};

// Runs with one length and constant distances become boxes of rank 2: a reshape of a tile stays a handful of copies.
void appendRuns(const std::vector<Run>& runs, const gshard_rt_transfer& transfer, std::vector<BoxCopy>& out) {
  const ElementType type = static_cast<ElementType>(transfer.to.dtype);
  for (std::size_t i = 0; i < runs.size();) {
    std::size_t end = i + 1;
    std::int64_t sourceStep = 0;
    std::int64_t targetStep = 0;
    while (end < runs.size() && runs[end].from == runs[i].from && runs[end].length == runs[i].length) {
      const std::int64_t sourceDelta = runs[end].source - runs[end - 1].source;
      const std::int64_t targetDelta = runs[end].target - runs[end - 1].target;
      if (end == i + 1) {
        sourceStep = sourceDelta;
        targetStep = targetDelta;
      } else if (sourceDelta != sourceStep || targetDelta != targetStep) {
        break;
      }
      ++end;
    }
    BoxCopy copy;
    copy.from = runs[i].from;
    copy.type = type;
    const std::int64_t count = static_cast<std::int64_t>(end - i);
    copy.source.offset = transfer.from.offset + runs[i].source * elementBytes(type);
    copy.target.offset = transfer.to.offset + runs[i].target * elementBytes(type);
    copy.source.extents = copy.target.extents = makeExtents({count, runs[i].length});
    copy.source.strides = makeExtents({sourceStep, 1});
    copy.target.strides = makeExtents({targetStep, 1});
    out.push_back(copy);
    i = end;
  }
}

// Dims after the last split one lie side by side: the length of what follows one index of `dim`.
struct Flat {
  std::vector<std::int64_t> shape;    // global
  std::vector<std::int64_t> weights;  // flat distance of one index
  std::size_t runDim = 0;             // dims after it are whole on every device
  std::int64_t inner = 1;             // product of those
};

Flat flatOf(const gshard_rt_tensor& tensor, const Tile& tile, const std::vector<std::int64_t>& shape) {
  Flat flat;
  flat.shape = shape;
  flat.weights = stridesOf(shape);
  std::size_t rank = static_cast<std::size_t>(tensor.rank);
  while (rank > 1 && tile.part[rank - 1] == shape[rank - 1]) {
    --rank;
    flat.inner *= shape[rank];
  }
  flat.runDim = rank == 0 ? 0 : rank - 1;
  return flat;
}

class ReshapeDerivation {
 public:
  ReshapeDerivation(const ExtentTable& table, const gshard_rt_transfer& transfer, int reader,
                    const std::vector<int>& group, const std::vector<std::vector<std::int64_t>>& pairs)
      : transfer_(transfer), target_(tileOf(table, transfer.to, pairs[static_cast<std::size_t>(reader)])) {
    for (const int device : preferred(group, reader)) {
      const Tile tile = tileOf(table, transfer.from, pairs[static_cast<std::size_t>(device)]);
      if (!tile.empty()) holders_.try_emplace(tile.offset, device, tile);
    }
    to_ = flatOf(transfer.to, target_, currentShape(table, transfer.to, pairs, group));
    if (!holders_.empty()) {
      from_ = flatOf(transfer.from, holders_.begin()->second.second, currentShape(table, transfer.from, pairs, group));
      sourceStrides_ = stridesOf(holders_.begin()->second.second.part);
    }
  }

  void derive(std::vector<BoxCopy>& out) {
    if (target_.empty() || holders_.empty()) return;
    const std::vector<std::int64_t> strides = stridesOf(target_.part);
    std::vector<std::int64_t> index(target_.part.size(), 0);
    while (true) {
      std::int64_t flat = 0;
      std::int64_t local = 0;
      for (std::size_t d = 0; d < index.size(); ++d) {
        flat += (target_.offset[d] + index[d]) * to_.weights[d];
        local += index[d] * strides[d];
      }
      const std::int64_t length = index.empty() ? 1 : target_.live[to_.runDim] * to_.inner;
      cut(flat, local, length);
      std::size_t d = to_.runDim;
      while (d > 0 && ++index[d - 1] == target_.live[d - 1]) index[--d] = 0;
      if (d == 0) break;
    }
    appendRuns(runs_, transfer_, out);
  }

 private:
  // The live global shape: row dims may be short.
  static std::vector<std::int64_t> currentShape(const ExtentTable&, const gshard_rt_tensor& tensor,
                                                const std::vector<std::vector<std::int64_t>>& pairs,
                                                const std::vector<int>& group) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(tensor.rank), 0);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::size_t e = static_cast<std::size_t>(tensor.extents[d]);
      for (const int device : group) {
        const std::vector<std::int64_t>& own = pairs[static_cast<std::size_t>(device)];
        shape[d] = std::max(shape[d], own[2 * e] + own[2 * e + 1]);
      }
    }
    return shape;
  }

  // Parts a run of the reader's flat indices where the source's tiles end.
  void cut(std::int64_t flat, std::int64_t local, std::int64_t length) {
    while (length > 0) {
      std::int64_t rest = flat;
      std::vector<std::int64_t> corner(from_.shape.size());
      std::vector<std::int64_t> index(from_.shape.size());
      const std::vector<std::int64_t>& part = holders_.begin()->second.second.part;
      for (std::size_t d = 0; d < index.size(); ++d) {
        index[d] = rest / from_.weights[d];
        rest %= from_.weights[d];
        corner[d] = index[d] / part[d] * part[d];
      }
      std::int64_t available = length;
      std::int64_t source = 0;
      if (!index.empty()) {
        const std::size_t k = from_.runDim;
        const std::int64_t end = std::min(corner[k] + part[k], from_.shape[k]);
        available = std::min(length, (end - index[k]) * from_.inner - flat % from_.inner);
        for (std::size_t d = 0; d < index.size(); ++d) source += (index[d] - corner[d]) * sourceStrides_[d];
      }
      const auto holder = holders_.find(corner);
      if (holder != holders_.end()) runs_.push_back({holder->second.first, source, local, available});
      flat += available;
      local += available;
      length -= available;
    }
  }

  const gshard_rt_transfer& transfer_;
  Tile target_;
  Flat to_;
  Flat from_;
  std::vector<std::int64_t> sourceStrides_;
  std::map<std::vector<std::int64_t>, std::pair<int, Tile>> holders_;  // by the tile's corner
  std::vector<Run> runs_;
};

}  // namespace

std::vector<BoxCopy> deriveCopies(const ExtentTable& table, const gshard_rt_transfer& transfer, int reader,
                                  const std::vector<int>& group, const std::vector<std::vector<std::int64_t>>& pairs) {
  std::vector<BoxCopy> copies;
  if (transfer.to.rank > kMaxRank || transfer.from.rank > kMaxRank) {
    throw Failure{kExitBug, "a moved tensor has more dimensions than the runtime handles"};
  }
  if (transfer.move_kind == GSHARD_RT_MOVE_RESHAPE) {
    ReshapeDerivation(table, transfer, reader, group, pairs).derive(copies);
    return copies;
  }
  const Tile target = tileOf(table, transfer.to, pairs[static_cast<std::size_t>(reader)]);
  if (target.empty()) return copies;
  std::set<std::vector<std::int64_t>> seen;
  for (const int device : preferred(group, reader)) {
    const Tile source = tileOf(table, transfer.from, pairs[static_cast<std::size_t>(device)]);
    if (source.empty() || !seen.insert(source.offset).second) continue;
    std::optional<BoxCopy> copy = affineCopy(transfer, target, source);
    if (!copy) continue;
    copy->from = device;
    copies.push_back(*copy);
  }
  return copies;
}

}  // namespace gshard::runtime
