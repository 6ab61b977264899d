// Arrays, the choice of a reader, and part selection; see array.h.
#include "runtime/array.h"

#include <algorithm>
#include <cstring>

#include "runtime/box.h"
#include "runtime/failure.h"
#include "runtime/parse_integer.h"

namespace gshard::runtime {

std::int64_t Array::count() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::string shapeText(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text + "]";
}

std::string arrayText(const Array& array) {
  return std::string(elementName(array.type)) + shapeText(array.shape);
}

std::int64_t checkedCount(const std::vector<std::int64_t>& shape, std::int64_t elementSize, const std::string& path) {
  std::int64_t product = 1;
  std::int64_t bytes = 0;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(product, size, &product) ||
        __builtin_mul_overflow(product, elementSize, &bytes)) {
      throw failure(kExitIo, diag::FileMalformed, path, std::string("data"),
                    "its shape " + shapeText(shape) + " has no size");
    }
  }
  return product;
}

template <class T>
static T elementAt(const Array& array, std::int64_t index) {
  T value;
  std::memcpy(&value, array.bytes.data() + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

double asDouble(const Array& array, std::int64_t index) {
  switch (array.type) {
    case ElementType::F32:
      return elementAt<float>(array, index);
    case ElementType::F64:
      return elementAt<double>(array, index);
    case ElementType::BF16:
      return bfloatToFloat(elementAt<std::uint16_t>(array, index));
    case ElementType::F16:
      return halfToFloat(elementAt<std::uint16_t>(array, index));
    case ElementType::I32:
      return elementAt<std::int32_t>(array, index);
    case ElementType::I64:
      return static_cast<double>(elementAt<std::int64_t>(array, index));
    case ElementType::U8:
      return elementAt<std::uint8_t>(array, index);
    case ElementType::Bool:
      return elementAt<std::uint8_t>(array, index) != 0 ? 1.0 : 0.0;
  }
  return 0;
}

std::int64_t asInteger(const Array& array, std::int64_t index) {
  if (array.type == ElementType::I64) return elementAt<std::int64_t>(array, index);
  return static_cast<std::int64_t>(asDouble(array, index));
}

bool endsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

static bool startsWith(const Bytes& bytes, std::string_view prefix) {
  return bytes.size() >= prefix.size() && std::memcmp(bytes.data(), prefix.data(), prefix.size()) == 0;
}

static bool looksLikeIdx(const Bytes& bytes) {
  if (bytes.size() < 4 || bytes[0] != std::byte{0} || bytes[1] != std::byte{0}) return false;
  const unsigned type = static_cast<unsigned>(bytes[2]);
  const unsigned rank = static_cast<unsigned>(bytes[3]);
  return (type == 8 || type == 9 || (type >= 0x0B && type <= 0x0E)) && rank >= 1 && rank <= 8;
}

NamedArrays readArrays(const std::string& path) {
  Bytes bytes = readFile(path);
  std::string name = path;
  if (isGzip(bytes)) {
    bytes = gunzip(bytes, path);
    if (endsWith(name, ".gz")) name.resize(name.size() - 3);
  }
  if (startsWith(bytes, "\x93NUMPY")) return {{"", readNpy(bytes, path)}};
  if (startsWith(bytes, "PK")) return readNpz(bytes, path);
  if (endsWith(name, ".safetensors")) return readSafetensors(bytes, path);
  if (looksLikeIdx(bytes)) return {{"", readIdx(bytes, path)}};
  if (endsWith(name, ".csv")) return {{"", readCsv(bytes, path)}};
  for (const char* suffix : {".npy", ".npz", "-ubyte", ".idx"}) {
    if (endsWith(name, suffix)) {
      throw failure(kExitIo, diag::FileMalformed, path, std::string(suffix),
                    std::string("its first bytes are not those of the format"));
    }
  }
  Array raw;
  raw.type = ElementType::U8;
  raw.shape = {static_cast<std::int64_t>(bytes.size())};
  raw.bytes = std::move(bytes);
  return {{"", std::move(raw)}};
}

namespace {

struct Part {
  std::int64_t begin = 0, end = 0;
  bool single = false;  // an index: the dim goes
};

// One entry between commas: "a:b", "a:", ":b", ":", or "i"; negative values count from the end. Nothing where that is
// no part of a dim of `size`.
std::optional<Part> parsePart(std::string_view text, std::int64_t size) {
  // The position that `digits` name, from 0 to size; `otherwise` where they are left out.
  const auto position = [&](std::string_view digits, std::optional<std::int64_t> otherwise) {
    while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
    while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
    std::optional<std::int64_t> at = digits.empty() ? otherwise : parseInteger(digits);
    if (at && *at < 0) *at += size;
    if (at && (*at < 0 || *at > size)) at.reset();
    return at;
  };
  const std::size_t colon = text.find(':');
  const bool single = colon == std::string_view::npos;
  const std::optional<std::int64_t> begin =
      position(text.substr(0, colon), single ? std::nullopt : std::optional(std::int64_t{0}));
  if (!begin) return std::nullopt;
  const std::optional<std::int64_t> end = single ? *begin + 1 : position(text.substr(colon + 1), size);
  if (!end || *begin > *end || *end > size) return std::nullopt;
  return Part{*begin, *end, single};
}

}  // namespace

Array selectPart(const Array& array, const std::string& selection, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    return failure(kExitMismatch, diag::Selection, selection, name, shapeText(array.shape), why);
  };
  std::string_view inner = selection;
  if (inner.size() < 2 || inner.front() != '[' || inner.back() != ']') throw refuse("it is not of the form [:, 0:64]");
  inner = inner.substr(1, inner.size() - 2);
  std::vector<Part> parts;
  while (true) {
    const std::size_t comma = inner.find(',');
    if (parts.size() >= array.shape.size()) throw refuse("it names more dimensions than there are");
    const std::int64_t size = array.shape[parts.size()];
    const std::optional<Part> part = parsePart(inner.substr(0, comma), size);
    if (!part) {
      throw refuse("`" + std::string(inner.substr(0, comma)) + "` is no part of a dimension of size " +
                   std::to_string(size));
    }
    parts.push_back(*part);
    if (comma == std::string_view::npos) break;
    inner = inner.substr(comma + 1);
  }
  for (std::size_t d = parts.size(); d < array.shape.size(); ++d) parts.push_back({0, array.shape[d], false});

  Array out;
  out.type = array.type;
  Box from;
  Box to;
  std::vector<std::int64_t> extents;
  for (const Part& part : parts) extents.push_back(part.end - part.begin);
  for (std::size_t d = 0; d < parts.size(); ++d) {
    if (!parts[d].single) out.shape.push_back(extents[d]);
  }
  if (extents.size() > static_cast<std::size_t>(kMaxRank)) throw refuse("it has too many dimensions");
  from.extents = to.extents = makeExtents(extents);
  from.strides = denseStrides(makeExtents(array.shape));
  to.strides = denseStrides(to.extents);
  const std::int64_t size = elementBytes(array.type);
  for (std::size_t d = 0; d < parts.size(); ++d) from.offset += parts[d].begin * from.strides.dim[d] * size;
  out.bytes.resize(static_cast<std::size_t>(to.extents.count() * size));
  copyBox(from, array.bytes.data(), to, out.bytes.data(), size);
  return out;
}

}  // namespace gshard::runtime
