// IDX, the format of MNIST: big-endian magic (type, rank), one u32 per dim, then the elements.
#include <cstring>

#include "runtime/array.h"
#include "runtime/failure.h"

namespace gshard::runtime {

Array readIdx(const Bytes& bytes, const std::string& path) {
  ByteReader reader(bytes, path);
  const std::uint64_t magic = reader.bigEndian(4, "the magic number");
  const unsigned code = static_cast<unsigned>(magic >> 8) & 0xFFu;
  const int rank = static_cast<int>(magic & 0xFF);
  Array array;
  int fileBytes = 0;
  switch (code) {
    case 0x08:
      array.type = ElementType::U8;
      fileBytes = 1;
      break;
    case 0x09:
      array.type = ElementType::I32;
      fileBytes = 1;
      break;  // signed bytes
    case 0x0B:
      array.type = ElementType::I32;
      fileBytes = 2;
      break;
    case 0x0C:
      array.type = ElementType::I32;
      fileBytes = 4;
      break;
    case 0x0D:
      array.type = ElementType::F32;
      fileBytes = 4;
      break;
    case 0x0E:
      array.type = ElementType::F64;
      fileBytes = 8;
      break;
  }
  if ((magic >> 16) != 0 || fileBytes == 0 || rank < 1 || rank > 8) {
    throw failure(kExitIo, diag::FileMalformed, path, std::string("IDX"),
                  "its magic number is " + std::to_string(magic) + ", not two zero bytes, a type and a rank");
  }
  for (int d = 0; d < rank; ++d)
    array.shape.push_back(static_cast<std::int64_t>(reader.bigEndian(4, "the sizes of its dimensions")));
  const std::int64_t count = checkedCount(array.shape, fileBytes, path);
  const std::byte* data =
      reader.take(static_cast<std::size_t>(count * fileBytes), "the elements that its sizes ask for");
  if (reader.left() != 0) {
    throw failure(kExitIo, diag::FileMalformed, path, std::string("IDX"),
                  std::to_string(reader.left()) + " bytes follow the " + std::to_string(count) + " elements of " +
                      shapeText(array.shape));
  }
  const std::int64_t size = elementBytes(array.type);
  array.bytes.resize(static_cast<std::size_t>(count * size));
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    for (int b = 0; b < fileBytes; ++b) value = (value << 8) | static_cast<std::uint64_t>(data[i * fileBytes + b]);
    if (code == 0x09) value = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int8_t>(value)));
    if (code == 0x0B) value = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int16_t>(value)));
    std::memcpy(array.bytes.data() + i * size, &value, static_cast<std::size_t>(size));  // little-endian host
  }
  return array;
}

}  // namespace gshard::runtime
