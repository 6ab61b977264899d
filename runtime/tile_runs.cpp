// Runs of tiles and conversion of elements; see tile_runs.h.
#include "runtime/tile_runs.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace gshard::runtime {
namespace {

template <class From>
struct Load {
  static From apply(const std::byte* data) {
    From value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
};

// `count` adjacent elements; integers were checked to fit when the array was bound.
template <class From, class To, class Read, class Write>
void convertRun(const std::byte* from, std::byte* to, std::int64_t count, Read read, Write write) {
  for (std::int64_t i = 0; i < count; ++i) {
    const To value = write(read(Load<From>::apply(from + i * static_cast<std::int64_t>(sizeof(From)))));
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof(To)), &value, sizeof value);
  }
}

template <class From, class Read>
void convertFrom(const std::byte* from, ElementType type, std::byte* to, std::int64_t count, Read read) {
  using Value = decltype(read(From{}));
  switch (type) {
    case ElementType::F32:
      return convertRun<From, float>(from, to, count, read, [](Value v) { return static_cast<float>(v); });
    case ElementType::F64:
      return convertRun<From, double>(from, to, count, read, [](Value v) { return static_cast<double>(v); });
    case ElementType::BF16:
      return convertRun<From, std::uint16_t>(from, to, count, read,
                                             [](Value v) { return floatToBfloat(roundedToOdd(v)); });
    case ElementType::F16:
      return convertRun<From, std::uint16_t>(from, to, count, read,
                                             [](Value v) { return floatToHalf(roundedToOdd(v)); });
    case ElementType::I32:
      return convertRun<From, std::int32_t>(from, to, count, read,
                                            [](Value v) { return static_cast<std::int32_t>(v); });
    case ElementType::I64:
      return convertRun<From, std::int64_t>(from, to, count, read,
                                            [](Value v) { return static_cast<std::int64_t>(v); });
    case ElementType::U8:
      return convertRun<From, std::uint8_t>(from, to, count, read,
                                            [](Value v) { return static_cast<std::uint8_t>(v); });
    case ElementType::Bool:
      return convertRun<From, std::uint8_t>(from, to, count, read,
                                            [](Value v) { return static_cast<std::uint8_t>(v != Value{0}); });
  }
}

}  // namespace

void convertElements(ElementType fromType, const std::byte* from, ElementType toType, std::byte* to,
                     std::int64_t count) {
  if (fromType == toType) {
    std::memcpy(to, from, static_cast<std::size_t>(count * elementBytes(toType)));
    return;
  }
  switch (fromType) {
    case ElementType::F32:
      return convertFrom<float>(from, toType, to, count, [](float v) { return v; });
    case ElementType::F64:
      return convertFrom<double>(from, toType, to, count, [](double v) { return v; });
    case ElementType::BF16:
      return convertFrom<std::uint16_t>(from, toType, to, count, [](std::uint16_t v) { return bfloatToFloat(v); });
    case ElementType::F16:
      return convertFrom<std::uint16_t>(from, toType, to, count, [](std::uint16_t v) { return halfToFloat(v); });
    case ElementType::I32:
      return convertFrom<std::int32_t>(from, toType, to, count, [](std::int32_t v) { return v; });
    case ElementType::I64:
      return convertFrom<std::int64_t>(from, toType, to, count, [](std::int64_t v) { return v; });
    case ElementType::U8:
    case ElementType::Bool:
      return convertFrom<std::uint8_t>(from, toType, to, count, [](std::uint8_t v) { return v; });
  }
}

std::vector<TileRun> tileRuns(const Tile& tile, const std::vector<std::int64_t>& shape, std::size_t firstDim) {
  std::vector<TileRun> runs;
  std::size_t last = shape.size();
  std::int64_t count = 1;
  while (last > firstDim) {
    --last;
    count *= tile.live[last];
    if (tile.live[last] != shape[last] || tile.part[last] != shape[last]) break;
  }
  for (std::size_t d = firstDim; d < shape.size(); ++d) {
    if (tile.live[d] == 0) return runs;
  }
  std::vector<std::int64_t> weight(shape.size() + 1, 1);
  std::vector<std::int64_t> stride(shape.size() + 1, 1);
  for (std::size_t d = shape.size(); d-- > firstDim;) {
    weight[d] = weight[d + 1] * shape[d];
    stride[d] = stride[d + 1] * tile.part[d];
  }
  std::vector<std::int64_t> index(shape.size(), 0);
  while (true) {
    TileRun run{0, 0, count};
    for (std::size_t d = firstDim; d < shape.size(); ++d) {
      run.flat += (tile.offset[d] + index[d]) * weight[d + 1];
      run.local += index[d] * stride[d + 1];
    }
    runs.push_back(run);
    std::size_t d = last;
    while (d > firstDim && ++index[d - 1] == tile.live[d - 1]) index[--d] = 0;
    if (d == firstDim) return runs;
  }
}

void wholeToTile(const Tile& tile, const std::vector<std::int64_t>& shape, ElementType fromType, const ReadPart& read,
                 ElementType toType, std::byte* buffer, std::int64_t partBytes) {
  constexpr std::int64_t kGapBytes = 1 << 14;  // runs that are nearer are read as one part
  const std::int64_t size = elementBytes(fromType), most = std::max<std::int64_t>(partBytes / size, 1);
  const std::vector<TileRun> runs = tileRuns(tile, shape, 0);
  const auto convert = [&](const std::byte* part, std::int64_t first, const TileRun& run) {
    convertElements(fromType, part + (run.flat - first) * size, toType, buffer + run.local * elementBytes(toType),
                    run.count);
  };
  for (std::size_t i = 0; i < runs.size();) {
    if (runs[i].count > most) {
      for (std::int64_t done = 0; done < runs[i].count; done += most) {
        const TileRun piece{runs[i].flat + done, runs[i].local + done, std::min(most, runs[i].count - done)};
        convert(read(piece.flat * size, piece.count * size), piece.flat, piece);
      }
      ++i;
      continue;
    }
    const std::int64_t first = runs[i].flat;
    std::size_t end = i + 1;  // of the runs of this part
    std::int64_t last = first + runs[i].count;
    while (end < runs.size() && (runs[end].flat - last) * size <= kGapBytes &&
           runs[end].flat + runs[end].count - first <= most) {
      last = runs[end].flat + runs[end].count;
      ++end;
    }
    const std::byte* part = read(first * size, (last - first) * size);
    for (; i < end; ++i) convert(part, first, runs[i]);
  }
}

void tileToWhole(const Tile& tile, const std::vector<std::int64_t>& shape, ElementType type, const std::byte* buffer,
                 std::byte* whole) {
  const std::int64_t size = elementBytes(type);
  for (const TileRun& run : tileRuns(tile, shape, 0)) {
    std::memcpy(whole + run.flat * size, buffer + run.local * size, static_cast<std::size_t>(run.count * size));
  }
}

}  // namespace gshard::runtime
