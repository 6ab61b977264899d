// Parts of dims; see extents.h.
#include "runtime/extents.h"

#include <algorithm>

namespace gshard::runtime {

std::int64_t ExtentTable::axisStride(std::int64_t axis) const {
  std::int64_t stride = 1;
  for (std::int64_t later = axis + 1; later < program_.axis_count; ++later) stride *= program_.axes[later].size;
  return stride;
}

static std::int64_t postOf(const gshard_rt_program& program, const gshard_rt_axis_ref& piece) {
  return program.axes[piece.axis].size / (piece.pre * piece.size);
}

std::int64_t ExtentTable::digit(int device, const gshard_rt_axis_ref& piece) const {
  const std::int64_t coordinate = device / axisStride(piece.axis) % program_.axes[piece.axis].size;
  return coordinate / postOf(program_, piece) % piece.size;
}

int ExtentTable::base(int device, const gshard_rt_axis_ref* axes, std::int64_t count) const {
  std::int64_t base = device;
  for (std::int64_t i = 0; i < count; ++i) {
    base -= digit(device, axes[i]) * postOf(program_, axes[i]) * axisStride(axes[i].axis);
  }
  return static_cast<int>(base);
}

std::vector<int> ExtentTable::group(int device, const gshard_rt_axis_ref* axes, std::int64_t count) const {
  std::int64_t members = 1;
  for (std::int64_t i = 0; i < count; ++i) members *= axes[i].size;
  const int first = base(device, axes, count);
  std::vector<int> group;
  for (std::int64_t flat = 0; flat < members; ++flat) {
    std::int64_t member = first;
    std::int64_t rest = flat;
    for (std::int64_t i = count - 1; i >= 0; --i) {
      member += rest % axes[i].size * postOf(program_, axes[i]) * axisStride(axes[i].axis);
      rest /= axes[i].size;
    }
    group.push_back(static_cast<int>(member));
  }
  return group;
}

void ExtentTable::compute(int device, std::int64_t rows, std::int64_t* pairs) const {
  for (std::int64_t e = 0; e < program_.extent_count; ++e) {
    const gshard_rt_extent& extent = program_.extents[e];
    std::int64_t index = 0;
    for (std::int64_t i = 0; i < extent.axis_count; ++i) {
      index = index * extent.axes[i].size + digit(device, extent.axes[i]);
    }
    const std::int64_t size = extent.row_scale != 0 ? rows * extent.row_scale : extent.size;
    const std::int64_t begin = std::min(extent.part * index, size);
    pairs[2 * e] = begin;
    pairs[2 * e + 1] = std::min(extent.part, size - begin);
  }
}

std::vector<std::int64_t> ExtentTable::of(int device, std::int64_t rows) const {
  std::vector<std::int64_t> pairs(static_cast<std::size_t>(2 * program_.extent_count));
  compute(device, rows, pairs.data());
  return pairs;
}

bool ExtentTable::dependsOnRows(const gshard_rt_tensor& tensor) const {
  for (std::int64_t d = 0; d < tensor.rank; ++d) {
    if (program_.extents[tensor.extents[d]].row_scale != 0) return true;
  }
  return false;
}

bool Tile::empty() const {
  return std::find(live.begin(), live.end(), 0) != live.end();
}

Tile tileOf(const ExtentTable& table, const gshard_rt_tensor& tensor, const std::vector<std::int64_t>& pairs) {
  Tile tile;
  for (std::int64_t d = 0; d < tensor.rank; ++d) {
    const std::int64_t e = tensor.extents[d];
    tile.offset.push_back(pairs[static_cast<std::size_t>(2 * e)]);
    tile.live.push_back(pairs[static_cast<std::size_t>(2 * e + 1)]);
    tile.part.push_back(table.part(e));
  }
  return tile;
}

}  // namespace gshard::runtime
