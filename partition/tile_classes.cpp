// Tile sizes by classes of devices; see the header.
#include "partition/tile_classes.h"

#include <algorithm>
#include <map>

#include "partition/axis_list.h"

namespace gshard {

namespace {

using Sizes = std::pair<std::int64_t, std::int64_t>;  // wanted, held
using Histogram = std::map<Sizes, std::int64_t>;

// Dims that share a mesh axis, before or after, and the axes they use.
struct DimGroup {
  std::vector<std::size_t> dims;
  std::vector<bool> axes;
};

std::vector<DimGroup> groupsOf(const Mesh& mesh, const Sharding& from, const Sharding& to) {
  std::vector<DimGroup> groups;
  for (std::size_t dim = 0; dim < from.dims.size(); ++dim) {
    DimGroup group{{dim}, std::vector<bool>(mesh.axes.size(), false)};
    for (const AxisRef& ref : from.dims[dim]) group.axes[static_cast<std::size_t>(ref.axis)] = true;
    for (const AxisRef& ref : to.dims[dim]) group.axes[static_cast<std::size_t>(ref.axis)] = true;
    for (std::size_t g = 0; g < groups.size();) {
      bool shared = false;
      for (std::size_t a = 0; a < group.axes.size(); ++a) shared = shared || (group.axes[a] && groups[g].axes[a]);
      if (!shared) {
        ++g;
        continue;
      }
      group.dims.insert(group.dims.end(), groups[g].dims.begin(), groups[g].dims.end());
      for (std::size_t a = 0; a < group.axes.size(); ++a) group.axes[a] = group.axes[a] || groups[g].axes[a];
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(g));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::int64_t indexOver(const Mesh& mesh, const std::vector<AxisRef>& axes,
                       const std::vector<std::int64_t>& coordinates) {
  std::int64_t index = 0;
  for (const AxisRef& ref : axes) {
    const auto axis = static_cast<std::size_t>(ref.axis);
    const std::int64_t minor = mesh.axes[axis].size / (ref.pre * ref.size);
    index = index * ref.size + coordinates[axis] / minor % ref.size;
  }
  return index;
}

// When every dim is cut evenly and one of its two splits refines the other, all devices are alike.
std::optional<Sizes> evenSizes(const Type& type, const Sharding& from, const Sharding& to, const DimGroup& group) {
  Sizes sizes{1, 1};
  for (const std::size_t dim : group.dims) {
    const std::int64_t before = productOf(from.dims[dim]), after = productOf(to.dims[dim]), size = type.shape[dim];
    if (size % before != 0 || size % after != 0) return std::nullopt;
    if (!isPrefix(from.dims[dim], to.dims[dim]) && !isPrefix(to.dims[dim], from.dims[dim])) return std::nullopt;
    sizes.first *= size / after;
    sizes.second *= size / std::max(before, after);
  }
  return sizes;
}

std::int64_t devicesOf(const Mesh& mesh, const DimGroup& group) {
  std::int64_t devices = 1;
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) devices *= group.axes[a] ? mesh.axes[a].size : 1;
  return devices;
}

Histogram histogramOf(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to,
                      const DimGroup& group) {
  if (const std::optional<Sizes> sizes = evenSizes(type, from, to, group)) return {{*sizes, devicesOf(mesh, group)}};
  Histogram histogram;
  std::vector<std::int64_t> coordinates(mesh.axes.size(), 0);
  for (bool more = true; more;) {
    Sizes sizes{1, 1};
    for (const std::size_t dim : group.dims) {
      const Tile before =
          tileOf(type.shape[dim], productOf(from.dims[dim]), indexOver(mesh, from.dims[dim], coordinates));
      const Tile after = tileOf(type.shape[dim], productOf(to.dims[dim]), indexOver(mesh, to.dims[dim], coordinates));
      const std::int64_t low = std::max(before.offset, after.offset);
      const std::int64_t high = std::min(before.offset + before.live, after.offset + after.live);
      sizes.first *= after.live;
      sizes.second *= std::max<std::int64_t>(0, high - low);
    }
    ++histogram[sizes];
    more = false;
    for (std::size_t a = mesh.axes.size(); a-- > 0 && !more;) {
      if (!group.axes[a]) continue;
      more = ++coordinates[a] < mesh.axes[a].size;
      if (!more) coordinates[a] = 0;
    }
  }
  return histogram;
}

}  // namespace

std::vector<TileClass> tileClasses(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to) {
  Histogram all{{{1, 1}, 1}};
  std::vector<bool> used(mesh.axes.size(), false);
  for (const DimGroup& group : groupsOf(mesh, from, to)) {
    Histogram next;
    const Histogram own = histogramOf(mesh, type, from, to, group);
    for (const auto& [a, countA] : all) {
      for (const auto& [b, countB] : own) next[{a.first * b.first, a.second * b.second}] += countA * countB;
    }
    all = std::move(next);
    for (std::size_t a = 0; a < used.size(); ++a) used[a] = used[a] || group.axes[a];
  }
  std::int64_t copies = 1;
  for (std::size_t a = 0; a < used.size(); ++a) copies *= used[a] ? 1 : mesh.axes[a].size;
  std::vector<TileClass> result;
  for (const auto& [sizes, count] : all) result.push_back({sizes.first, sizes.second, count * copies});
  return result;
}

}  // namespace gshard
