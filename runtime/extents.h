// Where each device's part of every dim begins and how long it is. Computed for any device, not only the own one, since
// an exchange is derived from the tiles of all; recomputed when a short block of rows arrives.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/abi.h"

namespace gshard::runtime {

class ExtentTable {
 public:
  explicit ExtentTable(const gshard_rt_program& program) : program_(program) {}

  // Pairs (global offset, live size) of all extents of `device`, with `rows` rows in the block (0: none).
  std::vector<std::int64_t> of(int device, std::int64_t rows) const;
  void compute(int device, std::int64_t rows, std::int64_t* pairs) const;

  std::int64_t part(std::int64_t extent) const { return program_.extents[extent].part; }
  bool dependsOnRows(const gshard_rt_tensor& tensor) const;

  // The digit of `device` that an axis piece names.
  std::int64_t digit(int device, const gshard_rt_axis_ref& piece) const;

  // The device with `device`'s digits but 0 in these; equal for all that differ in these only.
  int base(int device, const gshard_rt_axis_ref* axes, std::int64_t count) const;

  // Devices that differ from `device` in these digits only, in flat order (first axis major).
  std::vector<int> group(int device, const gshard_rt_axis_ref* axes, std::int64_t count) const;

 private:
  std::int64_t axisStride(std::int64_t axis) const;

  const gshard_rt_program& program_;
};

// A device's tile of a tensor, in global indices.
struct Tile {
  std::vector<std::int64_t> offset;
  std::vector<std::int64_t> live;
  std::vector<std::int64_t> part;  // the buffer's shape

  bool empty() const;
};
Tile tileOf(const ExtentTable& table, const gshard_rt_tensor& tensor, const std::vector<std::int64_t>& pairs);

}  // namespace gshard::runtime
