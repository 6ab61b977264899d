// Whole files in memory and files written so that a reader never sees half of one. Every error names the file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gshard::runtime {

using Bytes = std::vector<std::byte>;

// Throws Failure (exit code 3).
Bytes readFile(const std::string& path);

// A regular file of which parts are read. Throws Failure (exit code 3).
class FileReader {
 public:
  explicit FileReader(std::string path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened
  // Bytes [offset, offset + count), which must lie in the file.
  Bytes read(std::uint64_t offset, std::size_t count) const;

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

// Throws when so many bytes are more than half of the machine's memory, before anybody asks for them.
void checkFitsMemory(std::uint64_t bytes, const std::string& path);

bool isGzip(const Bytes& bytes);

// Unpacks gzip (also several members in a row). Throws Failure when the stream is damaged or ends early.
Bytes gunzip(const Bytes& packed, const std::string& path);

// Inflates a raw deflate stream whose unpacked size is known; throws when it is not exactly that.
Bytes inflateRaw(const std::byte* packed, std::size_t packedBytes, std::size_t unpackedBytes, const std::string& path);

// Writes `path` by way of a temporary file beside it: data, fsync, rename, fsync of the folder. Removes the temporary
// file when never committed.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  std::int64_t written() const { return written_; }
  // Makes the file this long, so that others may write their parts of it (FilePart). Throws when there is no room.
  void reserve(std::int64_t bytes);
  const std::string& temporary() const { return temporary_; }
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int file_ = -1;
  std::int64_t written_ = 0;
};

// A part of an AtomicFile that another device, thread or process, writes at its offsets before the file is committed.
class FilePart {
 public:
  // `path` is for messages.
  FilePart(std::string path, const std::string& temporary);
  ~FilePart();
  FilePart(const FilePart&) = delete;
  FilePart& operator=(const FilePart&) = delete;

  void writeAt(std::int64_t offset, const void* data, std::size_t bytes);
  void sync();

 private:
  std::string path_;
  int file_ = -1;
};

void makeFolders(const std::string& path);

// Reads little- and big-endian numbers from bytes with a length check; what a reader of a format needs.
class ByteReader {
 public:
  ByteReader(const Bytes& bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}

  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }
  void seek(std::size_t position) { position_ = position; }

  // Throws Failure (FileTruncated) naming `what` when fewer bytes are left.
  const std::byte* take(std::size_t count, const char* what);
  std::uint64_t littleEndian(int bytes, const char* what);
  std::uint64_t bigEndian(int bytes, const char* what);

 private:
  const Bytes& bytes_;
  std::string path_;
  std::size_t position_ = 0;
};

}  // namespace gshard::runtime
