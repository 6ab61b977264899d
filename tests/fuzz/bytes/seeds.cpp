// Writes what the targets of data files begin with: a small file of each format, type and rank. Usage: FOLDER
#include <sys/stat.h>
#include <zlib.h>

#include <cstdio>
#include <cstring>

#include "runtime/array.h"
#include "runtime/failure.h"

namespace gshard::runtime {
namespace {

void writeText(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

Array counted(ElementType type, const std::vector<std::int64_t>& shape) {
  Array array{type, shape, {}};
  array.bytes.resize(static_cast<std::size_t>(array.count() * elementBytes(type)));
  for (std::size_t i = 0; i < array.bytes.size(); ++i)
    array.bytes[i] = static_cast<std::byte>(type == ElementType::Bool ? i % 2 : i);
  return array;
}

std::string big(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  return text;
}

// In gzip, or as the raw stream that zip members hold.
std::string deflated(const std::string& text, int windowBits) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// A zip of one deflated member; ours writes stored ones only.
std::string zipOf(const std::string& name, const std::string& content) {
  const std::string packed = deflated(content, -MAX_WBITS);
  const std::string common = little(20, 2) + little(0, 2) + little(8, 2) + little(0, 4) +
                             little(crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()), 4) +
                             little(packed.size(), 4) + little(content.size(), 4) + little(name.size(), 2) +
                             little(0, 2);
  const std::string local = "PK\3\4" + common + name + packed;
  const std::string directory = "PK\1\2" + little(20, 2) + common + std::string(14, '\0') + name;
  return local + directory + "PK\5\6" + little(0, 4) + little(1, 2) + little(1, 2) + little(directory.size(), 4) +
         little(local.size(), 4) + little(0, 2);
}

void writeSeeds(const std::string& folder) {
  for (const char* name : {"/idx", "/csv", "/numpy", "/safetensors"}) makeFolders(folder + name);
  constexpr ElementType kTypes[] = {ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::F16,
                                    ElementType::I32, ElementType::I64, ElementType::U8,   ElementType::Bool};
  NamedArrays all;
  for (const ElementType type : kTypes) {
    const Array array = counted(type, {2, 3});
    const std::string name(elementName(type));
    all.emplace_back(name, array);
    writeArrays(folder + "/numpy/" + name + ".npy", {{"", array}});
    writeArrays(folder + "/safetensors/" + name + ".safetensors", {{name, array}, {"scalar", counted(type, {})}});
  }
  writeArrays(folder + "/numpy/all.npz", all);
  writeArrays(folder + "/safetensors/all.safetensors", all);
  const Array floats = counted(ElementType::F32, {3, 1, 2});
  const std::string npy =
      npyText(floats) + std::string(reinterpret_cast<const char*>(floats.bytes.data()), floats.bytes.size());
  std::string fortran = npy;
  fortran.replace(fortran.find("False"), 5, "True ");
  std::string wide = npy;
  wide.replace(wide.find("<f4"), 3, ">i2").replace(wide.find("(3,1,2)"), 7, "(3,2,2)");
  writeText(folder + "/numpy/fortran.npy", fortran);
  writeText(folder + "/numpy/big_endian.npy", wide);
  writeText(folder + "/numpy/packed.npy.gz", deflated(npy, 16 + MAX_WBITS));
  writeText(folder + "/numpy/packed.npz", zipOf("x.npy", npy));
  for (const std::uint32_t type : {0x08u, 0x09u, 0x0Bu, 0x0Cu, 0x0Du, 0x0Eu}) {
    writeText(folder + "/idx/type" + std::to_string(type), big(type << 8 | 1) + big(1) + "\1\2\3\4\5\6\7\xff");
    writeText(folder + "/idx/images" + std::to_string(type),
              big(type << 8 | 3) + big(2) + big(1) + big(3) + std::string(48, '\5'));
  }
  writeText(folder + "/csv/plain", "[:, 0:2]\n1,2.5,-3e4\n4,nan,inf\n");
  writeText(folder + "/csv/header", "[1:, -1]\nx,y,name\n\"1\", +2 ,3\r\n\r\n4;5;6\n");
  writeText(folder + "/csv/mark",
            "[0]\n\xEF\xBB\xBF"
            "1\n2\n");
}

}  // namespace
}  // namespace gshard::runtime

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", words[0]);
    return 2;
  }
  try {
    gshard::runtime::writeSeeds(words[1]);
  } catch (const gshard::runtime::Failure& failed) {
    std::fprintf(stderr, "%s\n", failed.message.c_str());
    return 1;
  }
  return 0;
}
