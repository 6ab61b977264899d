// Bytes that devices receive in a reshard, counted exactly on live elements. Apart from the planner's search: the plan, the
// cost model and the tests use these as well. Only the axes that a sharding names are walked: copies behave alike.
#include <algorithm>

#include "partition/reshard.h"
#include "support/check.h"

namespace gshard {

namespace {

// Calls visit(device) for one device per combination of coordinates of the axes that are used, and returns how many devices
// each of them stands for.
template <class Visit>
std::int64_t forEachDistinctDevice(const Mesh& mesh, std::span<const Sharding* const> shardings, std::span<const AxisRef> extra,
                                   Visit visit) {
  std::vector<bool> used(mesh.axes.size(), false);
  for (const Sharding* sharding : shardings) {
    for (const auto& dim : sharding->dims) {
      for (const AxisRef& ref : dim) used[static_cast<std::size_t>(ref.axis)] = true;
    }
  }
  for (const AxisRef& ref : extra) used[static_cast<std::size_t>(ref.axis)] = true;
  std::vector<std::int64_t> coordinates(mesh.axes.size(), 0);
  std::int64_t copies = 1;
  for (std::size_t a = 0; a < used.size(); ++a) {
    if (!used[a]) copies *= mesh.axes[a].size;
  }
  while (true) {
    visit(mesh.deviceAt(coordinates));
    for (std::size_t a = used.size();;) {
      if (a == 0) return copies;
      --a;
      if (!used[a]) continue;
      if (++coordinates[a] < mesh.axes[a].size) break;
      coordinates[a] = 0;
    }
  }
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

bool tilesNest(std::int64_t dim, std::int64_t a, std::int64_t b) {
  return a == 1 || b == 1 || b * partSize(dim, a * b) == partSize(dim, a);
}

BytesReceived bytesOfMove(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to) {
  BytesReceived bytes;
  const Sharding* both[] = {&from, &to};
  const std::int64_t copies = forEachDistinctDevice(mesh, both, {}, [&](std::int64_t device) {
    const std::vector<Tile> held = tilesOf(mesh, type, from, device);
    const std::vector<Tile> wanted = tilesOf(mesh, type, to, device);
    const std::int64_t received = (liveElements(wanted) - overlapElements(held, wanted)) * byteSize(type.dtype);
    bytes.max = std::max(bytes.max, received);
    bytes.total += received;
  });
  bytes.total *= copies;
  return bytes;
}

BytesReceived bytesOfAllReduce(const Mesh& mesh, const Type& type, const Sharding& sharding, std::span<const AxisRef> axes) {
  const std::int64_t n = productOf(axes);
  BytesReceived bytes;
  const Sharding* one[] = {&sharding};
  const std::int64_t copies = forEachDistinctDevice(mesh, one, axes, [&](std::int64_t device) {
    const std::int64_t count = liveElements(tilesOf(mesh, type, sharding, device));
    const std::int64_t own = tileOf(count, n, partIndex(mesh, axes, device)).live;
    const std::int64_t received = ((n - 1) * own + (count - own)) * byteSize(type.dtype);
    bytes.max = std::max(bytes.max, received);
    bytes.total += received;
  });
  bytes.total *= copies;
  return bytes;
}

BytesReceived bytesOfReduceScatter(const Mesh& mesh, const Type& type, const Sharding& to, std::int64_t groupSize) {
  BytesReceived bytes;
  const Sharding* one[] = {&to};
  const std::int64_t copies = forEachDistinctDevice(mesh, one, {}, [&](std::int64_t device) {
    const std::int64_t received = (groupSize - 1) * liveElements(tilesOf(mesh, type, to, device)) * byteSize(type.dtype);
    bytes.max = std::max(bytes.max, received);
    bytes.total += received;
  });
  bytes.total *= copies;
  return bytes;
}

}  // namespace gshard
