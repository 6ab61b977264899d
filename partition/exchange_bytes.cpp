// Bytes of an exchange that is a move at the same time (slice, pad, concat, reverse, transpose, reshape of split dims):
// what a device receives are the elements of its result tile that come from an operand and lie outside its own tile of
// it. Counted dim by dim in closed form; a reshape by runs of flat indices, and over the devices where it cuts across
// dims (splits of several dims leave no order in what a device lacks).
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "ir/op_table.h"
#include "partition/reshard.h"
#include "partition/tile_classes.h"
#include "support/check.h"

namespace gshard {

namespace {

std::int64_t floorDiv(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

// How many r in [tile] have (scale * r + offset) divisible by `divide` with the quotient in [low, high)?
std::int64_t countMapped(const MoveDim& map, const Tile& tile, std::int64_t low, std::int64_t high) {
  if (high <= low) return 0;
  // Bounds on r from the quotient's bounds, then those of the right residue.
  const std::int64_t numeratorLow = low * map.divide - map.offset, numeratorHigh = (high - 1) * map.divide - map.offset;
  std::int64_t first, last;
  if (map.scale > 0) {
    first = -floorDiv(-numeratorLow, map.scale);
    last = floorDiv(numeratorHigh, map.scale);
  } else {
    first = -floorDiv(numeratorHigh, -map.scale);
    last = floorDiv(-numeratorLow, -map.scale);
  }
  first = std::max(first, tile.offset);
  last = std::min(last, tile.offset + tile.live - 1);
  if (map.divide == 1) return std::max<std::int64_t>(0, last - first + 1);
  std::int64_t count = 0;
  // Residues repeat with period divide / gcd(scale, divide): find the first that fits, then step.
  const std::int64_t period = map.divide / std::gcd(map.scale, map.divide);
  for (std::int64_t r = first; r < first + period && r <= last; ++r) {
    if ((map.scale * r + map.offset) % map.divide == 0) count += (last - r) / period + 1;
  }
  return count;
}

// Dims of an operand that no result dim reads: of one index, which a device has or has not.
std::vector<std::size_t> unreadDims(const std::vector<MoveDim>& map, std::size_t rank) {
  std::vector<std::size_t> unread;
  for (std::size_t dim = 0; dim < rank; ++dim) {
    const auto reads = [&](const MoveDim& each) { return each.operandDim == static_cast<std::int64_t>(dim); };
    if (std::none_of(map.begin(), map.end(), reads)) unread.push_back(dim);
  }
  return unread;
}
bool hasFirst(const Tile& tile) {
  return tile.offset == 0 && tile.live > 0;
}

// Elements of `wanted` (of the result) that come from the operand's box, as a product over dims.
std::int64_t countBox(const std::vector<MoveDim>& map, const std::vector<Tile>& wanted, const std::vector<Tile>& box) {
  std::int64_t count = 1;
  for (const std::size_t dim : unreadDims(map, box.size())) count *= hasFirst(box[dim]) ? 1 : 0;
  for (std::size_t d = 0; d < map.size(); ++d) {
    if (map[d].operandDim < 0) {
      count *= wanted[d].live;
    } else {
      const Tile& tile = box[static_cast<std::size_t>(map[d].operandDim)];
      count *= countMapped(map[d], wanted[d], tile.offset, tile.offset + tile.live);
    }
  }
  return count;
}

// Runs of consecutive flat indices of a tile, ascending.
std::vector<std::pair<std::int64_t, std::int64_t>> flatRuns(const std::vector<std::int64_t>& shape,
                                                            const std::vector<Tile>& tiles) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs = {{0, 1}};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool whole = tiles[d].live == shape[d];
    std::vector<std::pair<std::int64_t, std::int64_t>> next;
    for (const auto& [start, length] : runs) {
      if (whole) {
        next.emplace_back(start * shape[d], length * shape[d]);
        continue;
      }
      for (std::int64_t i = 0; i < length; ++i) {
        if (tiles[d].live > 0) next.emplace_back((start + i) * shape[d] + tiles[d].offset, tiles[d].live);
      }
    }
    runs = std::move(next);
  }
  return runs;
}

// The elements of a tile whose flat index is below `limit`.
std::int64_t countBelow(const std::vector<std::int64_t>& shape, const std::vector<Tile>& tiles, std::int64_t limit) {
  std::int64_t stride = 1, count = 0;
  for (const std::int64_t size : shape) stride *= size;
  if (stride == 0) return 0;
  std::int64_t inside = 1;  // elements per index of the dims done
  for (const Tile& tile : tiles) inside *= tile.live;
  limit = std::min(limit, stride);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (tiles[d].live == 0) return 0;
    stride /= shape[d];
    inside /= tiles[d].live;
    const std::int64_t index = limit / stride - tiles[d].offset;
    count += std::clamp<std::int64_t>(index, 0, tiles[d].live) * inside;
    if (index < 0 || index >= tiles[d].live) return count;
    limit %= stride;
  }
  return count;
}

std::int64_t runCount(const std::vector<std::int64_t>& shape, const std::vector<Tile>& tiles) {
  std::int64_t before = 1, runs = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (tiles[d].live != shape[d]) runs = before;
    before *= tiles[d].live;
  }
  return runs;
}

struct Part {
  const std::vector<std::int64_t>& shape;
  std::vector<Tile> tiles;
};

// Elements that two tiles of one flat sequence share: the runs of the one that has fewer, counted in the other.
std::int64_t commonOf(const Part& a, const Part& b) {
  const bool byFirst = runCount(a.shape, a.tiles) <= runCount(b.shape, b.tiles);
  const Part &few = byFirst ? a : b, &other = byFirst ? b : a;
  std::int64_t common = 0;
  for (const auto& [start, length] : flatRuns(few.shape, few.tiles))
    common += countBelow(other.shape, other.tiles, start + length) - countBelow(other.shape, other.tiles, start);
  return common;
}

// Of one operand: elements of a result tile that come from it at all, and those that the device's own tile of it has.
struct Counts {
  std::int64_t wanted = 1, held = 1;
  friend auto operator<=>(const Counts&, const Counts&) = default;
};

// ---- large meshes: dims whose axes differ are independent, so each group of dims is walked over its own axes alone.

class MoveClasses {
 public:
  explicit MoveClasses(const OpView& op) : op_(op), mesh_(op.mesh()), result_(valueOf(op.op().results[0])) {
    for (std::size_t i = 0; i < op.operandCount(); ++i) {
      if (op.stringAttr("move") == "pad" && i == 1) continue;  // the fill value is whole everywhere
      for (std::size_t piece = 0; piece < movePieces(op); ++piece) {
        operands_.push_back(&valueOf(op.op().operands[i]));
        maps_.push_back(moveMap(op, i, piece));
        for (const std::size_t dim : unreadDims(maps_.back(), operands_.back()->type.shape.size()))
          unread_.push_back({maps_.size() - 1, dim});
      }
    }
  }

  BytesReceived bytes() {
    Classes all = {{std::vector<Counts>(operands_.size()), 1}};
    std::vector<bool> used(mesh_.axes.size(), false);
    for (const Group& group : groups()) {
      Classes next;
      const Classes own = classesOf(group);
      for (const auto& [a, countA] : all) {
        for (const auto& [b, countB] : own) {
          std::vector<Counts> product = a;
          for (std::size_t i = 0; i < product.size(); ++i) {
            product[i].wanted *= b[i].wanted;
            product[i].held *= b[i].held;
          }
          next[std::move(product)] += countA * countB;
        }
      }
      all = std::move(next);
      for (std::size_t a = 0; a < used.size(); ++a) used[a] = used[a] || group.axes[a];
    }
    std::int64_t copies = 1;
    for (std::size_t a = 0; a < used.size(); ++a) copies *= used[a] ? 1 : mesh_.axes[a].size;
    BytesReceived bytes;
    for (const auto& [counts, devices] : all) {
      std::int64_t received = 0;
      for (const Counts& each : counts) received += each.wanted - each.held;
      received *= byteSize(result_.type.dtype);
      bytes.max = std::max(bytes.max, received);
      bytes.total += received * devices * copies;
    }
    return bytes;
  }

 private:
  using Classes = std::map<std::vector<Counts>, std::int64_t>;  // counts per operand: number of devices
  using Group = DimGroup;  // dims of the result, and behind them those of operands that none of it reads

  const Value& valueOf(ValueId value) const { return op_.function().value(value); }

  std::vector<Group> groups() const {
    std::vector<Group> groups;
    for (std::size_t dim = 0; dim < result_.type.shape.size(); ++dim) {
      std::vector<bool> axes(mesh_.axes.size(), false);
      const auto mark = [&](const std::vector<AxisRef>& refs) {
        for (const AxisRef& ref : refs) axes[static_cast<std::size_t>(ref.axis)] = true;
      };
      mark(result_.sharding->dims[dim]);
      for (std::size_t i = 0; i < operands_.size(); ++i) {
        const std::int64_t from = maps_[i][dim].operandDim;
        if (from >= 0) mark(operands_[i]->sharding->dims[static_cast<std::size_t>(from)]);
      }
      addDim(groups, dim, std::move(axes));
    }
    for (std::size_t i = 0; i < unread_.size(); ++i) {
      std::vector<bool> axes(mesh_.axes.size(), false);
      for (const AxisRef& ref : operands_[unread_[i].operand]->sharding->dims[unread_[i].dim])
        axes[static_cast<std::size_t>(ref.axis)] = true;
      addDim(groups, result_.type.shape.size() + i, std::move(axes));
    }
    return groups;
  }

  Tile tile(const Value& value, std::size_t dim, std::int64_t device) const {
    const std::vector<AxisRef>& axes = value.sharding->dims[dim];
    return tileOf(value.type.shape[dim], productOf(axes), partIndex(mesh_, axes, device));
  }

  Classes classesOf(const Group& group) const {
    Classes classes;
    std::vector<std::int64_t> coordinates(mesh_.axes.size(), 0);
    for (bool more = true; more;) {
      const std::int64_t device = mesh_.deviceAt(coordinates);
      std::vector<Counts> counts(operands_.size());
      for (const std::size_t dim : group.dims) {
        if (dim >= result_.type.shape.size()) {
          const Unread& unread = unread_[dim - result_.type.shape.size()];
          counts[unread.operand].held *= hasFirst(tile(*operands_[unread.operand], unread.dim, device)) ? 1 : 0;
          continue;
        }
        const Tile wanted = tile(result_, dim, device);
        for (std::size_t i = 0; i < operands_.size(); ++i) {
          const MoveDim& map = maps_[i][dim];
          if (map.operandDim < 0) {
            counts[i].wanted *= wanted.live;
            counts[i].held *= wanted.live;
            continue;
          }
          const auto from = static_cast<std::size_t>(map.operandDim);
          const Tile held = tile(*operands_[i], from, device);
          counts[i].wanted *= countMapped(map, wanted, 0, operands_[i]->type.shape[from]);
          counts[i].held *= countMapped(map, wanted, held.offset, held.offset + held.live);
        }
      }
      ++classes[std::move(counts)];
      more = false;
      for (std::size_t a = mesh_.axes.size(); a-- > 0 && !more;) {
        if (!group.axes[a]) continue;
        more = ++coordinates[a] < mesh_.axes[a].size;
        if (!more) coordinates[a] = 0;
      }
    }
    return classes;
  }

  const OpView& op_;
  const Mesh& mesh_;
  const Value& result_;
  std::vector<const Value*> operands_;
  std::vector<std::vector<MoveDim>> maps_;
  struct Unread {
    std::size_t operand, dim;
  };
  std::vector<Unread> unread_;
};

std::int64_t receivedBy(const OpView& op, std::int64_t device) {
  const Function& function = op.function();
  const Value& result = function.value(op.op().results[0]);
  const std::vector<Tile> wanted = tilesOf(op.mesh(), result.type, *result.sharding, device);
  const std::string& move = op.stringAttr("move");
  std::int64_t received = 0;
  for (std::size_t i = 0; i < op.operandCount(); ++i) {
    if (move == "pad" && i == 1) continue;  // the fill value is whole everywhere
    const Value& operand = function.value(op.op().operands[i]);
    const std::vector<Tile> held = tilesOf(op.mesh(), operand.type, *operand.sharding, device);
    if (move == "reshape") {
      std::int64_t live = 1;
      for (const Tile& tile : wanted) live *= tile.live;
      received += live - commonOf({result.type.shape, wanted}, {operand.type.shape, held});
      continue;
    }
    std::vector<Tile> whole;
    for (const std::int64_t size : operand.type.shape) whole.push_back({0, size});
    for (std::size_t piece = 0; piece < movePieces(op); ++piece) {
      const std::vector<MoveDim> map = moveMap(op, i, piece);
      received += countBox(map, wanted, whole) - countBox(map, wanted, held);
    }
  }
  return received * byteSize(result.type.dtype);
}

// ---- a reshape on a large mesh

// The outermost dim (of more than one index), if it is split and no other is: each tile is one run then.
std::optional<std::size_t> outermostSplit(const Value& value) {
  std::optional<std::size_t> outermost;
  for (std::size_t d = 0; d < value.type.shape.size(); ++d) {
    const bool isOutermost = !outermost && value.type.shape[d] != 1;
    if (isOutermost) outermost = d;
    if (isOutermost == value.sharding->dims[d].empty()) return std::nullopt;
  }
  return outermost;
}

// Both values in runs of parts r = 0 ... n - 1 of one list of axes. What part r lacks is linear in r between the few r
// where the order of the four ends of the two runs changes, so its sum and its maximum follow from these alone.
std::optional<BytesReceived> bytesOfRuns(const OpView& op) {
  const Value& operand = op.function().value(op.op().operands[0]);
  const Value& result = op.function().value(op.op().results[0]);
  const std::optional<std::size_t> from = outermostSplit(operand), to = outermostSplit(result);
  if (!from || !to || operand.sharding->dims[*from] != result.sharding->dims[*to]) return std::nullopt;
  const std::int64_t parts = productOf(result.sharding->dims[*to]), elements = result.type.elements();
  const auto runOf = [&](const Value& value, std::size_t dim) {  // elements of a full part
    const std::int64_t size = value.type.shape[dim];
    return size == 0 ? 0 : partSize(size, parts) * (elements / size);
  };
  const std::int64_t a = runOf(operand, *from), b = runOf(result, *to);
  BytesReceived bytes;
  const auto lacks = [&](std::int64_t r) {
    ++bytes.looks;
    const std::int64_t wantedBegin = std::min(r * b, elements), wantedEnd = std::min((r + 1) * b, elements);
    const std::int64_t begin = std::max(wantedBegin, std::min(r * a, elements));
    const std::int64_t end = std::min(wantedEnd, std::min((r + 1) * a, elements));
    return wantedEnd - wantedBegin - std::max<std::int64_t>(0, end - begin);
  };
  std::set<std::int64_t> turns = {0, parts - 1};
  const auto turnAt = [&](std::int64_t r) {
    for (std::int64_t near = r - 2; near <= r + 2; ++near) {
      if (near > 0 && near < parts) turns.insert(near);
    }
  };
  if (a > 0) turnAt(elements / a);
  if (b > 0) turnAt(elements / b);
  if (a != b) turnAt(std::min(a, b) / std::abs(a - b));  // from there on the runs of one part lie apart
  const std::int64_t copies = op.mesh().devices() / parts, size = byteSize(result.type.dtype);
  std::int64_t total = 0;
  for (auto turn = turns.begin(); turn != turns.end(); ++turn) {
    const std::int64_t here = lacks(*turn);
    bytes.max = std::max(bytes.max, here * size);
    total += here;
    const auto next = std::next(turn);
    if (next == turns.end() || *next == *turn + 1) continue;
    const std::int64_t between = *next - *turn - 1, first = lacks(*turn + 1), last = lacks(*next - 1);
    bytes.max = std::max(bytes.max, std::max(first, last) * size);
    total += (first + last) * between / 2;
  }
  bytes.total = total * size * copies;
  return bytes;
}

}  // namespace

BytesReceived bytesOfExchange(const OpView& op) {
  const Function& function = op.function();
  const Value& result = function.value(op.op().results[0]);
  if (op.stringAttr("move").empty()) {
    const Value& operand = function.value(op.op().operands[0]);
    return bytesOfMove(op.mesh(), result.type, *operand.sharding, *result.sharding);
  }
  if (op.mesh().devices() > kPerDeviceLimit) {
    if (op.stringAttr("move") != "reshape") return MoveClasses(op).bytes();
    if (const std::optional<BytesReceived> bytes = bytesOfRuns(op)) return *bytes;
  }
  std::vector<bool> used(op.mesh().axes.size(), false);
  const auto mark = [&](const Sharding& sharding) {
    for (const auto& dim : sharding.dims) {
      for (const AxisRef& ref : dim) used[static_cast<std::size_t>(ref.axis)] = true;
    }
  };
  mark(*result.sharding);
  for (const ValueId operand : op.op().operands) mark(*function.value(operand).sharding);
  return collectBytes(op.mesh(), std::move(used), [&](std::int64_t device) { return receivedBy(op, device); });
}

}  // namespace gshard
