// A device's tile against the dense array of the whole tensor: the adjacent runs that both share. Inputs, checkpoints
// and results all go through here.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/element_type.h"
#include "runtime/extents.h"

namespace gshard::runtime {

struct TileRun {
  std::int64_t flat = 0;   // element in the whole, counted over the dims from the first
  std::int64_t local = 0;  // element in the tile's buffer
  std::int64_t count = 0;
};

// Runs over the dims from `firstDim` on (those before are walked by the caller); dims held whole join the runs.
std::vector<TileRun> tileRuns(const Tile& tile, const std::vector<std::int64_t>& shape, std::size_t firstDim);

// `count` adjacent elements of one type into another; floats to integers truncate, to bool compare with 0.
void convertElements(ElementType fromType, const std::byte* from, ElementType toType, std::byte* to,
                     std::int64_t count);

// The tile from the dense whole, which is asked for part by part: `read(first, count)` gives so many bytes from byte
// `first` on, good until it is asked again. Parts are at most `partBytes`, and none is far larger than what the tile
// has of it.
using ReadPart = std::function<const std::byte*(std::int64_t first, std::int64_t count)>;
void wholeToTile(const Tile& tile, const std::vector<std::int64_t>& shape, ElementType fromType, const ReadPart& read,
                 ElementType toType, std::byte* buffer, std::int64_t partBytes = std::int64_t{1} << 22);
// And back.
void tileToWhole(const Tile& tile, const std::vector<std::int64_t>& shape, ElementType type, const std::byte* buffer,
                 std::byte* whole);

}  // namespace gshard::runtime
