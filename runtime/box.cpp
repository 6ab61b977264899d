// Walking boxes; see box.h.
#include "runtime/box.h"

#include <cstddef>
#include <cstring>

namespace gshard::runtime {

std::int64_t Extents::count() const {
  std::int64_t product = 1;
  for (int d = 0; d < rank; ++d) product *= dim[d];
  return product;
}

Extents makeExtents(const std::vector<std::int64_t>& dims) {
  Extents extents;
  extents.rank = static_cast<int>(dims.size());
  for (int d = 0; d < extents.rank; ++d) extents.dim[d] = dims[static_cast<std::size_t>(d)];
  return extents;
}

Extents denseStrides(const Extents& shape) {
  Extents strides;
  strides.rank = shape.rank;
  std::int64_t stride = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    strides.dim[d] = stride;
    stride *= shape.dim[d];
  }
  return strides;
}

static void keepDims(Box& box, const Extents& extents, const Extents& strides) {
  box.extents = extents;
  box.strides = strides;
}

void coalesce(Box& a, Box& b) {
  Extents extents;
  Extents stridesA;
  Extents stridesB;
  if (a.extents.count() == 0) {
    extents.rank = stridesA.rank = stridesB.rank = 1;
    stridesA.dim[0] = stridesB.dim[0] = 1;
  } else {
    for (int d = 0; d < a.extents.rank; ++d) {
      const std::int64_t extent = a.extents.dim[d];
      if (extent == 1) continue;
      const std::int64_t strideA = a.strides.dim[d];
      const std::int64_t strideB = b.strides.dim[d];
      if (extents.rank > 0) {
        const int last = extents.rank - 1;
        if (stridesA.dim[last] == strideA * extent && stridesB.dim[last] == strideB * extent) {
          extents.dim[last] *= extent;
          stridesA.dim[last] = strideA;
          stridesB.dim[last] = strideB;
          continue;
        }
      }
      extents.dim[extents.rank] = extent;
      stridesA.dim[extents.rank] = strideA;
      stridesB.dim[extents.rank] = strideB;
      ++extents.rank;
    }
    stridesA.rank = stridesB.rank = extents.rank;
  }
  keepDims(a, extents, stridesA);
  keepDims(b, extents, stridesB);
}

template <class Word>
static void copyStrided(const std::byte* from, std::int64_t fromStride, std::byte* to, std::int64_t toStride,
                        std::int64_t length) {
  const Word* source = reinterpret_cast<const Word*>(from);
  Word* target = reinterpret_cast<Word*>(to);
  for (std::int64_t i = 0; i < length; ++i) target[i * toStride] = source[i * fromStride];
}

void copyBox(const Box& from, const std::byte* fromBase, const Box& to, std::byte* toBase, std::int64_t elementSize) {
  const std::byte* source = fromBase + from.offset;
  std::byte* target = toBase + to.offset;
  forEachRow(from, to, 0, from.extents.count(),
             [&](std::int64_t a, std::int64_t b, std::int64_t length, std::int64_t strideA, std::int64_t strideB) {
               const std::byte* x = source + a * elementSize;
               std::byte* y = target + b * elementSize;
               if (strideA == 1 && strideB == 1) {
                 std::memcpy(y, x, static_cast<std::size_t>(length * elementSize));
               } else if (elementSize == 4) {
                 copyStrided<std::uint32_t>(x, strideA, y, strideB, length);
               } else if (elementSize == 8) {
                 copyStrided<std::uint64_t>(x, strideA, y, strideB, length);
               } else if (elementSize == 2) {
                 copyStrided<std::uint16_t>(x, strideA, y, strideB, length);
               } else {
                 copyStrided<std::uint8_t>(x, strideA, y, strideB, length);
               }
             });
}

void packBox(const Box& from, const std::byte* fromBase, std::byte* out, std::int64_t elementSize) {
  copyBox(from, fromBase, Box{0, from.extents, denseStrides(from.extents)}, out, elementSize);
}

void unpackBox(const Box& to, std::byte* toBase, const std::byte* in, std::int64_t elementSize) {
  copyBox(Box{0, to.extents, denseStrides(to.extents)}, in, to, toBase, elementSize);
}

}  // namespace gshard::runtime
