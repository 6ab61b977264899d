// NumPy's .npy and .npz, read and written. An npz is a zip of npy files; members are stored or deflated, and zip64
// fields, which NumPy always writes for size, are understood.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/array.h"
#include "runtime/failure.h"

namespace gshard::runtime {
namespace {

struct Description {
  char order = '<';  // byte order: '<', '>', '|', '='
  char kind = 'f';   // f, i, u, b
  int bytes = 4;
};

Failure malformed(const std::string& path, const char* format, const std::string& why) {
  return failure(kExitIo, diag::FileMalformed, path, std::string(format), why);
}

// The value after 'key': in the header's Python dict.
std::string_view dictValue(std::string_view header, std::string_view key) {
  const std::size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at + key.size() + 2);
  const std::size_t begin = rest.find_first_not_of(" :");
  if (begin == std::string_view::npos) return {};
  rest.remove_prefix(begin);
  const std::size_t end = rest.front() == '(' ? rest.find(')') : rest.find_first_of(",}");
  if (end == std::string_view::npos) return {};
  return rest.substr(0, rest.front() == '(' ? end + 1 : end);
}

Description parseDescription(std::string_view text, const std::string& path) {
  const bool quoted = text.size() >= 5 && text.front() == '\'' && text.back() == '\'';
  const std::string_view inner = quoted ? text.substr(1, text.size() - 2) : std::string_view{};
  Description description;
  if (inner.size() == 3) {
    description = {inner[0], inner[1], inner[2] - '0'};
    const int size = description.bytes;
    const bool power = size == 1 || size == 2 || size == 4 || size == 8;
    const bool known = description.kind == 'f'   ? size >= 2
                       : description.kind == 'b' ? size == 1
                                                 : description.kind == 'i' || description.kind == 'u';
    if (power && known) return description;
  }
  throw malformed(
      path, "npy",
      "its element type is " + std::string(text.substr(0, 40)) + "; f2 f4 f8, i1 to i8, u1 to u8 and b1 are read");
}

std::vector<std::int64_t> parseShape(std::string_view text, const std::string& path) {
  std::vector<std::int64_t> shape;
  if (text.size() < 2 || text.front() != '(') throw malformed(path, "npy", "its header has no shape");
  std::int64_t value = -1;
  for (const char c : text.substr(1)) {
    if (c >= '0' && c <= '9') {
      if (value > (std::int64_t{1} << 58)) throw malformed(path, "npy", "its shape is too large");
      value = (value < 0 ? 0 : value * 10) + (c - '0');
    } else if (c == ',' || c == ')') {
      if (value >= 0) shape.push_back(value);
      value = -1;
    } else if (c != ' ' && c != 'L') {
      throw malformed(path, "npy", "its shape is " + std::string(text.substr(0, 40)));
    }
  }
  if (shape.size() > 12) throw malformed(path, "npy", "it has more than 12 dimensions");
  return shape;
}

ElementType typeOf(const Description& description) {
  if (description.kind == 'f') {
    return description.bytes == 2 ? ElementType::F16 : description.bytes == 4 ? ElementType::F32 : ElementType::F64;
  }
  if (description.kind == 'b') return ElementType::Bool;
  if (description.kind == 'u' && description.bytes == 1) return ElementType::U8;
  const bool wide = description.bytes == 8 || (description.kind == 'u' && description.bytes == 4);
  return wide ? ElementType::I64 : ElementType::I32;
}

// Elements in our type and byte order; integers of other widths are widened.
Bytes convertElements(const std::byte* data, std::int64_t count, const Description& description, ElementType type,
                      const std::string& path) {
  const std::int64_t size = elementBytes(type);
  Bytes out(static_cast<std::size_t>(count * size));
  if (description.order != '>' && size == description.bytes && !(description.kind == 'u' && size == 8)) {
    if (count > 0) std::memcpy(out.data(), data, out.size());
    return out;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    for (int b = 0; b < description.bytes; ++b) {
      const int at = description.order == '>' ? b : description.bytes - 1 - b;
      value = (value << 8) | static_cast<std::uint64_t>(data[i * description.bytes + at]);
    }
    if (description.kind == 'i') {
      const int unused = 64 - 8 * description.bytes;
      value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
    }
    if (description.kind == 'u' && description.bytes == 8 && (value >> 63) != 0) {
      throw malformed(path, "npy", "element " + std::to_string(i) + " is beyond the range of i64");
    }
    std::memcpy(out.data() + i * size, &value, static_cast<std::size_t>(size));
  }
  return out;
}

// Fortran order: the file holds the transposed array.
Array transposed(const Array& array) {
  Array out = array;
  std::reverse(out.shape.begin(), out.shape.end());
  const std::int64_t size = elementBytes(array.type);
  std::vector<std::int64_t> strides(out.shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    strides[d] = stride;
    stride *= out.shape[d];
  }
  std::vector<std::int64_t> index(out.shape.size(), 0);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    std::int64_t from = 0;
    for (std::size_t d = 0; d < index.size(); ++d) from += index[d] * strides[d];
    std::memcpy(out.bytes.data() + i * size, array.bytes.data() + from * size, static_cast<std::size_t>(size));
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < out.shape[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

Array readNpy(const Bytes& bytes, const std::string& path) {
  ByteReader reader(bytes, path);
  const std::byte* magic = reader.take(8, "the magic number");
  if (std::memcmp(magic, "\x93NUMPY", 6) != 0) throw malformed(path, "npy", "it does not begin with \\x93NUMPY");
  const int version = static_cast<int>(magic[6]);
  if (version < 1 || version > 3) throw malformed(path, "npy", "its format version is " + std::to_string(version));
  const std::size_t length = static_cast<std::size_t>(reader.littleEndian(version == 1 ? 2 : 4, "the header's length"));
  const std::string_view header(reinterpret_cast<const char*>(reader.take(length, "the header")), length);
  const Description description = parseDescription(dictValue(header, "descr"), path);
  Array array;
  array.type = typeOf(description);
  array.shape = parseShape(dictValue(header, "shape"), path);
  const bool fortran = dictValue(header, "fortran_order") == "True";
  if (fortran) std::reverse(array.shape.begin(), array.shape.end());
  const std::int64_t count =
      checkedCount(array.shape, std::max<std::int64_t>(description.bytes, elementBytes(array.type)), path);
  const std::byte* data = reader.take(static_cast<std::size_t>(count * description.bytes), "the elements of its shape");
  array.bytes = convertElements(data, count, description, array.type, path);
  return fortran ? transposed(array) : array;
}

NamedArrays readNpz(const Bytes& bytes, const std::string& path) {
  // The end record holds the place of the directory; a comment of up to 64 KB may follow it.
  constexpr std::size_t kEndBytes = 22;
  if (bytes.size() < kEndBytes) throw malformed(path, "zip", "it is too short for the end record");
  std::size_t end = bytes.size() - kEndBytes;
  const std::size_t lowest = end > 65535 ? end - 65535 : 0;
  while (std::memcmp(bytes.data() + end, "PK\5\6", 4) != 0) {
    if (end == lowest) throw malformed(path, "zip", "it has no end record; it may be cut short");
    --end;
  }
  ByteReader reader(bytes, path);
  reader.seek(end + 10);
  const std::uint64_t members = reader.littleEndian(2, "the end record");
  reader.seek(end + 16);
  std::uint64_t directory = reader.littleEndian(4, "the end record");
  if (directory == 0xFFFFFFFFu) throw malformed(path, "zip", "it is larger than 4 GiB");
  NamedArrays arrays;
  std::uint64_t claimed = 0;   // bytes of the members in the file
  std::uint64_t inflated = 0;  // and in memory
  for (std::uint64_t member = 0; member < members; ++member) {
    if (directory > bytes.size()) throw malformed(path, "zip", "its directory lies beyond its end");
    reader.seek(static_cast<std::size_t>(directory));
    if (reader.littleEndian(4, "a directory entry") != 0x02014B50u)
      throw malformed(path, "zip", "its directory is damaged");
    reader.take(6, "a directory entry");
    const std::uint64_t method = reader.littleEndian(2, "a directory entry");
    reader.take(4, "a directory entry");
    const std::uint64_t crc = reader.littleEndian(4, "a directory entry");
    std::uint64_t packed = reader.littleEndian(4, "a directory entry");
    std::uint64_t unpacked = reader.littleEndian(4, "a directory entry");
    const std::size_t nameLength = static_cast<std::size_t>(reader.littleEndian(2, "a directory entry"));
    const std::size_t extraLength = static_cast<std::size_t>(reader.littleEndian(2, "a directory entry"));
    const std::size_t commentLength = static_cast<std::size_t>(reader.littleEndian(2, "a directory entry"));
    reader.take(8, "a directory entry");
    std::uint64_t local = reader.littleEndian(4, "a directory entry");
    std::string name(reinterpret_cast<const char*>(reader.take(nameLength, "a member's name")), nameLength);
    const std::size_t extraEnd = reader.position() + extraLength;
    if (packed == 0xFFFFFFFFu || unpacked == 0xFFFFFFFFu || local == 0xFFFFFFFFu) {
      while (reader.position() + 4 <= extraEnd) {
        const std::uint64_t id = reader.littleEndian(2, "an extra field");
        const std::size_t size = static_cast<std::size_t>(reader.littleEndian(2, "an extra field"));
        const std::size_t next = reader.position() + size;
        if (id == 1) {
          if (unpacked == 0xFFFFFFFFu) unpacked = reader.littleEndian(8, "a zip64 field");
          if (packed == 0xFFFFFFFFu) packed = reader.littleEndian(8, "a zip64 field");
          if (local == 0xFFFFFFFFu) local = reader.littleEndian(8, "a zip64 field");
        }
        reader.seek(std::min(next, bytes.size()));
      }
    }
    directory = extraEnd + commentLength;
    if (local > bytes.size()) throw malformed(path, "zip", "member `" + name + "` lies beyond its end");
    reader.seek(static_cast<std::size_t>(local));
    reader.take(26, "a member's header");
    const std::size_t localName = static_cast<std::size_t>(reader.littleEndian(2, "a member's header"));
    const std::size_t localExtra = static_cast<std::size_t>(reader.littleEndian(2, "a member's header"));
    reader.take(localName + localExtra, "a member's header");
    const std::byte* data = reader.take(static_cast<std::size_t>(packed), "a member's data");
    // Members that share bytes could make a small file as large as one likes.
    claimed += packed;
    if (claimed > bytes.size()) throw malformed(path, "zip", "its members overlap");
    Bytes content;
    if (method == 0) {
      if (packed != unpacked) throw malformed(path, "zip", "the sizes of member `" + name + "` differ");
      content.assign(data, data + packed);
    } else if (method == 8) {
      inflated += unpacked;
      checkFitsMemory(inflated, path);
      content = inflateRaw(data, static_cast<std::size_t>(packed), static_cast<std::size_t>(unpacked), path);
    } else {
      throw malformed(
          path, "zip",
          "member `" + name + "` is packed by method " + std::to_string(method) + "; stored and deflated are read");
    }
    if (crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()) != crc) {
      throw malformed(path, "zip", "the checksum of member `" + name + "` is wrong");
    }
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0) name.resize(name.size() - 4);
    arrays.emplace_back(name, readNpy(content, path + ":" + name));
  }
  return arrays;
}

std::string npyText(const Array& array) {
  const char* description = "";
  switch (array.type) {
    case ElementType::F32:
    case ElementType::BF16:  // see numpyArray
      description = "<f4";
      break;
    case ElementType::F64:
      description = "<f8";
      break;
    case ElementType::F16:
      description = "<f2";
      break;
    case ElementType::I32:
      description = "<i4";
      break;
    case ElementType::I64:
      description = "<i8";
      break;
    case ElementType::U8:
      description = "|u1";
      break;
    case ElementType::Bool:
      description = "|b1";
      break;
  }
  std::string header = std::string("{'descr': '") + description + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t size : array.shape) header += std::to_string(size) + ",";
  if (array.shape.size() > 1) header.pop_back();
  header += "), }";
  header.append(64 - (header.size() + 11) % 64, ' ');
  header += '\n';
  std::string text("\x93NUMPY\1\0", 8);
  text += static_cast<char>(header.size() & 0xFF);
  text += static_cast<char>(header.size() >> 8);
  return text + header;
}

Array numpyArray(const Array& array) {
  if (array.type != ElementType::BF16) return array;
  Array wide{ElementType::F32, array.shape, {}};
  const std::int64_t count = array.count();
  wide.bytes.resize(static_cast<std::size_t>(count) * sizeof(float));
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(asDouble(array, i));
    std::memcpy(wide.bytes.data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
  }
  return wide;
}

static void appendNumber(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

void writeNpz(const std::string& path, const NamedArrays& arrays) {
  AtomicFile file(path);
  std::string directory;
  for (const auto& [name, given] : arrays) {
    const Array array = numpyArray(given);
    const std::string header = npyText(array);
    const std::string member = name + ".npy";
    const std::uint64_t size = header.size() + array.bytes.size();
    const std::int64_t place = file.written();
    if (size >= 0xFFFFFFFFu || place >= 0xFFFFFFFF) {
      throw failure(kExitIo, diag::FileUnwritable, path,
                    std::string("an npz beyond 4 GiB; write .safetensors instead"));
    }
    std::uint64_t crc = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(array.bytes.data()), array.bytes.size());
    std::string common;  // from "version needed" to the lengths, equal in both headers
    appendNumber(common, 20, 2);
    appendNumber(common, 0, 4);           // flags, method: stored
    appendNumber(common, 0x00210000, 4);  // 1 January 1980, so that equal data makes equal files
    appendNumber(common, crc, 4);
    appendNumber(common, size, 4);
    appendNumber(common, size, 4);
    appendNumber(common, member.size(), 2);
    appendNumber(common, 0, 2);
    file.write("PK\3\4" + common + member + header);
    file.write(array.bytes.data(), array.bytes.size());
    directory += std::string("PK\1\2") + std::string("\x14\0", 2) + common;
    appendNumber(directory, 0, 2);  // comment
    appendNumber(directory, 0, 4);  // disk, internal attributes
    appendNumber(directory, 0, 4);  // external attributes
    appendNumber(directory, static_cast<std::uint64_t>(place), 4);
    directory += member;
  }
  const std::int64_t place = file.written();
  std::string end("PK\5\6\0\0\0\0", 8);
  appendNumber(end, arrays.size(), 2);
  appendNumber(end, arrays.size(), 2);
  appendNumber(end, directory.size(), 4);
  appendNumber(end, static_cast<std::uint64_t>(place), 4);
  appendNumber(end, 0, 2);
  file.write(directory + end);
  file.commit();
}

}  // namespace gshard::runtime
