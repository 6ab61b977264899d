// Arrays as they lie in files: one of our element types, dense, row-major. What readers yield and writers take.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/element_type.h"
#include "runtime/file_bytes.h"

namespace gshard::runtime {

struct Array {
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> shape;
  Bytes bytes;

  std::int64_t count() const;
};

// In file order; a file of one nameless array has the name "".
using NamedArrays = std::vector<std::pair<std::string, Array>>;

// "[1797, 64]" and "f32[1797, 64]".
std::string shapeText(const std::vector<std::int64_t>& shape);
std::string arrayText(const Array& array);

// Product of a shape; throws Failure naming the file when it overflows or a size is negative.
std::int64_t checkedCount(const std::vector<std::int64_t>& shape, std::int64_t elementSize, const std::string& path);

// The element at a flat index. Integers beyond 2^53 lose bits in `asDouble` only.
double asDouble(const Array& array, std::int64_t index);
std::int64_t asInteger(const Array& array, std::int64_t index);

bool endsWith(std::string_view text, std::string_view suffix);

// Reads any supported file, by its content: npy, npz, safetensors, IDX, CSV, each also in gzip; anything else is one
// flat u8 array. Throws Failure.
NamedArrays readArrays(const std::string& path);

// Single formats, on unpacked bytes; `path` only for messages.
Array readIdx(const Bytes& bytes, const std::string& path);
Array readCsv(const Bytes& bytes, const std::string& path);
Array readNpy(const Bytes& bytes, const std::string& path);
NamedArrays readNpz(const Bytes& bytes, const std::string& path);
NamedArrays readSafetensors(const Bytes& bytes, const std::string& path);

// Writers, atomic. The suffix chooses: .npy (exactly one array), .npz, .safetensors.
void writeArrays(const std::string& path, const NamedArrays& arrays);
// Throws what writeArrays would throw for `count` arrays, before anything is computed: a suffix that says no format,
// one file for several arrays, a folder that cannot be written.
void checkWritable(const std::string& path, std::size_t count);
std::string npyText(const Array& array);  // header of an npy file
Array numpyArray(const Array& array);     // what NumPy has a name for: bf16 as f32, which is exact
void writeNpz(const std::string& path, const NamedArrays& arrays);

// numpy's indexing, as far as it selects parts: "[:, 0:64]", "[:, 64]", "[100:]".
Array selectPart(const Array& array, const std::string& selection, const std::string& name);

}  // namespace gshard::runtime
