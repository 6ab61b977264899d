// Collectives of every kind on uneven parts against a naive reference, written once for threads and for MPI ranks.
// A header, because the MPI test is a program of its own.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "runtime/random_values.h"
#include "runtime/transport.h"

namespace gshard::runtime::collective_check {

// Small integers, so that sums are exact, or arbitrary floats, whose sum in rank order is compared bit by bit.
inline float valueAt(int device, std::int64_t index, bool exact) {
  const random_values::Stream stream{7, static_cast<random_values::Word>(device), exact ? 0u : 1u};
  const float uniform = random_values::uniformF32(stream, static_cast<random_values::Wide>(index));
  return exact ? static_cast<float>(static_cast<int>(uniform * 100.0f)) : uniform * 3.7f - 1.9f;
}

inline std::int64_t partOf(std::int64_t size, int parts) {
  return (size + parts - 1) / parts;
}
inline std::int64_t liveOf(std::int64_t size, int parts, int index) {
  const std::int64_t part = partOf(size, parts);
  return std::min(part, size - std::min(size, part * index));
}

inline Box boxOf(std::int64_t offset, const std::vector<std::int64_t>& extents,
                 const std::vector<std::int64_t>& buffer) {
  return Box{offset, makeExtents(extents), denseStrides(makeExtents(buffer))};
}

inline float* floats(Transport& transport, std::int64_t offset) {
  return reinterpret_cast<float*>(transport.arena() + offset);
}

constexpr std::int64_t kInput = 0;
constexpr std::int64_t kOutput = 1 << 16;
constexpr std::int64_t kArena = 1 << 18;

// Each returns "" or what went wrong on this device. All devices of the transport form the group.
inline std::string checkAllReduce(Transport& transport, std::int64_t rows, std::int64_t columns, std::int64_t pitch) {
  const int n = transport.size();
  float* data = floats(transport, kInput);
  for (std::int64_t i = 0; i < rows * pitch; ++i) data[i] = valueAt(transport.rank(), i, false);
  ReducePlan plan;
  for (int device = 0; device < n; ++device) plan.group.push_back(device);
  ReducePart part;
  part.source = part.target = boxOf(kInput, {rows, columns}, {rows, pitch});
  plan.parts.push_back(part);
  const std::int64_t before = transport.bytesReceived();
  if (!transport.runReduce(transport.prepareReduce(plan))) return "aborted";
  const std::int64_t count = rows * columns;
  const std::int64_t own = liveOf(count, n, transport.rank());
  if (transport.bytesReceived() - before != 4 * ((n - 1) * own + count - own)) return "all_reduce: bytes";
  for (std::int64_t i = 0; i < rows * pitch; ++i) {
    float expected = valueAt(0, i, false);
    for (int device = 1; device < n; ++device) expected += valueAt(device, i, false);
    if (i % pitch >= columns) expected = valueAt(transport.rank(), i, false);  // tails stay as they are
    if (std::memcmp(&expected, &data[i], 4) != 0) return "all_reduce: element " + std::to_string(i);
  }
  return "";
}

inline std::string checkReduceScatter(Transport& transport, std::int64_t rows, std::int64_t columns) {
  const int n = transport.size();
  const std::int64_t part = partOf(rows, n);
  float* data = floats(transport, kInput);
  for (std::int64_t i = 0; i < rows * columns; ++i) data[i] = valueAt(transport.rank(), i, false);
  ReducePlan plan;
  for (int device = 0; device < n; ++device) plan.group.push_back(device);
  ReducePart reduce;
  reduce.source = boxOf(kInput, {rows, columns}, {rows, columns});
  reduce.target = boxOf(kOutput, {part, columns}, {part, columns});
  reduce.scatterDim = 0;
  reduce.chunk = part;
  plan.parts.push_back(reduce);
  const std::int64_t before = transport.bytesReceived();
  if (!transport.runReduce(transport.prepareReduce(plan))) return "aborted";
  const std::int64_t live = liveOf(rows, n, transport.rank());
  if (transport.bytesReceived() - before != 4 * (n - 1) * live * columns) return "reduce_scatter: bytes";
  for (std::int64_t i = 0; i < live * columns; ++i) {
    const std::int64_t global = transport.rank() * part * columns + i;
    float expected = valueAt(0, global, false);
    for (int device = 1; device < n; ++device) expected += valueAt(device, global, false);
    if (std::memcmp(&expected, &floats(transport, kOutput)[i], 4) != 0) return "reduce_scatter: " + std::to_string(i);
  }
  return "";
}

// Tiles split by columns become tiles split by rows: every device reads a box from every other.
inline std::string checkAllToAll(Transport& transport, std::int64_t rows, std::int64_t columns) {
  const int n = transport.size();
  const int me = transport.rank();
  const std::int64_t rowPart = partOf(rows, n);
  const std::int64_t columnPart = partOf(columns, n);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < liveOf(columns, n, me); ++c) {
      floats(transport, kInput)[r * columnPart + c] = valueAt(0, r * columns + me * columnPart + c, true);
    }
  }
  MovePlan plan;
  const std::int64_t myRows = liveOf(rows, n, me);
  std::int64_t expectedBytes = 0;
  for (int device = 0; device < n; ++device) {
    plan.group.push_back(device);
    const std::int64_t theirColumns = liveOf(columns, n, device);
    BoxCopy copy;
    copy.from = device;
    copy.source = boxOf(kInput + 4 * me * rowPart * columnPart, {myRows, theirColumns}, {rows, columnPart});
    copy.target = boxOf(kOutput + 4 * device * columnPart, {myRows, theirColumns}, {rowPart, n * columnPart});
    if (myRows * theirColumns == 0) continue;
    plan.copies.push_back(copy);
    if (device != me) expectedBytes += 4 * myRows * theirColumns;
  }
  const std::int64_t before = transport.bytesReceived();
  if (!transport.runMove(transport.prepareMove(plan))) return "aborted";
  if (transport.bytesReceived() - before != expectedBytes) return "all_to_all: bytes";
  for (std::int64_t r = 0; r < myRows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const float found = floats(transport, kOutput)[r * n * columnPart + c];
      if (found != valueAt(0, (me * rowPart + r) * columns + c, true)) return "all_to_all: " + std::to_string(c);
    }
  }
  return "";
}

inline std::string checkAgree(Transport& transport) {
  const std::int64_t mine = 100 + transport.rank();
  std::vector<std::int64_t> all(static_cast<std::size_t>(transport.size()));
  if (!transport.agree(&mine, sizeof mine, all.data())) return "aborted";
  for (int device = 0; device < transport.size(); ++device) {
    if (all[static_cast<std::size_t>(device)] != 100 + device) return "agree";
  }
  floats(transport, kInput)[0] = static_cast<float>(transport.rank());
  std::vector<std::vector<std::byte>> tiles;
  if (!transport.collect(kInput, 4, tiles)) return "aborted";
  if (transport.rank() != 0) return tiles.empty() ? "" : "collect: not rank 0";
  for (int device = 0; device < transport.size(); ++device) {
    float value = -1;
    std::memcpy(&value, tiles[static_cast<std::size_t>(device)].data(), 4);
    if (value != static_cast<float>(device)) return "collect";
  }
  return "";
}

inline std::string checkAll(Transport& transport) {
  const std::vector<std::function<std::string(Transport&)>> checks = {
      [](Transport& t) { return checkAllReduce(t, 1, 1, 1); },
      [](Transport& t) { return checkAllReduce(t, 7, 5, 8); },
      [](Transport& t) { return checkAllReduce(t, 3, 3000, 3000); },
      [](Transport& t) { return checkReduceScatter(t, 7, 3); },
      [](Transport& t) { return checkReduceScatter(t, 2, 5); },  // empty parts on 3 and more
      [](Transport& t) { return checkAllToAll(t, 7, 10); },
      [](Transport& t) { return checkAllToAll(t, 16, 3); },
      [](Transport& t) { return checkAgree(t); },
  };
  for (int round = 0; round < 3; ++round) {
    for (const auto& check : checks) {
      const std::string fault = check(transport);
      if (!fault.empty()) return fault + " on device " + std::to_string(transport.rank());
      if (!transport.barrier()) return "aborted";  // a device still compares what the next check overwrites
    }
  }
  return "";
}

}  // namespace gshard::runtime::collective_check
