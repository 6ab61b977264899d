// Readers and writers of data files: good input, and malformed input of every kind with its message.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>

#include "runtime/array.h"
#include "runtime/failure.h"
#include "runtime/parse_integer.h"
#include "runtime/row_order.h"
#include "runtime/safetensors.h"
#include "runtime/tile_runs.h"

namespace gshard::runtime {
namespace {

Bytes bytesOf(const std::string& text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::string big(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

template <class Fn>
std::string messageOf(Fn fn) {
  try {
    fn();
  } catch (const Failure& failed) {
    return failed.message;
  }
  return "nothing thrown";
}

std::vector<double> valuesOf(const Array& array) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < array.count(); ++i) values.push_back(asDouble(array, i));
  return values;
}

class TempFile {
 public:
  TempFile(const std::string& suffix, const std::string& content) {
    char pattern[] = "/tmp/gshard_reader_XXXXXX";
    close(mkstemp(pattern));
    base_ = pattern;
    path_ = base_ + suffix;
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TempFile() {
    unlink(base_.c_str());
    unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string base_, path_;
};

std::string zipped(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Idx, ReadsBytesAndFloats) {
  const Array images = readIdx(bytesOf(big(0x803) + big(2) + big(1) + big(3) + "\x01\x02\x03\x04\x05\xff"), "i");
  EXPECT_EQ(images.shape, (std::vector<std::int64_t>{2, 1, 3}));
  EXPECT_EQ(valuesOf(images), (std::vector<double>{1, 2, 3, 4, 5, 255}));
  const Array floats = readIdx(bytesOf(big(0xD01) + big(1) + big(0x3FC00000)), "i");
  EXPECT_EQ(valuesOf(floats), (std::vector<double>{1.5}));
  const Array shorts = readIdx(bytesOf(big(0xB01) + big(1) + std::string("\xff\xfe", 2)), "i");
  EXPECT_EQ(valuesOf(shorts), (std::vector<double>{-2}));
}

TEST(Idx, SaysWhatIsWrong) {
  EXPECT_NE(messageOf([] {
              readIdx(bytesOf(big(0x803) + big(2) + big(1) + big(3) + "\x01"), "f");
            }).find("`f` ends after 17 bytes, but the elements that its sizes ask for needs 22"),
            std::string::npos);
  EXPECT_NE(messageOf([] { readIdx(bytesOf(big(0x801) + big(1) + "ab"), "f"); }).find("1 bytes follow the 1 elements"),
            std::string::npos);
  EXPECT_NE(messageOf([] { readIdx(bytesOf(big(0x12345678)), "f"); }).find("magic number"), std::string::npos);
  EXPECT_NE(messageOf([] {
              readIdx(bytesOf(big(0x804) + big(~0u) + big(~0u) + big(~0u) + big(~0u)), "f");
            }).find("has no size"),
            std::string::npos);
}

TEST(Csv, HeaderIsOptional) {
  const Array plain = readCsv(bytesOf("1,2.5\n-3,4e2\n"), "c");
  EXPECT_EQ(plain.shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(valuesOf(plain), (std::vector<double>{1, 2.5, -3, 400}));
  EXPECT_EQ(readCsv(bytesOf("569,30,malignant,benign\n1,2\r\n\n3,4"), "c").shape, (std::vector<std::int64_t>{2, 2}));
}

TEST(Csv, SaysWhatIsWrong) {
  EXPECT_NE(
      messageOf([] { readCsv(bytesOf("1,2\n3,x\n"), "c"); }).find("`c`, line 2, field 2: expected a number, found `x`"),
      std::string::npos);
  EXPECT_NE(messageOf([] {
              readCsv(bytesOf("1,2\n3\n"), "c");
            }).find("line 2: expected 2 fields as in the lines before, found 1"),
            std::string::npos);
  EXPECT_NE(messageOf([] { readCsv(bytesOf("1,\n2,3\n,4\n"), "c"); }).find("line 3, field 1"), std::string::npos);
  EXPECT_NE(messageOf([] { readCsv(bytesOf("a,b\n"), "c"); }).find("no row of numbers"), std::string::npos);
}

std::string npy(const std::string& description, const std::string& order, const std::string& shape,
                const std::string& data) {
  std::string header = "{'descr': '" + description + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

TEST(Npy, ReadsTypesOrdersAndShapes) {
  EXPECT_EQ(valuesOf(readNpy(bytesOf(npy("<i2", "False", "(2,)", std::string("\xff\xff\x02\x00", 4))), "n")),
            (std::vector<double>{-1, 2}));
  EXPECT_EQ(valuesOf(readNpy(bytesOf(npy(">i4", "False", "(1,)", big(258))), "n")), (std::vector<double>{258}));
  EXPECT_EQ(readNpy(bytesOf(npy("<u4", "False", "(1,)", std::string("\xff\xff\xff\xff", 4))), "n").type,
            ElementType::I64);
  EXPECT_EQ(readNpy(bytesOf(npy("|u1", "False", "()", "a")), "n").shape.size(), 0u);
  EXPECT_EQ(valuesOf(readNpy(bytesOf(npy("<f2", "False", "(1,)", std::string("\x00\x3e", 2))), "n")),
            (std::vector<double>{1.5}));
  const Array turned = readNpy(bytesOf(npy("|u1", "True", "(2, 3)", "\x01\x04\x02\x05\x03\x06")), "n");
  EXPECT_EQ(turned.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(valuesOf(turned), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, SaysWhatIsWrong) {
  EXPECT_NE(messageOf([] {
              readNpy(bytesOf(npy("<f4", "False", "(3,)", "1234")), "n");
            }).find("the elements of its shape needs"),
            std::string::npos);
  EXPECT_NE(
      messageOf([] { readNpy(bytesOf(npy("|O", "False", "(3,)", "1234")), "n"); }).find("its element type is '|O'"),
      std::string::npos);
  EXPECT_NE(messageOf([] {
              readNpy(bytesOf(npy("<f8", "False", "(99999999999999, 99999999999999)", "")), "n");
            }).find("has no size"),
            std::string::npos);
  EXPECT_NE(messageOf([] { readNpy(bytesOf("\x93NUMPY"), "n"); }).find("the magic number needs 8"), std::string::npos);
}

NamedArrays sampleArrays() {
  Array x{ElementType::F32, {2, 3}, Bytes(24)};
  const float values[] = {1, 2, 3, 4, 5, 6};
  std::memcpy(x.bytes.data(), values, 24);
  Array y{ElementType::I64, {}, Bytes(8)};
  const std::int64_t number = -7;
  std::memcpy(y.bytes.data(), &number, 8);
  return {{"x", x}, {"y", y}};
}

TEST(Writers, ReadBackWhatTheyWrote) {
  for (const char* suffix : {".npz", ".safetensors"}) {
    const TempFile file(suffix, "");
    writeArrays(file.path(), sampleArrays());
    const NamedArrays read = readArrays(file.path());
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].first, "x");
    EXPECT_EQ(read[0].second.shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(valuesOf(read[0].second), (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(asInteger(read[1].second, 0), -7);
    EXPECT_TRUE(read[1].second.shape.empty());
  }
  const TempFile file(".npy", "");
  EXPECT_NE(messageOf([&] { writeArrays(file.path(), sampleArrays()); }).find("since there are 2 results"),
            std::string::npos);
}

TEST(Npz, ReadsTheOracle) {
  const NamedArrays arrays = readArrays(std::string(GSHARD_SOURCE_DIR) + "/tests/oracle/mlp_small.npz");
  ASSERT_GT(arrays.size(), 10u);
  EXPECT_EQ(arrays[0].first, "losses");
  EXPECT_EQ(arrays[0].second.shape, (std::vector<std::int64_t>{10}));
  EXPECT_EQ(arrays[0].second.type, ElementType::F64);
}

TEST(Npz, EveryCutAndEveryFlippedByteIsAnErrorOrHarmless) {
  const TempFile file(".npz", "");
  writeArrays(file.path(), sampleArrays());
  const Bytes whole = readFile(file.path());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(
        messageOf([&] { readNpz(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)), "z"); }),
        "nothing thrown")
        << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes damaged = whole;
    damaged[at] ^= std::byte{0xff};
    messageOf([&] { readNpz(damaged, "z"); });  // must not crash or read outside (the sanitizer presets see that)
  }
}

// Two entries of the directory name one member: with thousands of them a small file would take all memory.
TEST(Npz, MembersThatShareBytesAreRefused) {
  const TempFile file(".npz", "");
  writeArrays(file.path(), {{"x", Array{ElementType::U8, {600}, Bytes(600)}}});
  std::string whole;
  for (const std::byte each : readFile(file.path())) whole += static_cast<char>(each);
  const std::size_t directory = whole.rfind("PK\1\2"), end = whole.rfind("PK\5\6");
  std::string twice = whole.substr(0, end) + whole.substr(directory, end - directory) + whole.substr(end);
  twice[twice.rfind("PK\5\6") + 10] = 2;
  EXPECT_NE(messageOf([&] { readNpz(bytesOf(twice), "z"); }).find("its members overlap"), std::string::npos);
}

TEST(Safetensors, SaysWhatIsWrong) {
  const auto file = [](const std::string& header, const std::string& data) {
    std::string length(8, '\0');
    length[0] = static_cast<char>(header.size());
    return bytesOf(length + header + data);
  };
  EXPECT_NE(messageOf([&] {
              readSafetensors(file(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234"), "s");
            }).find("`s` ends after"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              readSafetensors(file(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678"), "s");
            }).find("needs 12 bytes, but has 8"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              readSafetensors(file(R"({"w":{"dtype":"F9","shape":[3],"data_offsets":[0,8]}})", "12345678"), "s");
            }).find("has the type F9"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { readSafetensors(file(R"({"w":{"shape":[-1]}})", ""), "s"); }).find("lacks dtype"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              readSafetensors(file(R"({"w":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
                                   R"("v":{"dtype":"U8","shape":[6],"data_offsets":[2,8]}})",
                                   "12345678"),
                              "s");
            }).find("its tensors overlap"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { readSafetensors(file("[1", ""), "s"); }).find("not a JSON object"), std::string::npos);
}

TEST(Gzip, UnpacksMembersAndRefusesDamage) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i) + "\n";
  const std::string packed = zipped(text);
  EXPECT_EQ(gunzip(bytesOf(packed), "g"), bytesOf(text));
  EXPECT_EQ(gunzip(bytesOf(packed + zipped("end")), "g"), bytesOf(text + "end"));
  EXPECT_NE(
      messageOf([&] { gunzip(bytesOf(packed.substr(0, packed.size() / 2)), "g"); }).find("`g` is not a gzip file"),
      std::string::npos);
  std::string damaged = packed;
  damaged[packed.size() / 2] ^= 0x55;
  EXPECT_NE(messageOf([&] { gunzip(bytesOf(damaged), "g"); }), "nothing thrown");
}

TEST(ReadArrays, ChoosesByContent) {
  EXPECT_EQ(readArrays(TempFile(".csv.gz", zipped("1,2\n3,4\n")).path())[0].second.shape,
            (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(readArrays(TempFile("-images-idx3-ubyte.gz", zipped(big(0x801) + big(2) + "ab")).path())[0].second.shape,
            (std::vector<std::int64_t>{2}));
  const Array text = readArrays(TempFile(".txt", "hello").path())[0].second;
  EXPECT_EQ(text.type, ElementType::U8);
  EXPECT_EQ(text.count(), 5);
  EXPECT_NE(messageOf([] { readArrays("/nowhere/x.npy"); }).find("cannot read `/nowhere/x.npy`: No such file"),
            std::string::npos);
  EXPECT_NE(messageOf([] { readArrays("/tmp"); }).find("Is a directory"), std::string::npos);
  EXPECT_NE(messageOf([] { readArrays(TempFile(".npy", "hello").path()); }).find("first bytes"), std::string::npos);
}

TEST(SelectPart, FollowsNumpy) {
  const Array array = sampleArrays()[0].second;
  EXPECT_EQ(valuesOf(selectPart(array, "[:, 1:]", "a")), (std::vector<double>{2, 3, 5, 6}));
  EXPECT_EQ(selectPart(array, "[:, -1]", "a").shape, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(valuesOf(selectPart(array, "[1]", "a")), (std::vector<double>{4, 5, 6}));
  EXPECT_NE(messageOf([&] {
              selectPart(array, "[:, 5:9]", "a");
            }).find("`[:, 5:9]` cannot be applied to `a` of shape [2, 3]"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { selectPart(array, "[:, :, 1]", "a"); }).find("more dimensions"), std::string::npos);
  EXPECT_EQ(selectPart(array, "[2:, 1]", "a").shape, (std::vector<std::int64_t>{0}));
}

TEST(SelectPart, RefusesPositionsThatADimDoesNotHave) {
  const Array array = sampleArrays()[0].second;
  const std::string most = std::to_string(std::numeric_limits<std::int64_t>::max());
  for (const std::string& part : std::vector<std::string>{"2",
                                                          "3",
                                                          "-3",
                                                          "",
                                                          " ",
                                                          "2:1",
                                                          "3:",
                                                          ":3",
                                                          "-3:",
                                                          ":-3",
                                                          "x",
                                                          "0x1",
                                                          "1 1",
                                                          "1:1:1",
                                                          most,
                                                          "-" + most,
                                                          most + ":",
                                                          ":" + most,
                                                          most + "0",
                                                          "-" + most + "0:",
                                                          ":" + most + "0"}) {
    EXPECT_NE(messageOf([&] { selectPart(array, "[" + part + "]", "a"); }).find("is no part of a dimension of size 2"),
              std::string::npos)
        << part;
  }
}

TEST(ParseInteger, TakesAllOfTheTextOrNothing) {
  EXPECT_EQ(parseInteger("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parseInteger<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "-", "9223372036854775808", "-9223372036854775809"}) {
    EXPECT_EQ(parseInteger(text), std::nullopt) << text;
  }
  EXPECT_EQ(parseInteger<std::uint64_t>("-1"), std::nullopt);
}

TEST(RowOrder, IsAPermutationPerEpoch) {
  for (const std::int64_t rows : {1, 2, 5, 10, 1797, 60000}) {
    const RowOrder order(3, rows);
    std::vector<int> seen(static_cast<std::size_t>(rows), 0);
    std::int64_t moved = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = order.at(2, i);
      ASSERT_GE(row, 0);
      ASSERT_LT(row, rows);
      ++seen[static_cast<std::size_t>(row)];
      moved += row != order.at(3, i) ? 1 : 0;
    }
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), rows);
    EXPECT_EQ(*std::max_element(seen.begin(), seen.end()), 1);
    EXPECT_TRUE(rows <= 10 || moved > rows / 2);
  }
}

// A tile read part by part is the tile of the whole, whatever the split and however small the parts; of a tensor split
// by rows nothing is read but the tile's own rows.
TEST(TileRuns, PartsOfTheWholeMakeTheTile) {
  const std::vector<std::int64_t> shape = {6, 5, 7000};
  std::vector<float> whole(6 * 5 * 7000);
  std::iota(whole.begin(), whole.end(), 0.0f);
  const Tile tiles[] = {{{0, 0, 0}, {6, 5, 7000}, {6, 5, 7000}}, {{4, 0, 0}, {2, 5, 7000}, {4, 5, 7000}},
                        {{0, 3, 0}, {6, 2, 7000}, {6, 3, 7000}}, {{0, 0, 6996}, {6, 5, 4}, {6, 5, 1166}},
                        {{2, 2, 100}, {2, 2, 50}, {2, 2, 50}},   {{6, 0, 0}, {0, 5, 7000}, {2, 5, 7000}}};
  for (const Tile& tile : tiles) {
    const std::int64_t elements = tile.part[0] * tile.part[1] * tile.part[2];
    for (const std::int64_t partBytes : {1, 64, 30000, 1 << 22}) {
      std::vector<double> buffer(static_cast<std::size_t>(elements), -1);
      std::int64_t bytesRead = 0;
      const auto read = [&](std::int64_t first, std::int64_t count) {
        EXPECT_GE(first, 0);
        EXPECT_LE(first + count, static_cast<std::int64_t>(whole.size() * sizeof(float)));
        EXPECT_LE(count, std::max<std::int64_t>(partBytes, sizeof(float)));
        bytesRead += count;
        return reinterpret_cast<const std::byte*>(whole.data()) + first;
      };
      wholeToTile(tile, shape, ElementType::F32, read, ElementType::F64, reinterpret_cast<std::byte*>(buffer.data()),
                  partBytes);
      const std::int64_t live = tile.live[0] * tile.live[1] * tile.live[2];
      EXPECT_GE(bytesRead, live * 4);
      const bool inOneRun = tile.live[2] == 7000;  // or in runs with wide gaps
      EXPECT_TRUE(!inOneRun || bytesRead == live * 4) << bytesRead << " of " << live * 4;
      for (std::int64_t i = 0; i < elements; ++i) {
        const std::int64_t a = i / (tile.part[1] * tile.part[2]), b = i / tile.part[2] % tile.part[1],
                           c = i % tile.part[2];
        const bool isLive = a < tile.live[0] && b < tile.live[1] && c < tile.live[2];
        const std::int64_t flat = ((tile.offset[0] + a) * 5 + tile.offset[1] + b) * 7000 + tile.offset[2] + c;
        ASSERT_EQ(buffer[static_cast<std::size_t>(i)], isLive ? static_cast<double>(flat) : -1.0);
      }
    }
  }
}

TEST(FileReader, ReadsPartsOfRegularFilesAlone) {
  const std::string path = ::testing::TempDir() + "gshard_parts." + std::to_string(getpid());
  std::ofstream(path) << "0123456789";
  const FileReader file(path);
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(file.read(3, 4), bytesOf("3456"));
  EXPECT_EQ(file.read(10, 0), bytesOf(""));
  std::ofstream(path, std::ios::trunc) << "0123";
  EXPECT_NE(messageOf([&] { file.read(3, 4); }).find(path), std::string::npos) << "it shrank since it was opened";
  std::remove(path.c_str());
  for (const char* other : {"/dev/zero", "/", "/nowhere/at/all"})
    EXPECT_NE(messageOf([&] { FileReader(other).read(0, 1); }).find(other), std::string::npos);
}

}  // namespace
}  // namespace gshard::runtime
