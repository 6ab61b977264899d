// Text rendering: header, source lines with carets and labels, notes, proposals with a preview; see render.h.
// JSON is in render_json.cpp, apart because its header is slow to compile. Over 400 lines: one layout, whose parts
// share columns and widths.
#include "support/render.h"

#include <algorithm>
#include <map>

#include "support/text.h"

namespace gshard {
namespace {

constexpr std::size_t kTabWidth = 4;
constexpr std::size_t kTagColumn = 74;  // where [machine-applicable] stands when there is room
constexpr std::size_t kMaxPreviewLines = 8;
constexpr std::size_t kMaxColumns = 400;  // of a source line; a longer one (made by a program) is cut around its mark
constexpr std::size_t kBeforeMark = 60;

enum class Style { Plain, Gutter, Error, Warning, Remark, Secondary, Added, Bold };

const char* styleCode(Style style) {
  switch (style) {
    case Style::Plain:
      return "";
    case Style::Gutter:
      return "\x1b[34m";
    case Style::Error:
      return "\x1b[1;31m";
    case Style::Warning:
      return "\x1b[1;33m";
    case Style::Remark:
      return "\x1b[1;36m";
    case Style::Secondary:
      return "\x1b[1;34m";
    case Style::Added:
      return "\x1b[32m";
    case Style::Bold:
      return "\x1b[1m";
  }
  return "";
}

Style severityStyle(Severity severity) {
  switch (severity) {
    case Severity::Error:
      return Style::Error;
    case Severity::Warning:
      return Style::Warning;
    case Severity::Remark:
      return Style::Remark;
  }
  return Style::Plain;
}

// A source line as shown, and the display column of each of its bytes (one more for its end).
struct ShownLine {
  std::string text;
  std::vector<std::size_t> columnOf;
};

// Tabs become columns; control characters and broken UTF-8 become U+FFFD, so that no source can drive a terminal.
ShownLine showLine(std::string_view line) {
  ShownLine shown;
  std::size_t column = 0;
  std::size_t i = 0;
  while (i < line.size()) {
    const unsigned char lead = static_cast<unsigned char>(line[i]);
    std::size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead == '\t') {
      shown.text.append(kTabWidth, ' ');
      shown.columnOf.push_back(column);
      column += kTabWidth;
      ++i;
      continue;
    }
    if (lead < 0x20 || lead == 0x7F || i + length > line.size() || findInvalidUtf8(line.substr(i, length))) {
      length = 1;
      shown.text += "\xEF\xBF\xBD";
    } else {
      shown.text += line.substr(i, length);
    }
    shown.columnOf.insert(shown.columnOf.end(), length, column);
    ++column;
    i += length;
  }
  shown.columnOf.push_back(column);
  return shown;
}

// The columns of a long line that are shown, and the text of them.
struct Crop {
  std::size_t low = 0, high = 0;
  std::size_t shift = 0;  // what stands in front of them

  Crop(const ShownLine& line, std::size_t mark) {
    const std::size_t columns = line.columnOf.back();
    high = columns;
    if (columns <= kMaxColumns) return;
    low = std::min(mark, columns) > kBeforeMark ? std::min(mark, columns) - kBeforeMark : 0;
    high = std::min(columns, low + kMaxColumns);
    shift = low > 0 ? 1 : 0;
  }

  std::size_t column(std::size_t at) const { return std::clamp(at, low, high) - low + shift; }

  // Every code point of a shown line has one column.
  std::string text(const std::string& shown) const {
    std::string result = shift > 0 ? "…" : "";
    std::size_t at = 0;
    bool cut = false;
    for (const char c : shown) {
      const bool starts = (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
      if (starts) ++at;
      if (at > low && at <= high) result += c;
      cut = cut || at > high;
    }
    return cut ? result + "…" : result;
  }
};

struct Mark {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool primary = false;
  std::string text;
};

// A line of markers: single characters with a style, then free text.
struct MarkRow {
  std::vector<std::pair<char, Style>> cells;
  std::string text;
  Style textStyle = Style::Plain;

  void put(std::size_t column, char c, Style style) {
    if (cells.size() <= column) cells.resize(column + 1, {' ', Style::Plain});
    cells[column] = {c, style};
  }
};

class TextRenderer {
 public:
  TextRenderer(const Diagnostic& diagnostic, const SourceManager& sources, const RenderOptions& options)
      : diagnostic_(diagnostic), sources_(sources), options_(options), main_(severityStyle(diagnostic.severity)) {}

  std::string render() {
    collectMarks();
    header();
    for (const FileId file : files_) snippet(file);
    for (const Note& note : diagnostic_.notes) child("note", note.text + position(note.range));
    for (const FixIt& fix : diagnostic_.help) proposal(fix);
    const bool explained = options_.explainLine && !diagnostic_.code.empty();
    if (explained) child("see", "gshardc explain " + diagnostic_.code);
    return std::move(out_);
  }

 private:
  void styled(Style style, std::string_view text) {
    if (text.empty()) return;
    const bool wrap = options_.color && style != Style::Plain;
    if (wrap) out_ += styleCode(style);
    out_ += text;
    if (wrap) out_ += "\x1b[0m";
  }

  void addMark(SourceRange range, bool primary, const std::string& text) {
    if (!range.known()) return;
    const std::uint32_t line = sources_.lineColumn(range.file, range.begin).line;
    const std::string_view source = sources_.lineText(range.file, line);
    const ShownLine shown = showLine(source);
    const std::uint32_t start = sources_.lineStart(range.file, line);
    const std::size_t first = std::min<std::size_t>(range.begin - start, source.size());
    // A range over several lines is marked on its first.
    const std::size_t last = std::clamp<std::size_t>(range.end - start, first, source.size());
    const std::size_t begin = shown.columnOf[first];
    const std::size_t end = std::max(begin + 1, shown.columnOf[last]);
    if (std::find(files_.begin(), files_.end(), range.file) == files_.end()) files_.push_back(range.file);
    marks_[range.file][line].push_back({begin, end, primary, text});
    widest_ = std::max(widest_, line);
  }

  void collectMarks() {
    addMark(diagnostic_.range, true, diagnostic_.label);
    for (const Label& label : diagnostic_.labels) addMark(label.range, false, label.text);
    for (const FixIt& fix : diagnostic_.help) {
      for (const Edit& edit : fix.edits) {
        if (edit.range.known())
          widest_ = std::max(widest_, sources_.lineColumn(edit.range.file, edit.range.begin).line);
      }
    }
    gutter_ = widest_ > 0 ? std::to_string(widest_).size() : 1;
  }

  void header() {
    if (diagnostic_.range.known()) styled(Style::Bold, sources_.describe(diagnostic_.range) + ": ");
    std::string kind(severityName(diagnostic_.severity));
    if (!diagnostic_.code.empty()) kind += "[" + diagnostic_.code + "]";
    styled(main_, kind);
    styled(Style::Bold, ": " + diagnostic_.message);
    out_ += '\n';
  }

  void emptyGutter() { styled(Style::Gutter, std::string(gutter_ + 1, ' ') + "|"); }

  void sourceLine(std::uint32_t number, const std::string& text) {
    const std::string digits = std::to_string(number);
    styled(Style::Gutter, std::string(gutter_ - std::min(gutter_, digits.size()), ' ') + digits + " |");
    if (!text.empty()) out_ += " " + text;
    out_ += '\n';
  }

  void snippet(FileId file) {
    if (file != diagnostic_.range.file) {
      const std::uint32_t first = marks_[file].begin()->first;
      const SourceRange at{file, sources_.lineStart(file, first), 0};
      styled(Style::Gutter, std::string(gutter_ + 1, ' ') + "::: " + sources_.name(file) + ":" +
                                std::to_string(sources_.lineColumn(file, at.begin).line));
      out_ += '\n';
    }
    emptyGutter();
    out_ += '\n';
    std::uint32_t previous = 0;
    for (auto& [line, marks] : marks_[file]) {
      if (previous != 0 && line > previous + 1) {
        styled(Style::Gutter, "...");
        out_ += '\n';
      }
      previous = line;
      const ShownLine shown = showLine(sources_.lineText(file, line));
      const auto primary = std::find_if(marks.begin(), marks.end(), [](const Mark& mark) { return mark.primary; });
      const Crop crop(shown, primary != marks.end() ? primary->begin : marks.front().begin);
      for (Mark& mark : marks) {
        mark.begin = crop.column(mark.begin);
        mark.end = std::max(mark.begin + 1, crop.column(mark.end));
      }
      sourceLine(line, crop.text(shown.text));
      markRows(marks);
    }
  }

  void writeRow(const MarkRow& row) {
    emptyGutter();
    out_ += ' ';
    std::size_t i = 0;
    while (i < row.cells.size()) {
      const Style style = row.cells[i].second;
      std::string run;
      while (i < row.cells.size() && row.cells[i].second == style) run += row.cells[i++].first;
      styled(style, run);
    }
    styled(row.textStyle, row.text);
    out_ += '\n';
  }

  // As rustc: the rightmost label stands beside its marker when nothing is in the way, the others hang below theirs.
  void markRows(std::vector<Mark>& marks) {
    std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    MarkRow row;
    for (const bool primary : {false, true}) {
      for (const Mark& mark : marks) {
        if (mark.primary != primary) continue;
        for (std::size_t c = mark.begin; c < mark.end; ++c) row.put(c, primary ? '^' : '-', styleOf(mark));
      }
    }
    std::vector<const Mark*> hanging;
    for (const Mark& mark : marks) {
      if (!mark.text.empty()) hanging.push_back(&mark);
    }
    const Mark& last = marks.back();
    const bool clear = std::none_of(marks.begin(), marks.end() - 1,
                                    [&](const Mark& m) { return m.end > last.begin && !m.text.empty(); });
    const bool rightmost = row.cells.size() == last.end;
    if (!last.text.empty() && clear && rightmost) {
      row.text = " " + last.text;
      row.textStyle = styleOf(last);
      hanging.pop_back();
    }
    writeRow(row);
    if (!hanging.empty()) writeRow(connectors(hanging, hanging.size()));
    for (std::size_t i = hanging.size(); i-- > 0;) {
      MarkRow line = connectors(hanging, i);
      const std::size_t column = hanging[i]->begin;
      line.cells.resize(column, {' ', Style::Plain});
      line.text = hanging[i]->text;
      line.textStyle = styleOf(*hanging[i]);
      writeRow(line);
    }
  }

  MarkRow connectors(const std::vector<const Mark*>& hanging, std::size_t count) const {
    MarkRow row;
    for (std::size_t i = 0; i < count; ++i) row.put(hanging[i]->begin, '|', styleOf(*hanging[i]));
    return row;
  }

  Style styleOf(const Mark& mark) const { return mark.primary ? main_ : Style::Secondary; }

  std::string position(SourceRange range) const {
    if (!range.known()) return "";
    const bool same = range.file == diagnostic_.range.file;
    return " (" + (same ? sources_.describePosition(range) : sources_.describe(range)) + ")";
  }

  void child(std::string_view kind, std::string_view text, std::string_view tag = {}) {
    const std::size_t indent = gutter_ + 1 + 2 + kind.size() + 2;
    styled(Style::Gutter, std::string(gutter_ + 1, ' ') + "= ");
    styled(Style::Bold, std::string(kind) + ":");
    std::size_t width = indent;
    out_ += ' ';
    for (const char c : text) {
      out_ += c;
      const bool starts = (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
      width = c == '\n' ? indent : width + (starts ? 1 : 0);
      if (c == '\n') out_.append(indent, ' ');
    }
    if (!tag.empty()) {
      out_.append(width + 2 < kTagColumn ? kTagColumn - width : 2, ' ');
      styled(Style::Gutter, tag);
    }
    out_ += '\n';
  }

  void proposal(const FixIt& fix) {
    if (fix.edits.empty()) return child("help", fix.message);
    child("help", fix.message, fix.machineApplicable ? "[machine-applicable]" : "[maybe incorrect]");
    preview(fix.edits);
  }

  // The lines that the edits touch, as they would read, with what is new underlined.
  void preview(std::vector<Edit> edits) {
    std::erase_if(edits, [](const Edit& edit) { return !edit.range.known(); });
    std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.range < b.range; });
    std::size_t shown = 0;
    for (std::size_t i = 0; i < edits.size() && shown < kMaxPreviewLines;) {
      const FileId file = edits[i].range.file;
      const std::uint32_t firstLine = sources_.lineColumn(file, edits[i].range.begin).line;
      std::uint32_t lastLine = firstLine;
      std::size_t position = sources_.lineStart(file, firstLine);
      std::string text;
      std::vector<std::pair<std::size_t, std::size_t>> added;  // bytes of `text`
      for (; i < edits.size() && edits[i].range.file == file; ++i) {
        const SourceRange range = edits[i].range;
        if (sources_.lineColumn(file, range.begin).line > lastLine || range.begin < position) break;
        text += sources_.text(SourceRange{file, static_cast<std::uint32_t>(position), range.begin});
        added.push_back({text.size(), text.size() + edits[i].text.size()});
        text += edits[i].text;
        position = range.end;
        lastLine = std::max(lastLine, sources_.lineColumn(file, range.end).line);
      }
      const std::uint32_t lineEnd =
          sources_.lineStart(file, lastLine) + static_cast<std::uint32_t>(sources_.lineText(file, lastLine).size());
      text += sources_.text(SourceRange{file, static_cast<std::uint32_t>(position), lineEnd});
      while (i < edits.size() && edits[i].range.file == file && edits[i].range.begin < position) ++i;  // overlapping
      shown += previewLines(firstLine, text, added);
    }
  }

  std::size_t previewLines(std::uint32_t number, std::string_view text,
                           const std::vector<std::pair<std::size_t, std::size_t>>& added) {
    std::size_t start = 0;
    std::size_t count = 0;
    for (const std::string& line : splitText(text, '\n')) {
      if (++count > kMaxPreviewLines) break;
      const ShownLine shown = showLine(line);
      std::size_t first = shown.columnOf.back();
      for (const auto& [begin, end] : added) {
        if (begin >= start && begin <= start + line.size()) first = std::min(first, shown.columnOf[begin - start]);
      }
      const Crop crop(shown, first);
      sourceLine(number++, crop.text(shown.text));
      MarkRow row;
      for (const auto& [begin, end] : added) {
        const std::size_t from = std::clamp(begin, start, start + line.size()) - start;
        const std::size_t to = std::clamp(end, start, start + line.size()) - start;
        for (std::size_t c = crop.column(shown.columnOf[from]); c < crop.column(shown.columnOf[to]); ++c)
          row.put(c, '~', Style::Added);
      }
      if (!row.cells.empty()) writeRow(row);
      start += line.size() + 1;
    }
    return count;
  }

  const Diagnostic& diagnostic_;
  const SourceManager& sources_;
  const RenderOptions& options_;
  Style main_;
  std::string out_;
  std::vector<FileId> files_;  // in order of first mention, the primary one first
  std::map<FileId, std::map<std::uint32_t, std::vector<Mark>>> marks_;
  std::uint32_t widest_ = 0;
  std::size_t gutter_ = 1;
};

}  // namespace

std::string renderText(const Diagnostic& diagnostic, const SourceManager& sources, const RenderOptions& options) {
  return TextRenderer(diagnostic, sources, options).render();
}

std::string renderShort(const Diagnostic& diagnostic, const SourceManager& sources) {
  std::string text;
  if (diagnostic.range.known()) text = sources.describe(diagnostic.range) + ": ";
  text += severityName(diagnostic.severity);
  if (!diagnostic.code.empty()) text += "[" + diagnostic.code + "]";
  return text + ": " + diagnostic.message + "\n";
}

}  // namespace gshard
