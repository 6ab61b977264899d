// Deriving boxes of moves: random tensors, layouts and index maps on meshes, uneven and empty parts, executed on
// buffers in memory and compared element by element with the definition.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "runtime/derive_moves.h"

namespace gshard::runtime {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// A program that is only a mesh and extents; owns what the C structs point to.
class Mesh {
 public:
  explicit Mesh(const Sizes& axes) {
    for (const std::int64_t size : axes) axes_.push_back({"a", size});
    program_.axis_count = static_cast<std::int64_t>(axes_.size());
    program_.axes = axes_.data();
    program_.devices = product(axes);
    extents_.reserve(4096);
    refs_.reserve(4096);
    shapes_.reserve(4096);
  }

  std::int64_t extent(std::int64_t size, const std::vector<int>& axes, std::int64_t rowScale = 0) {
    std::vector<gshard_rt_axis_ref> refs;
    std::int64_t parts = 1;
    for (const int axis : axes) {
      refs.push_back({axis, 1, axes_[static_cast<std::size_t>(axis)].size});
      parts *= refs.back().size;
    }
    refs_.push_back(refs);
    extents_.push_back(
        {size, (size + parts - 1) / parts, rowScale, static_cast<std::int64_t>(refs.size()), refs_.back().data()});
    program_.extents = extents_.data();
    program_.extent_count = static_cast<std::int64_t>(extents_.size());
    return program_.extent_count - 1;
  }

  // Each dim gets axes from `axes` (shuffled by the caller), each used once.
  gshard_rt_tensor tensor(const Sizes& shape, const std::vector<std::vector<int>>& splits) {
    Sizes extents;
    std::int64_t bytes = 4;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      extents.push_back(extent(shape[d], splits[d]));
      bytes *= extents_.back().part;
    }
    shapes_.push_back(shape);
    const Sizes& keptShape = shapes_.back();
    shapes_.push_back(extents);
    return {GSHARD_RT_F32, static_cast<std::int64_t>(shape.size()), keptShape.data(), shapes_.back().data(), 0, bytes};
  }

  const gshard_rt_program& program() const { return program_; }

 private:
  gshard_rt_program program_{};
  std::vector<gshard_rt_axis> axes_;
  std::vector<gshard_rt_extent> extents_;
  std::vector<std::vector<gshard_rt_axis_ref>> refs_;
  std::vector<Sizes> shapes_;
};

using Buffers = std::vector<std::vector<float>>;

// Walks the live elements of a tile: fn(global index, place in the buffer).
template <class Fn>
void forEachLive(const Tile& tile, Fn fn) {
  const Box dense{0, makeExtents(tile.live), denseStrides(makeExtents(tile.part))};
  if (tile.empty()) return;
  Sizes index(tile.live.size(), 0);
  while (true) {
    Sizes global = index;
    std::int64_t place = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      global[d] += tile.offset[d];
      place += index[d] * dense.strides.dim[d];
    }
    fn(global, place);
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == tile.live[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

std::int64_t flatten(const Sizes& index, const Sizes& shape) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

class Moves : public testing::Test {
 protected:
  std::mt19937 random_{42};

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }

  std::vector<std::vector<int>> randomSplits(std::size_t rank, int axes) {
    std::vector<std::vector<int>> splits(rank);
    std::vector<int> order(static_cast<std::size_t>(axes));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const int axis : order) {
      const std::int64_t dim = pick(-1, static_cast<std::int64_t>(rank) - 1);
      if (dim >= 0) splits[static_cast<std::size_t>(dim)].push_back(axis);
    }
    return splits;
  }

  // Executes the derived copies and compares with `expected(result index)`: operand's flat index, or -1 for untouched.
  template <class Expected>
  void check(const Mesh& mesh, const gshard_rt_transfer& transfer, Expected expected) {
    const ExtentTable table(mesh.program());
    const int devices = static_cast<int>(mesh.program().devices);
    std::vector<int> group(static_cast<std::size_t>(devices));
    std::iota(group.begin(), group.end(), 0);
    std::vector<Sizes> pairs;
    Buffers sources;
    const Sizes fromShape(transfer.from.shape, transfer.from.shape + transfer.from.rank);
    for (int device = 0; device < devices; ++device) {
      pairs.push_back(table.of(device, 0));
      sources.emplace_back(static_cast<std::size_t>(transfer.from.bytes / 4), -7.0f);  // a tail must never travel
      forEachLive(tileOf(table, transfer.from, pairs.back()), [&](const Sizes& index, std::int64_t place) {
        sources.back()[static_cast<std::size_t>(place)] = static_cast<float>(flatten(index, fromShape));
      });
    }
    for (int reader = 0; reader < devices; ++reader) {
      std::vector<float> target(static_cast<std::size_t>(transfer.to.bytes / 4), -1.0f);
      std::int64_t copied = 0;
      for (const BoxCopy& copy : deriveCopies(table, transfer, reader, group, pairs)) {
        copyBox(copy.source, reinterpret_cast<const std::byte*>(sources[static_cast<std::size_t>(copy.from)].data()),
                copy.target, reinterpret_cast<std::byte*>(target.data()), 4);
        copied += copy.target.extents.count();
      }
      std::int64_t wanted = 0;
      forEachLive(tileOf(table, transfer.to, pairs[static_cast<std::size_t>(reader)]),
                  [&](const Sizes& index, std::int64_t place) {
                    const std::int64_t operand = expected(index);
                    ASSERT_EQ(target[static_cast<std::size_t>(place)], static_cast<float>(operand));
                    wanted += operand >= 0 ? 1 : 0;
                  });
      ASSERT_EQ(copied, wanted) << "an element travels once";
    }
  }
};

TEST_F(Moves, ReshardsOfRandomLayouts) {
  for (int round = 0; round < 400; ++round) {
    Mesh mesh({pick(1, 3), pick(1, 3), pick(1, 2)});
    const std::size_t rank = static_cast<std::size_t>(pick(1, 3));
    Sizes shape;
    for (std::size_t d = 0; d < rank; ++d) shape.push_back(pick(1, 9));
    const gshard_rt_transfer transfer{mesh.tensor(shape, randomSplits(rank, 3)),
                                      mesh.tensor(shape, randomSplits(rank, 3)), nullptr, GSHARD_RT_MOVE_AFFINE};
    check(mesh, transfer, [&](const Sizes& index) { return flatten(index, shape); });
    if (HasFatalFailure()) return;
  }
}

TEST_F(Moves, AffineMapsWithStepsReversalsHolesAndTransposition) {
  for (int round = 0; round < 600; ++round) {
    Mesh mesh({pick(1, 3), pick(1, 4)});
    const std::size_t rank = static_cast<std::size_t>(pick(1, 3));
    Sizes operandShape, resultShape;
    std::vector<gshard_rt_move_dim> move;
    std::vector<int> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (std::size_t d = 0; d < rank; ++d) operandShape.push_back(pick(1, 8));
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t scale = pick(0, 1) == 0 ? pick(1, 3) : -pick(1, 3);
      move.push_back({order[d], scale, pick(-6, 12), pick(1, 3)});
      resultShape.push_back(pick(1, 12));
    }
    if (pick(0, 2) == 0) {
      move.push_back({-1, 1, 0, 1});  // a new dim: broadcast
      resultShape.push_back(pick(1, 4));
    }
    const gshard_rt_transfer transfer{mesh.tensor(operandShape, randomSplits(operandShape.size(), 2)),
                                      mesh.tensor(resultShape, randomSplits(resultShape.size(), 2)), move.data(),
                                      GSHARD_RT_MOVE_AFFINE};
    check(mesh, transfer, [&](const Sizes& index) -> std::int64_t {
      Sizes operand(operandShape.size(), 0);
      for (std::size_t d = 0; d < move.size(); ++d) {
        if (move[d].operand_dim < 0) continue;
        const std::int64_t value = move[d].scale * index[d] + move[d].offset;
        if (value % move[d].divide != 0) return -1;
        const std::size_t at = static_cast<std::size_t>(move[d].operand_dim);
        operand[at] = value / move[d].divide;
        if (operand[at] < 0 || operand[at] >= operandShape[at]) return -1;
      }
      return flatten(operand, operandShape);
    });
    if (HasFatalFailure()) return;
  }
}

TEST_F(Moves, ReshapesBetweenAnyLayouts) {
  const std::vector<std::vector<Sizes>> families = {{{24}, {4, 6}, {6, 4}, {2, 3, 4}, {3, 8}, {1, 24, 1}, {2, 12}},
                                                    {{7, 5}, {35}, {5, 7}, {1, 35}},
                                                    {{3, 1, 2}, {6}, {2, 3}},
                                                    {{1}, {}, {1, 1}}};
  for (int round = 0; round < 800; ++round) {
    Mesh mesh({pick(1, 3), pick(1, 4)});
    const std::vector<Sizes>& family = families[static_cast<std::size_t>(pick(0, 3))];
    const Sizes from = family[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(family.size()) - 1))];
    const Sizes to = family[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(family.size()) - 1))];
    const gshard_rt_transfer transfer{mesh.tensor(from, randomSplits(from.size(), 2)),
                                      mesh.tensor(to, randomSplits(to.size(), 2)), nullptr, GSHARD_RT_MOVE_RESHAPE};
    check(mesh, transfer, [&](const Sizes& index) { return flatten(index, to); });
    if (HasFatalFailure()) return;
  }
}

TEST_F(Moves, ReshapeOfALargeTileIsAFewCopies) {
  Mesh mesh({4});
  const gshard_rt_transfer transfer{mesh.tensor({4096, 64}, {{0}, {}}), mesh.tensor({4096, 8, 8}, {{}, {0}, {}}),
                                    nullptr, GSHARD_RT_MOVE_RESHAPE};
  const ExtentTable table(mesh.program());
  std::vector<Sizes> pairs;
  for (int device = 0; device < 4; ++device) pairs.push_back(table.of(device, 0));
  EXPECT_EQ(deriveCopies(table, transfer, 1, {0, 1, 2, 3}, pairs).size(), 4u);
}

TEST_F(Moves, SubAxesAndGroups) {
  // One axis of 4 as two pieces of 2: digits (coordinate / 2) % 2 and coordinate % 2.
  Mesh mesh({4, 3});
  const ExtentTable table(mesh.program());
  const gshard_rt_axis_ref major{0, 1, 2}, minor{0, 2, 2}, other{1, 1, 3};
  EXPECT_EQ(table.digit(3 * 3 + 1, major), 1);
  EXPECT_EQ(table.digit(2 * 3 + 1, minor), 0);
  EXPECT_EQ(table.group(4, &minor, 1), (std::vector<int>{1, 4}));
  EXPECT_EQ(table.group(4, &major, 1), (std::vector<int>{4, 10}));
  const gshard_rt_axis_ref both[] = {other, minor};
  EXPECT_EQ(table.group(4, both, 2), (std::vector<int>{0, 3, 1, 4, 2, 5}));
}

}  // namespace
}  // namespace gshard::runtime
