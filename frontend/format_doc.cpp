// The printer of documents; see format_doc.h.
#include "frontend/format_doc.h"

#include <algorithm>
#include <utility>

#include "support/text.h"

namespace gshard {

Doc Doc::concat(std::vector<Doc> parts) {
  Doc doc;
  doc.parts = std::move(parts);
  for (const Doc& part : doc.parts) doc.forced = doc.forced || part.forced;
  return doc;
}

Doc Doc::indent(std::vector<Doc> parts) {
  Doc doc = concat(std::move(parts));
  doc.kind = Kind::Indent;
  return doc;
}

Doc Doc::group(std::vector<Doc> parts, bool forced) {
  Doc doc = concat(std::move(parts));
  doc.kind = Kind::Group;
  doc.forced = doc.forced || forced;
  return doc;
}

Doc Doc::tokenAt(std::size_t index) {
  Doc doc = of(Kind::Token);
  doc.token = index;
  return doc;
}

Doc Doc::literal(std::string text) {
  Doc doc = of(Kind::Literal);
  doc.text = std::move(text);
  return doc;
}

Doc Doc::ifBroken(std::string text) {
  Doc doc = of(Kind::IfBroken);
  doc.text = std::move(text);
  return doc;
}

Doc Doc::hardLine(bool blank) {
  Doc doc = of(Kind::HardLine);
  doc.blank = blank;
  doc.forced = true;
  return doc;
}

Doc Doc::leading(std::size_t token, bool keepBlank) {
  Doc doc = of(Kind::Leading);
  doc.token = token;
  doc.blank = keepBlank;
  return doc;
}

Doc Doc::lineComments(std::size_t token) {
  Doc doc = of(Kind::LineComments);
  doc.token = token;
  return doc;
}

std::int64_t displayWidth(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; });
}

namespace {

constexpr std::int64_t kStep = 4;

struct OutputLine {
  std::int64_t indent = 0;
  std::string code;
  std::string comment;  // a `//` comment at its end
  bool raw = false;     // continues a comment of several lines: stands as it was
  bool empty() const { return code.empty() && comment.empty() && !raw; }
};

std::string trimmedRight(std::string text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.pop_back();
  return text;
}

class Writer {
 public:
  bool lineEmpty() const { return line_.empty(); }
  std::int64_t lineIndent() const { return line_.indent; }
  std::int64_t width() const { return (line_.raw ? 0 : line_.indent) + displayWidth(line_.code) + (space_ ? 1 : 0); }
  const std::string& code() const { return line_.code; }

  // A second break at the same place does nothing; `blank` leaves one empty line.
  void newLine(std::int64_t indent, bool blank) {
    if (!line_.empty()) lines_.push_back(std::move(line_));
    if (blank && !lines_.empty() && !lines_.back().empty()) lines_.emplace_back();
    line_ = OutputLine{};
    line_.indent = indent;
    space_ = afterInline_ = false;
  }

  void space() { space_ = !line_.empty(); }

  // `joins`: may stand before the comment that ends the line.
  void text(const std::string& text, std::int64_t indent, bool joins = false) {
    if (!line_.comment.empty() && !joins) newLine(indent + kStep, false);
    const bool tight = text == "," || text == ")" || text == "]";
    if ((space_ || (afterInline_ && !tight)) && !line_.code.empty()) line_.code += ' ';
    line_.code += text;
    space_ = afterInline_ = false;
  }

  // A block comment between two tokens of a line.
  void inlineComment(const std::string& comment, std::int64_t indent) {
    if (!line_.comment.empty()) newLine(indent + kStep, false);
    const bool opened = line_.code.empty() || line_.code.ends_with('(') || line_.code.ends_with('[');
    if (!opened && !line_.code.ends_with(' ')) line_.code += ' ';
    space_ = false;
    verbatim(comment);
    afterInline_ = true;
  }

  void lineComment(const std::string& comment, std::int64_t indent) {
    if (!line_.comment.empty()) newLine(indent + kStep, false);
    line_.comment = comment;
    space_ = false;
  }

  // On a line of its own, at the place of an empty line or below the one that is being written.
  void ownLine(const std::string& comment, std::int64_t indent, bool blank) {
    const std::int64_t at = line_.empty() ? line_.indent : indent + kStep;
    newLine(at, blank);
    verbatim(comment);
    newLine(at, false);
  }

  std::string finish() {
    newLine(0, false);
    alignComments();
    std::string text;
    for (const OutputLine& line : lines_) {
      std::string shown =
          line.raw || line.empty() ? line.code : std::string(static_cast<std::size_t>(line.indent), ' ') + line.code;
      if (!line.comment.empty()) shown += (line.code.empty() ? "" : "  ") + line.comment;
      text += line.raw && line.comment.empty() ? shown : trimmedRight(shown);
      text += '\n';
    }
    return text;
  }

 private:
  void verbatim(const std::string& comment) {
    const std::vector<std::string> parts = splitText(comment, '\n');
    line_.code += parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) {
      lines_.push_back(std::move(line_));
      line_ = OutputLine{};
      line_.raw = true;
      line_.code = parts[i];
    }
  }

  // Comments at the ends of neighbouring lines start in one column; not where a line is comments alone, which the next
  // formatting would not see as a neighbour.
  void alignComments() {
    for (std::size_t i = 0; i < lines_.size();) {
      std::size_t end = i;
      std::int64_t widest = 0;
      for (; end < lines_.size() && !lines_[end].comment.empty() && !lines_[end].raw && !lines_[end].code.empty() &&
             !lines_[end].code.starts_with("/*") && lines_[end].indent == lines_[i].indent;
           ++end) {
        lines_[end].code = trimmedRight(std::move(lines_[end].code));
        widest = std::max(widest, displayWidth(lines_[end].code));
      }
      for (std::size_t k = i; k < end; ++k)
        lines_[k].code.append(static_cast<std::size_t>(widest - displayWidth(lines_[k].code)), ' ');
      i = std::max(end, i + 1);
    }
  }

  std::vector<OutputLine> lines_;
  OutputLine line_;
  bool space_ = false;
  bool afterInline_ = false;
};

struct Item {
  const Doc* doc;
  std::int64_t indent;
  bool broken;
};

class Printer {
 public:
  explicit Printer(const std::vector<FormatToken>& tokens) : tokens_(tokens) {}

  void print(const Doc& doc, Writer& writer) {
    std::vector<Item> work = {{&doc, 0, true}};
    while (!work.empty()) {
      const Item item = work.back();
      work.pop_back();
      if (item.doc->kind == Doc::Kind::Group) {
        const bool flat = !item.broken || (!item.doc->forced && fits(*item.doc, item.indent, work, writer));
        push(*item.doc, item.indent, !flat, work);
      } else {
        step(item, work, writer, true);
      }
    }
  }

  void printFlat(const Doc& doc, Writer& writer) {
    std::vector<Item> work = {{&doc, 0, false}};
    while (!work.empty()) {
      const Item item = work.back();
      work.pop_back();
      step(item, work, writer, false);
    }
  }

 private:
  static void push(const Doc& doc, std::int64_t indent, bool broken, std::vector<Item>& work) {
    for (auto part = doc.parts.rbegin(); part != doc.parts.rend(); ++part) work.push_back({&*part, indent, broken});
  }

  // Everything but the choice of groups, which go on as their surroundings. With `comments` false those that stand on
  // lines of their own and those that end lines are left out.
  void step(const Item& item, std::vector<Item>& work, Writer& writer, bool comments) const {
    const Doc& doc = *item.doc;
    switch (doc.kind) {
      case Doc::Kind::Concat:
      case Doc::Kind::Group:
        push(doc, item.indent, item.broken, work);
        return;
      case Doc::Kind::Indent:
        push(doc, item.indent + kStep, item.broken, work);
        return;
      case Doc::Kind::Token:
        token(doc.token, item.indent, writer, comments);
        return;
      case Doc::Kind::Literal:
        writer.text(doc.text, item.indent);
        return;
      case Doc::Kind::Space:
        writer.space();
        return;
      case Doc::Kind::Line:
        if (item.broken) {
          writer.newLine(item.indent, false);
        } else {
          writer.space();
        }
        return;
      case Doc::Kind::SoftLine:
        if (item.broken) writer.newLine(item.indent, false);
        return;
      case Doc::Kind::HardLine:
        writer.newLine(item.indent, doc.blank);
        return;
      case Doc::Kind::IfBroken:
        if (item.broken) writer.text(doc.text, item.indent, doc.text == ",");
        return;
      case Doc::Kind::Leading:
        if (comments) leading(doc.token, doc.blank, item.indent, writer);
        return;
      case Doc::Kind::LineComments:
        if (comments) trailing(tokens_[doc.token], false, true, item.indent, writer);
        return;
    }
  }

  // The empty line before the first of them is the business of whoever made the line break there.
  void leading(std::size_t index, bool keepBlank, std::int64_t indent, Writer& writer) const {
    bool first = true;
    for (const FormatComment& comment : tokens_[index].leading) {
      if (!comment.ownLine) continue;
      writer.ownLine(comment.text, indent, comment.blankBefore && !first);
      first = false;
    }
    if (!first && keepBlank && tokens_[index].blankBefore) writer.newLine(writer.lineIndent(), true);
  }

  static void trailing(const FormatToken& token, bool inside, bool atEnd, std::int64_t indent, Writer& writer) {
    for (const FormatComment& comment : token.trailing) {
      const bool line = comment.text.starts_with("//");
      if (line && atEnd) writer.lineComment(comment.text, indent);
      if (!line && inside) writer.inlineComment(comment.text, indent);
    }
  }

  void token(std::size_t index, std::int64_t indent, Writer& writer, bool comments) const {
    const FormatToken& token = tokens_[index];
    // Those on lines of their own were printed by a Leading before a statement; a second time is prevented there.
    if (comments && !detached(index)) leading(index, false, indent, writer);
    for (const FormatComment& comment : token.leading) {
      if (!comment.ownLine) writer.inlineComment(comment.text, indent);
    }
    if (!token.text.empty()) writer.text(token.text, indent, mayJoin(token));
    trailing(token, true, comments, indent, writer);
  }

  // A comma or brace goes before the comment of the line before. Not a brace with a `///` of its own: that would get a
  // line to itself and document what follows.
  static bool mayJoin(const FormatToken& token) {
    if (token.text == ",") return true;
    return token.text == "{" && std::none_of(token.trailing.begin(), token.trailing.end(),
                                             [](const FormatComment& c) { return c.text.starts_with("///"); });
  }

  bool detached(std::size_t index) const { return index < detached_.size() && detached_[index]; }

  // Whether the group on one line, and what follows up to the next place for a break, end before the margin.
  bool fits(const Doc& group, std::int64_t indent, const std::vector<Item>& rest, const Writer& writer) const {
    Writer trial;
    trial.newLine(0, false);
    const std::int64_t start = writer.lineEmpty() ? writer.lineIndent() : writer.width();
    // The characters before it matter to comments alone (a space or none).
    if (!writer.lineEmpty())
      trial.text(writer.code().empty() ? "x" : writer.code().substr(writer.code().size() - 1), 0);
    const std::int64_t before = trial.width();
    std::vector<Item> work = {{&group, indent, false}};
    while (!work.empty()) {
      const Item item = work.back();
      work.pop_back();
      step(item, work, trial, false);
      if (start + trial.width() - before > kFormatWidth) return false;
    }
    for (std::size_t i = rest.size(); i > 0; --i) {
      work.push_back(rest[i - 1]);
      while (!work.empty()) {
        const Item item = work.back();
        work.pop_back();
        const Doc::Kind kind = item.doc->kind;
        if (kind == Doc::Kind::HardLine || kind == Doc::Kind::Line || kind == Doc::Kind::SoftLine) return true;
        if (kind != Doc::Kind::IfBroken) step(item, work, trial, false);
        if (start + trial.width() - before > kFormatWidth) return false;
      }
    }
    return true;
  }

  const std::vector<FormatToken>& tokens_;

 public:
  std::vector<bool> detached_;
};

void collectDetached(const Doc& doc, std::vector<bool>& detached) {
  std::vector<const Doc*> work = {&doc};
  while (!work.empty()) {
    const Doc* next = work.back();
    work.pop_back();
    if (next->kind == Doc::Kind::Leading) detached[next->token] = true;
    for (const Doc& part : next->parts) work.push_back(&part);
  }
}

}  // namespace

std::string printDoc(const Doc& doc, const std::vector<FormatToken>& tokens) {
  Printer printer(tokens);
  printer.detached_.resize(tokens.size());
  collectDetached(doc, printer.detached_);
  Writer writer;
  printer.print(doc, writer);
  return writer.finish();
}

std::string printFlat(const Doc& doc, const std::vector<FormatToken>& tokens) {
  Printer printer(tokens);
  Writer writer;
  printer.printFlat(doc, writer);
  return writer.code();
}

}  // namespace gshard
