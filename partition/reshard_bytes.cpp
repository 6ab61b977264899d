// Bytes that devices receive in a reshard, counted exactly on live elements. Apart from the planner's search: the plan,
// the cost model and the tests use these as well. Only the axes that a sharding names are walked: copies behave alike.
#include <algorithm>

#include "partition/reshard.h"
#include "partition/tile_classes.h"
#include "support/check.h"

namespace gshard {

namespace {

std::vector<bool> usedAxes(const Mesh& mesh, std::span<const Sharding* const> shardings,
                           std::span<const AxisRef> extra) {
  std::vector<bool> used(mesh.axes.size(), false);
  for (const Sharding* sharding : shardings) {
    for (const auto& dim : sharding->dims) {
      for (const AxisRef& ref : dim) used[static_cast<std::size_t>(ref.axis)] = true;
    }
  }
  for (const AxisRef& ref : extra) used[static_cast<std::size_t>(ref.axis)] = true;
  return used;
}

std::int64_t liveElements(const std::vector<Tile>& tiles) {
  std::int64_t live = 1;
  for (const Tile& tile : tiles) live *= tile.live;
  return live;
}

std::int64_t overlapElements(const std::vector<Tile>& a, const std::vector<Tile>& b) {
  std::int64_t overlap = 1;
  for (std::size_t d = 0; d < a.size(); ++d) {
    const std::int64_t low = std::max(a[d].offset, b[d].offset);
    const std::int64_t high = std::min(a[d].offset + a[d].live, b[d].offset + b[d].live);
    overlap *= std::max<std::int64_t>(0, high - low);
  }
  return overlap;
}

}  // namespace

BytesReceived collectBytes(const Mesh& mesh, std::vector<bool> used,
                           const std::function<std::int64_t(std::int64_t)>& receivedBy) {
  const bool all = mesh.devices() <= kPerDeviceLimit;
  if (all) used.assign(used.size(), true);
  std::int64_t copies = 1;
  for (std::size_t a = 0; a < used.size(); ++a) copies *= used[a] ? 1 : mesh.axes[a].size;
  BytesReceived bytes;
  std::vector<std::int64_t> coordinates(mesh.axes.size(), 0);
  for (bool more = true; more;) {
    const std::int64_t received = receivedBy(mesh.deviceAt(coordinates));
    ++bytes.looks;
    bytes.max = std::max(bytes.max, received);
    bytes.total += received * copies;
    if (all) bytes.perDevice.push_back(received);
    more = false;
    for (std::size_t a = used.size(); a-- > 0 && !more;) {
      if (!used[a]) continue;
      more = ++coordinates[a] < mesh.axes[a].size;
      if (!more) coordinates[a] = 0;
    }
  }
  return bytes;
}

bool tilesNest(std::int64_t dim, std::int64_t a, std::int64_t b) {
  return a == 1 || b == 1 || b * partSize(dim, a * b) == partSize(dim, a);
}

// On large meshes no list per device is kept, and devices are counted by classes.
static bool countsByClass(const Mesh& mesh) {
  return mesh.devices() > kPerDeviceLimit;
}

static BytesReceived sumOf(const std::vector<TileClass>& classes, const Type& type,
                           const std::function<std::int64_t(const TileClass&)>& received) {
  BytesReceived bytes;
  for (const TileClass& each : classes) {
    const std::int64_t own = received(each) * byteSize(type.dtype);
    bytes.max = std::max(bytes.max, own);
    bytes.total += own * each.devices;
  }
  return bytes;
}

BytesReceived bytesOfMove(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to) {
  if (countsByClass(mesh)) {
    return sumOf(tileClasses(mesh, type, from, to), type,
                 [](const TileClass& each) { return each.wanted - each.held; });
  }
  const Sharding* both[] = {&from, &to};
  return collectBytes(mesh, usedAxes(mesh, both, {}), [&](std::int64_t device) {
    const std::vector<Tile> held = tilesOf(mesh, type, from, device);
    const std::vector<Tile> wanted = tilesOf(mesh, type, to, device);
    return (liveElements(wanted) - overlapElements(held, wanted)) * byteSize(type.dtype);
  });
}

BytesReceived bytesOfAllReduce(const Mesh& mesh, const Type& type, const Sharding& sharding,
                               std::span<const AxisRef> axes) {
  const std::int64_t n = productOf(axes);
  if (countsByClass(mesh)) {
    // The busiest of a group owns ceil(count / n); all of it together receive 2 (n - 1) count.
    const std::vector<TileClass> classes = tileClasses(mesh, type, sharding, sharding);
    BytesReceived bytes = sumOf(classes, type, [n](const TileClass& each) {
      const std::int64_t own = partSize(each.wanted, n);
      return (n - 1) * own + (each.wanted - own);
    });
    bytes.total = 0;
    for (const TileClass& each : classes)
      bytes.total += 2 * (n - 1) * each.wanted * byteSize(type.dtype) * (each.devices / n);
    return bytes;
  }
  const Sharding* one[] = {&sharding};
  return collectBytes(mesh, usedAxes(mesh, one, axes), [&](std::int64_t device) {
    const std::int64_t count = liveElements(tilesOf(mesh, type, sharding, device));
    const std::int64_t own = tileOf(count, n, partIndex(mesh, axes, device)).live;
    return ((n - 1) * own + (count - own)) * byteSize(type.dtype);
  });
}

BytesReceived bytesOfReduceScatter(const Mesh& mesh, const Type& type, const Sharding& to, std::int64_t groupSize) {
  if (countsByClass(mesh)) {
    return sumOf(tileClasses(mesh, type, to, to), type,
                 [groupSize](const TileClass& each) { return (groupSize - 1) * each.wanted; });
  }
  const Sharding* one[] = {&to};
  return collectBytes(mesh, usedAxes(mesh, one, {}), [&](std::int64_t device) {
    return (groupSize - 1) * liveElements(tilesOf(mesh, type, to, device)) * byteSize(type.dtype);
  });
}

}  // namespace gshard
