// Files; see file_bytes.h.
#include "runtime/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/failure.h"

namespace gshard::runtime {

static Failure unreadable(const std::string& path) {
  return failure(kExitIo, diag::FileUnreadable, path, std::string(std::strerror(errno)));
}

static Failure unwritable(const std::string& path) {
  return failure(kExitIo, diag::FileUnwritable, path, std::string(std::strerror(errno)));
}

// What a machine can hold: a file or a packed stream beyond that is refused before it takes all memory. Devices such as
// /dev/zero have no end at all.
static std::size_t mostBytes() {
  static const std::size_t most =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE)) / 2;
  return most;
}

static Failure tooLarge(const std::string& path) {
  return failure(kExitIo, diag::FileUnreadable, path, std::string("it is larger than half the memory of this machine"));
}

void checkFitsMemory(std::uint64_t bytes, const std::string& path) {
  if (bytes > mostBytes()) throw tooLarge(path);
}

Bytes readFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw unreadable(path);
  struct stat info{};
  if (fstat(file, &info) != 0 || S_ISDIR(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) errno = EISDIR;
    const Failure failed = unreadable(path);
    close(file);
    throw failed;
  }
  if (S_ISCHR(info.st_mode) || static_cast<std::size_t>(std::max<off_t>(info.st_size, 0)) > mostBytes()) {
    close(file);
    throw S_ISCHR(info.st_mode)
        ? failure(kExitIo, diag::FileUnreadable, path, std::string("it is a device, which need not end"))
        : tooLarge(path);
  }
  Bytes bytes(static_cast<std::size_t>(std::max<off_t>(info.st_size, 0)));
  std::size_t done = 0;
  while (true) {
    if (done > mostBytes()) {
      close(file);
      throw tooLarge(path);
    }
    if (done == bytes.size()) bytes.resize(bytes.size() + 65536);  // grows while read, or a pipe
    const ssize_t count = read(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const Failure failed = unreadable(path);
      close(file);
      throw failed;
    }
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  close(file);
  bytes.resize(done);
  return bytes;
}

FileReader::FileReader(std::string path) : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw unreadable(path_);
  struct stat info{};
  const bool known = fstat(file_, &info) == 0;
  if (known && S_ISREG(info.st_mode)) {
    size_ = static_cast<std::uint64_t>(info.st_size);
    return;
  }
  if (known) errno = S_ISDIR(info.st_mode) ? EISDIR : ESPIPE;
  const Failure failed = unreadable(path_);
  close(file_);
  throw failed;
}

FileReader::~FileReader() {
  close(file_);
}

Bytes FileReader::read(std::uint64_t offset, std::size_t count) const {
  checkFitsMemory(count, path_);
  Bytes bytes(count);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = pread(file_, bytes.data() + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw unreadable(path_);
    if (got == 0) {  // it shrank since it was opened
      throw failure(kExitIo, diag::FileTruncated, path_, static_cast<std::int64_t>(offset + done),
                    std::string("what its header says"), static_cast<std::int64_t>(offset + count));
    }
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

bool isGzip(const Bytes& bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

// One inflate run; `out` grows as needed, or must be filled exactly when `fixed`.
static int inflateInto(z_stream& stream, Bytes& out, std::size_t& used, bool fixed) {
  while (true) {
    if (used == out.size()) {
      if (fixed) {
        // Full: only the end marker may follow.
        std::byte extra{};
        stream.next_out = reinterpret_cast<Bytef*>(&extra);
        stream.avail_out = 1;
        const int status = inflate(&stream, Z_NO_FLUSH);
        return stream.avail_out == 0 ? Z_BUF_ERROR : status;
      }
      out.resize(std::max<std::size_t>(out.size() * 2, 65536));
    }
    const std::size_t room = std::min<std::size_t>(out.size() - used, std::size_t{1} << 30);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    used += room - stream.avail_out;
    if (status != Z_OK) return status;
    if (stream.avail_out != 0 && stream.avail_in == 0) return Z_BUF_ERROR;
  }
}

Bytes gunzip(const Bytes& packed, const std::string& path) {
  Bytes out(packed.size() * 4 + 1024);
  std::size_t used = 0;
  std::size_t position = 0;
  while (position < packed.size()) {
    z_stream stream{};
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw Failure{kExitMemory, "no memory to unpack `" + path + "`"};
    // Members are at most as long as what is left; avail_in is 32 bits wide.
    int status = Z_OK;
    while (status == Z_OK || status == Z_BUF_ERROR) {
      if (used > mostBytes()) {
        inflateEnd(&stream);
        throw tooLarge(path);
      }
      const std::size_t piece = std::min<std::size_t>(packed.size() - position, std::size_t{1} << 30);
      if (piece == 0) break;
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + position));
      stream.avail_in = static_cast<uInt>(piece);
      status = inflateInto(stream, out, used, false);
      const std::size_t consumed = piece - stream.avail_in;
      position += consumed;
      if (consumed == 0 && status == Z_BUF_ERROR) break;
    }
    const std::string reason = stream.msg != nullptr ? stream.msg : "it ends early";
    inflateEnd(&stream);
    if (status != Z_STREAM_END) throw failure(kExitIo, diag::FileMalformed, path, std::string("gzip"), reason);
    // Zero padding after a member is common and harmless.
    while (position < packed.size() && packed[position] == std::byte{0}) ++position;
  }
  out.resize(used);
  return out;
}

Bytes inflateRaw(const std::byte* packed, std::size_t packedBytes, std::size_t unpackedBytes, const std::string& path) {
  // Deflate shrinks by at most 1032 to 1: a claim beyond that is false, and is refused before memory is taken.
  if (unpackedBytes / 1032 > packedBytes + 1) {
    throw failure(kExitIo, diag::FileMalformed, path, std::string("zip"),
                  std::string("a member claims more bytes than its data can hold"));
  }
  Bytes out(unpackedBytes);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw Failure{kExitMemory, "no memory to unpack `" + path + "`"};
  std::size_t used = 0;
  std::size_t position = 0;
  int status = Z_OK;
  while (status == Z_OK || (status == Z_BUF_ERROR && position < packedBytes)) {
    const std::size_t piece = std::min<std::size_t>(packedBytes - position, std::size_t{1} << 30);
    if (piece == 0) break;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed + position));
    stream.avail_in = static_cast<uInt>(piece);
    status = inflateInto(stream, out, used, true);
    const std::size_t consumed = piece - stream.avail_in;
    position += consumed;
    if (consumed == 0) break;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || used != unpackedBytes) {
    throw failure(kExitIo, diag::FileMalformed, path, std::string("zip"),
                  "a member unpacks to " + std::to_string(used) + " bytes instead of " + std::to_string(unpackedBytes));
  }
  return out;
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  temporary_ = path_ + ".tmp" + std::to_string(getpid());
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) throw unwritable(path_);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::write(file_, from, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw unwritable(path_);
    from += count;
    bytes -= static_cast<std::size_t>(count);
    written_ += count;
  }
}

void AtomicFile::commit() {
  if (fsync(file_) != 0) throw unwritable(path_);
  if (close(std::exchange(file_, -1)) != 0) throw unwritable(path_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) throw unwritable(path_);
  temporary_.clear();
  const std::size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle >= 0) {
    fsync(handle);  // not all file systems can; the data itself is safe by now
    close(handle);
  }
}

void AtomicFile::reserve(std::int64_t bytes) {
  const int error = bytes > 0 ? posix_fallocate(file_, 0, bytes) : 0;
  if (error != 0) {
    errno = error;
    throw unwritable(path_);
  }
}

FilePart::FilePart(std::string path, const std::string& temporary) : path_(std::move(path)) {
  file_ = open(temporary.c_str(), O_WRONLY | O_CLOEXEC);
  if (file_ < 0) throw unwritable(path_);
}

FilePart::~FilePart() {
  if (file_ >= 0) close(file_);
}

void FilePart::writeAt(std::int64_t offset, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = pwrite(file_, from, bytes, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw unwritable(path_);
    from += count;
    offset += count;
    bytes -= static_cast<std::size_t>(count);
  }
}

void FilePart::sync() {
  if (fsync(file_) != 0) throw unwritable(path_);
}

void makeFolders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) throw unwritable(part);
    if (end == std::string::npos) return;
  }
}

const std::byte* ByteReader::take(std::size_t count, const char* what) {
  if (count > left()) {
    throw failure(kExitIo, diag::FileTruncated, path_, static_cast<std::int64_t>(bytes_.size()), std::string(what),
                  static_cast<std::int64_t>(position_ + std::min<std::size_t>(count, std::size_t{1} << 62)));
  }
  const std::byte* data = bytes_.data() + position_;
  position_ += count;
  return data;
}

std::uint64_t ByteReader::littleEndian(int bytes, const char* what) {
  const std::byte* data = take(static_cast<std::size_t>(bytes), what);
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = (value << 8) | static_cast<std::uint64_t>(data[i]);
  return value;
}

std::uint64_t ByteReader::bigEndian(int bytes, const char* what) {
  const std::byte* data = take(static_cast<std::size_t>(bytes), what);
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = (value << 8) | static_cast<std::uint64_t>(data[i]);
  return value;
}

}  // namespace gshard::runtime
