// Source files and ranges in them. A range is two byte offsets, so that it is cheap to carry on every token, node
// and op; lines and columns are worked out only when a person is shown one.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gshard {

/// A file known to a SourceManager. The default value names no file.
struct FileId {
  static constexpr std::uint32_t kNone = 0xffffffffu;
  std::uint32_t value = kNone;

  bool known() const { return value != kNone; }
  bool operator==(const FileId&) const = default;
  auto operator<=>(const FileId&) const = default;
};

/// Bytes [begin, end) of a file. A default range is unknown: what the compiler made up has none.
struct SourceRange {
  FileId file;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool known() const { return file.known(); }
  bool operator==(const SourceRange&) const = default;
  auto operator<=>(const SourceRange&) const = default;
};

/// From the start of `first` to the end of `last`; either may be unknown. Of ranges in two files, `first` wins.
SourceRange join(SourceRange first, SourceRange last);

/// 1-based; columns count code points.
struct LineColumn {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  bool operator==(const LineColumn&) const = default;
};

/// Owns the text of all files. Text never moves once added, so string_views into it stay good.
class SourceManager {
 public:
  SourceManager() = default;
  SourceManager(const SourceManager&) = delete;
  SourceManager& operator=(const SourceManager&) = delete;

  /// `name` is what messages show; it need not exist on disk.
  FileId addFile(std::string name, std::string text);

  /// Reads `path`, named as `name` (or as `path` when empty). On failure: nullopt and the reason in `error`.
  std::optional<FileId> addFileFromDisk(const std::string& path, std::string& error, std::string name = {});

  const std::string& name(FileId file) const;
  std::string_view text(FileId file) const;
  std::string_view text(SourceRange range) const;
  std::size_t fileCount() const { return files_.size(); }
  std::optional<FileId> findFile(std::string_view name) const;

  /// An offset past the end is the end.
  LineColumn lineColumn(FileId file, std::uint32_t offset) const;
  /// The line alone, without counting columns.
  std::uint32_t lineNumber(FileId file, std::uint32_t offset) const;
  std::uint32_t lineCount(FileId file) const;
  /// Byte offset of the start of a 1-based line.
  std::uint32_t lineStart(FileId file, std::uint32_t line) const;
  /// The line without its line end.
  std::string_view lineText(FileId file, std::uint32_t line) const;

  /// "digits_mlp.gsd:17:32", of the start of the range; "<unknown>" if it is.
  std::string describe(SourceRange range) const;
  /// "17:32"
  std::string describePosition(SourceRange range) const;

 private:
  struct Entry {
    std::string name;
    std::string text;
    std::vector<std::uint32_t> lineStarts;
  };
  const Entry& entry(FileId file) const;

  std::deque<Entry> files_;
};

}  // namespace gshard
