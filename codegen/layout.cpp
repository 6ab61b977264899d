// Local shapes and extents: see layout.h.
#include "codegen/layout.h"

namespace gshard {

int ExtentTable::intern(const Extent& extent) {
  const auto [it, isNew] = numbers_.emplace(extent, static_cast<int>(extents_.size()));
  if (isNew) extents_.push_back(extent);
  return it->second;
}

std::int64_t Layout::elements() const {
  std::int64_t count = 1;
  for (const LocalDim& dim : dims) count *= dim.size;
  return count;
}

std::vector<std::int64_t> Layout::strides() const {
  std::vector<std::int64_t> result(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) result[i - 1] = result[i] * dims[i].size;
  return result;
}

std::vector<std::int64_t> Layout::globalStrides() const {
  std::vector<std::int64_t> result(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) result[i - 1] = result[i] * dims[i].global;
  return result;
}

bool Layout::allFixed() const {
  for (const LocalDim& dim : dims) {
    if (!dim.fixed) return false;
  }
  return true;
}

static Layout layoutOf(const Type& type, const std::optional<Sharding>& sharding, std::int64_t rowDim,
                       std::int64_t rows, ExtentTable& extents) {
  Layout layout;
  layout.dtype = type.dtype;
  for (std::int64_t i = 0; i < type.rank(); ++i) {
    const std::int64_t size = type.shape[static_cast<std::size_t>(i)];
    Extent extent;
    extent.size = size;
    if (sharding) extent.axes = sharding->dims[static_cast<std::size_t>(i)];
    const std::int64_t parts = productOf(extent.axes);
    extent.part = partSize(size, parts);
    if (i == rowDim && rows > 0 && size % rows == 0) extent.rowScale = size / rows;
    LocalDim dim;
    dim.size = extent.part;
    dim.global = size;
    dim.split = parts > 1;
    dim.fixed = extent.rowScale == 0 && extent.part * parts == size;
    dim.extent = extents.intern(extent);
    layout.dims.push_back(dim);
  }
  return layout;
}

Layout layoutOf(const Function& function, ValueId value, ExtentTable& extents) {
  const Value& v = function.value(value);
  return layoutOf(v.type, v.sharding, v.rowDim, rowsVary(function) ? function.rows : 0, extents);
}

Layout layoutOf(const Type& type, const std::optional<Sharding>& sharding, ExtentTable& extents) {
  return layoutOf(type, sharding, -1, 0, extents);
}

}  // namespace gshard
