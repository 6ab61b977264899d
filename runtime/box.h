// Boxes: rectangular, strided parts of buffers in arenas. Every collective is boxes copied or reduced, so this is the
// one place that walks uneven tiles.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard::runtime {

constexpr int kMaxRank = 12;

struct Extents {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> dim{};

  std::int64_t count() const;
};

Extents makeExtents(const std::vector<std::int64_t>& dims);

// Element strides of a dense row-major buffer of these extents.
Extents denseStrides(const Extents& shape);

// A box in an arena: `offset` bytes from its base, strides in elements.
struct Box {
  std::int64_t offset = 0;
  Extents extents;
  Extents strides;
};

// Joins neighbouring dims that are contiguous in BOTH boxes, drops dims of extent 1: fewer, longer rows. The boxes
// have equal extents. An empty box becomes rank 1 with extent 0.
void coalesce(Box& a, Box& b);

// Copies elements of `elementSize` bytes between two boxes of equal extents (coalesced or not).
void copyBox(const Box& from, const std::byte* fromBase, const Box& to, std::byte* toBase, std::int64_t elementSize);

// Dense copies of a box, for messages: row-major order of the box's own index.
void packBox(const Box& from, const std::byte* fromBase, std::byte* out, std::int64_t elementSize);
void unpackBox(const Box& to, std::byte* toBase, const std::byte* in, std::int64_t elementSize);

// Calls fn(offsetA, offsetB, length, strideA, strideB) for each innermost row of two boxes of equal extents, restricted
// to the flat (row-major) element range [begin, end); offsets and strides in elements, relative to the boxes' offsets.
template <class Fn>
void forEachRow(const Box& a, const Box& b, std::int64_t begin, std::int64_t end, Fn&& fn) {
  if (begin >= end) return;
  const int rank = a.extents.rank;
  if (rank == 0) {
    fn(std::int64_t{0}, std::int64_t{0}, std::int64_t{1}, std::int64_t{1}, std::int64_t{1});
    return;
  }
  const std::int64_t rowLength = a.extents.dim[rank - 1];
  if (rowLength == 0) return;
  std::array<std::int64_t, kMaxRank> index{};
  std::int64_t offsetA = 0;
  std::int64_t offsetB = 0;
  std::int64_t row = begin / rowLength;
  for (int d = rank - 2; d >= 0; --d) {
    index[d] = row % a.extents.dim[d];
    row /= a.extents.dim[d];
    offsetA += index[d] * a.strides.dim[d];
    offsetB += index[d] * b.strides.dim[d];
  }
  std::int64_t column = begin % rowLength;
  std::int64_t left = end - begin;
  const std::int64_t strideA = a.strides.dim[rank - 1];
  const std::int64_t strideB = b.strides.dim[rank - 1];
  while (true) {
    const std::int64_t length = left < rowLength - column ? left : rowLength - column;
    fn(offsetA + column * strideA, offsetB + column * strideB, length, strideA, strideB);
    left -= length;
    if (left == 0) return;
    column = 0;
    for (int d = rank - 2; d >= 0; --d) {
      offsetA += a.strides.dim[d];
      offsetB += b.strides.dim[d];
      if (++index[d] < a.extents.dim[d]) break;
      offsetA -= a.strides.dim[d] * a.extents.dim[d];
      offsetB -= b.strides.dim[d] * a.extents.dim[d];
      index[d] = 0;
    }
  }
}

}  // namespace gshard::runtime
