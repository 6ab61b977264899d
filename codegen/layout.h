// Tiles as codegen sees them: the local (ceil) shape of every value, and the table of extents from which the runtime
// works out where the tile of a device begins and how much of it is live.
#pragma once

#include <map>
#include <tuple>

#include "ir/module.h"

namespace gshard {

// One distinct (size, axes, rows) of a dim, as gshard_rt_extent.
struct Extent {
  std::int64_t size = 1;      // global; of a row dim: of one block
  std::int64_t part = 1;      // ceil(size / parts)
  std::int64_t rowScale = 0;  // row dims: elements per row; else 0
  std::vector<AxisRef> axes;
  friend auto operator<=>(const Extent&, const Extent&) = default;
};

// Extents of a program, numbered in order of first use.
class ExtentTable {
 public:
  int intern(const Extent& extent);
  const std::vector<Extent>& extents() const { return extents_; }

 private:
  std::vector<Extent> extents_;
  std::map<Extent, int> numbers_;
};

struct LocalDim {
  std::int64_t size = 1;  // of the buffer
  std::int64_t global = 1;
  int extent = -1;     // number in the ExtentTable
  bool fixed = true;   // every device has `size` live elements, always
  bool split = false;  // the tile may begin at another index than 0
};

struct Layout {
  DType dtype = DType::F32;
  std::vector<LocalDim> dims;

  std::int64_t rank() const { return static_cast<std::int64_t>(dims.size()); }
  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * byteSize(dtype); }
  std::vector<std::int64_t> strides() const;  // in elements, row-major
  std::vector<std::int64_t> globalStrides() const;
  bool allFixed() const;
};

Layout layoutOf(const Function& function, ValueId value, ExtentTable& extents);
// Of a type that belongs to no function: parameters and states.
Layout layoutOf(const Type& type, const std::optional<Sharding>& sharding, ExtentTable& extents);

}  // namespace gshard
