// Redistribution between simulated devices; see simulated_devices.h.
#include "ir/simulated_devices.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "ir/evaluate_loops.h"
#include "support/check.h"

namespace gshard {

namespace {
Tensor tailTensor(Type type) {
  Tensor tensor = Tensor::zeros(std::move(type));
  std::fill(tensor.floats.begin(), tensor.floats.end(), std::numeric_limits<double>::quiet_NaN());
  std::int64_t worst = 1;
  if (tensor.type.dtype == DType::I32) worst = std::numeric_limits<std::int32_t>::min();
  if (tensor.type.dtype == DType::I64) worst = std::numeric_limits<std::int64_t>::min();
  if (tensor.type.dtype == DType::U8) worst = 255;
  std::fill(tensor.ints.begin(), tensor.ints.end(), worst);
  return tensor;
}

// What becomes of the pending reductions on the way.
struct PartialChange {
  std::vector<AxisRef> finished, begun;
  Reduction finishedWith = Reduction::Sum, begunWith = Reduction::Sum;
};

PartialChange changeOf(const Sharding& from, const Sharding& to) {
  AxisPieces pieces;
  for (const PartialAxis& each : from.partial) pieces.add(each.axis);
  for (const PartialAxis& each : to.partial) pieces.add(each.axis);
  PartialChange change;
  for (const AxisRef& piece : pieces.all()) {
    const std::optional<Reduction> before = partialOver(from, piece);
    const std::optional<Reduction> after = partialOver(to, piece);
    if (before == after) continue;
    GSHARD_CHECK(!before || !after, "one pending reduction becomes another");
    if (before) {
      change.finished.push_back(piece);
      change.finishedWith = *before;
    } else {
      change.begun.push_back(piece);
      change.begunWith = *after;
    }
  }
  return change;
}

// For one reading device: which device holds a global index, and at which place of its tile. Both are sums over dims.
struct HolderTable {
  std::vector<std::vector<std::int64_t>> device, place;  // per dim, per global index
};

HolderTable holdersFor(const Mesh& mesh, const DeviceValue& value, std::int64_t reader) {
  HolderTable table;
  const std::vector<std::int64_t> strides = stridesOf(localShape(value.type, value.sharding));
  for (std::size_t dim = 0; dim < value.type.shape.size(); ++dim) {
    const std::vector<AxisRef>& axes = value.sharding.dims[dim];
    const std::int64_t size = value.type.shape[dim];
    const std::int64_t part = partSize(size, productOf(axes));
    std::vector<std::int64_t>& device = table.device.emplace_back(static_cast<std::size_t>(size));
    std::vector<std::int64_t>& place = table.place.emplace_back(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) {
      device[static_cast<std::size_t>(i)] = deviceInGroup(mesh, axes, reader, i / part) - reader;
      place[static_cast<std::size_t>(i)] = i % part * strides[dim];
    }
  }
  return table;
}
}  // namespace

std::vector<Tile> SimulatedDevices::tiles(const DeviceValue& value, std::int64_t device) const {
  std::vector<Tile> tiles = tilesOf(*mesh_, value.type, value.sharding, device);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    tiles[i].live = std::max<std::int64_t>(0, std::min(tiles[i].live, value.live[i] - tiles[i].offset));
  }
  return tiles;
}

DeviceValue SimulatedDevices::blank(Type type, Sharding sharding, std::vector<std::int64_t> live) const {
  const Tensor tile = tailTensor({type.dtype, localShape(type, sharding)});
  return {std::move(type), std::move(sharding), std::move(live),
          std::vector<Tensor>(static_cast<std::size_t>(count_), tile)};
}

void SimulatedDevices::redistribute(const DeviceValue& from, DeviceValue& to,
                                    std::vector<std::int64_t>* received) const {
  const PartialChange change = changeOf(from.sharding, to.sharding);
  const DType dtype = to.type.dtype;
  const std::int64_t group = productOf(change.finished);
  for (std::int64_t device = 0; device < count_; ++device) {
    const HolderTable holders = holdersFor(*mesh_, from, device);
    const std::vector<Tile> tile = tiles(to, device);
    Tensor& out = to.tiles[static_cast<std::size_t>(device)];
    const bool holdsIdentity = partIndex(*mesh_, change.begun, device) != 0;
    std::vector<std::int64_t> members;  // of the finished reduction, as distances from the holder in this group
    for (const std::int64_t member : groupOf(*mesh_, change.finished, device)) members.push_back(member - device);
    std::int64_t missing = 0, wanted = 0;
    forEachIndex(liveSizes(tile), [&](const Index& local) {
      std::int64_t holder = device, place = 0;
      for (std::size_t dim = 0; dim < local.size(); ++dim) {
        const std::size_t global = static_cast<std::size_t>(local[dim] + tile[dim].offset);
        holder += holders.device[dim][global];
        place += holders.place[dim][global];
      }
      ++wanted;
      if (holder != device) ++missing;
      const std::int64_t at = flatOf(local, out.type.shape);
      if (holdsIdentity) {
        storeNumber(out, at, identityOf(change.begunWith, dtype));
        return;
      }
      Number number = numberAt(from.tiles[static_cast<std::size_t>(holder + members[0])], place);
      for (std::size_t k = 1; k < members.size(); ++k) {
        const Number next = numberAt(from.tiles[static_cast<std::size_t>(holder + members[k])], place);
        number = reduceStep(change.finishedWith, dtype, number, next, true);
      }
      storeNumber(out, at, number);
    });
    if (received == nullptr) continue;
    std::int64_t elements = missing;
    if (group > 1 && from.sharding.dims == to.sharding.dims) {
      // all_reduce: a device finishes its own part of the tile and receives the other finished parts.
      const std::int64_t own = tileOf(wanted, group, partIndex(*mesh_, change.finished, device)).live;
      elements = (group - 1) * own + (wanted - own);
    } else if (group > 1) {
      elements = (group - 1) * wanted;
    }
    (*received)[static_cast<std::size_t>(device)] += elements * byteSize(dtype);
  }
}

Tensor SimulatedDevices::assemble(const DeviceValue& value) const {
  DeviceValue whole{value.type, Sharding::replicated(value.type.rank()), value.live, {}};
  whole.tiles.assign(1, tailTensor(value.type));
  SimulatedDevices reader(*mesh_);
  reader.count_ = 1;  // device 0 reads everything
  reader.redistribute(value, whole);
  return std::move(whole.tiles[0]);
}

DeviceValue SimulatedDevices::distribute(const Tensor& global, Sharding sharding,
                                         std::vector<std::int64_t> live) const {
  DeviceValue whole{global.type, Sharding::replicated(global.type.rank()), live, {}};
  whole.tiles.assign(static_cast<std::size_t>(count_), global);
  DeviceValue result = blank(global.type, std::move(sharding), std::move(live));
  redistribute(whole, result);
  return result;
}

std::optional<std::int64_t> SimulatedDevices::differingReplica(const DeviceValue& value) const {
  AxisPieces pieces;
  std::vector<AxisRef> used;
  for (std::size_t i = 0; i < mesh_->axes.size(); ++i) pieces.add(wholeAxis(*mesh_, static_cast<int>(i)));
  for (const std::vector<AxisRef>& axes : value.sharding.dims) used.insert(used.end(), axes.begin(), axes.end());
  for (const PartialAxis& each : value.sharding.partial) used.push_back(each.axis);
  pieces.add(used);
  std::vector<AxisRef> copied;
  for (const AxisRef& piece : pieces.all()) {
    if (!covers(used, piece)) copied.push_back(piece);
  }
  for (std::int64_t device = 0; device < count_; ++device) {
    const std::int64_t first = deviceInGroup(*mesh_, copied, device, 0);
    if (!sameBits(value.tiles[static_cast<std::size_t>(device)], value.tiles[static_cast<std::size_t>(first)]))
      return device;
  }
  return std::nullopt;
}

}  // namespace gshard
