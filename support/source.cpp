// Files, lines and columns; see source.h.
#include "support/source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "support/check.h"

namespace gshard {

// Offsets are 32 bits; half of that leaves room for ranges built by adding.
static constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;  // far beyond any program, far below any memory

SourceRange join(SourceRange first, SourceRange last) {
  if (!first.known()) return last;
  if (!last.known() || first.file != last.file) return first;
  return {first.file, std::min(first.begin, last.begin), std::max(first.end, last.end)};
}

FileId SourceManager::addFile(std::string name, std::string text) {
  GSHARD_CHECK(text.size() < kMaxFileBytes, "source text of 64 MiB or more");
  Entry& entry = files_.emplace_back(Entry{std::move(name), std::move(text), {0}});
  for (std::size_t i = 0; i < entry.text.size(); ++i) {
    if (entry.text[i] == '\n') entry.lineStarts.push_back(static_cast<std::uint32_t>(i + 1));
  }
  return FileId{static_cast<std::uint32_t>(files_.size() - 1)};
}

std::optional<FileId> SourceManager::addFileFromDisk(const std::string& path, std::string& error, std::string name) {
  struct stat info{};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    error = "is a folder";
    return std::nullopt;
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) {
    error = std::strerror(errno);
    return std::nullopt;
  }
  std::string text;
  char block[1 << 16];
  std::size_t got = 0;
  while ((got = std::fread(block, 1, sizeof block, file.get())) > 0) {
    text.append(block, got);
    if (text.size() >= kMaxFileBytes) {
      error = "is larger than 64 MiB";
      return std::nullopt;
    }
  }
  if (std::ferror(file.get())) {
    error = std::strerror(errno);
    return std::nullopt;
  }
  if (name.empty()) name = path;
  return addFile(std::move(name), std::move(text));
}

const SourceManager::Entry& SourceManager::entry(FileId file) const {
  GSHARD_CHECK(file.value < files_.size(), "unknown file");
  return files_[file.value];
}

const std::string& SourceManager::name(FileId file) const {
  return entry(file).name;
}

std::string_view SourceManager::text(FileId file) const {
  return entry(file).text;
}

std::string_view SourceManager::text(SourceRange range) const {
  if (!range.known()) return {};
  const std::string_view all = entry(range.file).text;
  const std::size_t begin = std::min<std::size_t>(range.begin, all.size());
  const std::size_t end = std::clamp<std::size_t>(range.end, begin, all.size());
  return all.substr(begin, end - begin);
}

std::optional<FileId> SourceManager::findFile(std::string_view name) const {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].name == name) return FileId{static_cast<std::uint32_t>(i)};
  }
  return std::nullopt;
}

LineColumn SourceManager::lineColumn(FileId file, std::uint32_t offset) const {
  const Entry& e = entry(file);
  offset = std::min(offset, static_cast<std::uint32_t>(e.text.size()));
  const std::uint32_t line = lineNumber(file, offset);
  std::uint32_t column = 1;
  for (std::uint32_t i = e.lineStarts[line - 1]; i < offset; ++i) {
    if ((static_cast<unsigned char>(e.text[i]) & 0xC0u) != 0x80u) ++column;
  }
  return {line, column};
}

std::uint32_t SourceManager::lineNumber(FileId file, std::uint32_t offset) const {
  const std::vector<std::uint32_t>& starts = entry(file).lineStarts;
  return static_cast<std::uint32_t>(std::upper_bound(starts.begin(), starts.end(), offset) - starts.begin());
}

std::uint32_t SourceManager::lineCount(FileId file) const {
  return static_cast<std::uint32_t>(entry(file).lineStarts.size());
}

std::uint32_t SourceManager::lineStart(FileId file, std::uint32_t line) const {
  const Entry& e = entry(file);
  GSHARD_CHECK(line >= 1 && line <= e.lineStarts.size(), "line out of range");
  return e.lineStarts[line - 1];
}

std::string_view SourceManager::lineText(FileId file, std::uint32_t line) const {
  const Entry& e = entry(file);
  const std::size_t begin = lineStart(file, line);
  const std::size_t end = line < e.lineStarts.size() ? e.lineStarts[line] - 1 : e.text.size();
  std::string_view text = std::string_view(e.text).substr(begin, end - begin);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::string SourceManager::describePosition(SourceRange range) const {
  if (!range.known()) return "<unknown>";
  const LineColumn at = lineColumn(range.file, range.begin);
  return std::to_string(at.line) + ":" + std::to_string(at.column);
}

std::string SourceManager::describe(SourceRange range) const {
  if (!range.known()) return "<unknown>";
  return name(range.file) + ":" + describePosition(range);
}

}  // namespace gshard
