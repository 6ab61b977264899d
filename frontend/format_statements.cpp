// Statements, members and declarations one below the other: columns, empty lines, the block of imports; see
// format_builder.h.
#include <algorithm>

#include "frontend/format_builder.h"
#include "support/text.h"

namespace gshard {

using antlr4::ParserRuleContext;
using antlr4::tree::ParseTree;
using grammar::GsdLexer;
using grammar::GsdParser;
using Docs = std::vector<Doc>;

// `let`, `const`, `param` and `state` come with their columns; not a `let` that takes a tuple apart, whose list of
// names would push the values of its neighbours far from theirs.
DocBuilder::Entry DocBuilder::entry(ParserRuleContext* context) {
  while (context->children.size() == 1 && ruleOf(context->children[0])) context = ruleOf(context->children[0]);
  Entry result;
  result.first = first(context);
  result.last = last(context);
  switch (context->getRuleIndex()) {
    case GsdParser::RuleLetDecl:
    case GsdParser::RuleConstDecl:
    case GsdParser::RuleParamMember:
    case GsdParser::RuleStateDecl:
      break;
    default:
      result.doc = rule(context);
      return result;
  }
  Docs head, typeAnnotations, value, valueAnnotations;
  bool inType = false, inValue = false;  // comments that break lines among the annotations
  const auto part = [&](ParserRuleContext* annotatedPart, Docs& plain, Docs& marks, bool& breaks) {
    breaks = annotatedPart->children.size() > 1 &&
             breaksInside(last(ruleOf(annotatedPart->children[0])), last(annotatedPart));
    for (ParseTree* child : annotatedPart->children) {
      (ruleIndex(child) == GsdParser::RuleAnnotation ? marks : plain).push_back(any(child));
    }
  };
  for (ParseTree* child : context->children) {
    const std::size_t type = typeOf(child);
    Docs& side = value.empty() ? head : value;
    if (type == GsdLexer::ASSIGN) {
      value.push_back(Doc::tokenAt(tokenOf(child)));
      continue;
    }
    if (!side.empty() && type != GsdLexer::COLON) side.push_back(Doc::of(Doc::Kind::Space));
    if (ruleIndex(child) == GsdParser::RuleAnnotatedType) {
      part(ruleOf(child), head, typeAnnotations, inType);
    } else if (ruleIndex(child) == GsdParser::RuleExpression) {
      part(ruleOf(child), value, valueAnnotations, inValue);
    } else {
      side.push_back(any(child));
    }
  }
  const Doc typeMarks = annotations(typeAnnotations, inType), valueMarks = annotations(valueAnnotations, inValue);
  const Doc left = Doc::concat(std::move(head)), right = Doc::concat(std::move(value));
  Docs whole = {left, typeMarks};
  if (!right.parts.empty()) whole.push_back(Doc::of(Doc::Kind::Space));
  whole.push_back(right);
  whole.push_back(valueMarks);
  result.doc = Doc::concat(std::move(whole));
  const std::vector<FormatComment>& behind = tokens_[result.last].trailing;
  const bool longComment = std::any_of(behind.begin(), behind.end(),
                                       [](const FormatComment& c) { return c.text.find('\n') != std::string::npos; });
  auto* let = dynamic_cast<GsdParser::LetDeclContext*>(context);
  if (let && let->letNames()->LPAREN()) return result;
  if (result.doc.forced || longComment || breaksInside(result.first, result.last)) return result;
  const std::int64_t indent = 4 * depth_;
  if (indent + displayWidth(printFlat(result.doc, tokens_)) > kFormatWidth) return result;
  result.keyword = context->start->getType();
  const auto flat = [&](const Doc& doc) { return std::string(trim(printFlat(doc, tokens_))); };
  result.row = {flat(left), flat(typeMarks), flat(right), flat(valueMarks)};
  return result;
}

bool DocBuilder::commentBefore(const Entry& entry) const {
  const std::vector<FormatComment>& comments = tokens_[entry.first].leading;
  return std::any_of(comments.begin(), comments.end(), [](const FormatComment& c) { return c.ownLine; });
}

bool DocBuilder::blankBefore(const Entry& entry) const {
  for (const FormatComment& comment : tokens_[entry.first].leading) return comment.blankBefore;
  return tokens_[entry.first].blankBefore;
}

// Neighbours of one kind, without an empty line or a comment line between them, are laid out in columns: annotations,
// `=`, annotations of the value. Returns the end of the run.
std::size_t DocBuilder::alignRun(std::vector<Entry>& entries, std::size_t begin, std::int64_t indent) const {
  std::size_t end = begin + 1;
  while (end < entries.size() && entries[end].keyword == entries[begin].keyword && !blankBefore(entries[end]) &&
         !commentBefore(entries[end]))
    ++end;
  std::array<std::int64_t, 4> widths{};
  for (std::size_t i = begin; i < end; ++i) {
    const Row& row = entries[i].row;
    for (std::size_t k = 0; k < row.size(); ++k) {
      // The value is a column only where an annotation follows it.
      if (k != 2 || !row[3].empty()) widths[k] = std::max(widths[k], displayWidth(row[k]));
    }
  }
  const auto text = [&](const Row& row, bool aligned) {
    std::string line;
    std::int64_t column = 0;
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (aligned && k > 0 && widths[k - 1] > 0) column += widths[k - 1] + 1;
      if (row[k].empty()) continue;
      if (!line.empty()) line += ' ';
      line.append(static_cast<std::size_t>(std::max<std::int64_t>(0, column - displayWidth(line))), ' ');
      line += row[k];
    }
    return line;
  };
  const bool aligned = std::all_of(
      entries.begin() + static_cast<std::ptrdiff_t>(begin), entries.begin() + static_cast<std::ptrdiff_t>(end),
      [&](const Entry& one) { return indent + displayWidth(text(one.row, true)) <= kFormatWidth; });
  for (std::size_t i = begin; i < end; ++i) {
    Docs docs;
    docs.push_back(Doc::literal(text(entries[i].row, aligned)));
    docs.push_back(Doc::lineComments(entries[i].last));
    entries[i].doc = Doc::concat(std::move(docs));
  }
  return end;
}

// `started`: something stands before them, so that an empty line before the first is kept.
void DocBuilder::layOut(std::vector<Entry>& entries, std::int64_t indent, bool started, Docs& docs) {
  for (std::size_t i = 0; i < entries.size();) i = entries[i].keyword != 0 ? alignRun(entries, i, indent) : i + 1;
  for (Entry& one : entries) {
    docs.push_back(Doc::hardLine((started || &one != &entries.front()) && blankBefore(one)));
    if (commentBefore(one)) docs.push_back(Doc::leading(one.first, true));
    docs.push_back(std::move(one.doc));
  }
}

Docs DocBuilder::statements(ParserRuleContext* block) {
  ++depth_;
  std::vector<Entry> entries;
  for (std::size_t i = 1; i + 1 < block->children.size(); ++i) entries.push_back(entry(ruleOf(block->children[i])));
  Docs docs;
  layOut(entries, 4 * depth_, false, docs);
  --depth_;
  return docs;
}

Doc DocBuilder::file(GsdParser::FileContext& file) {
  // Imports come together, sorted, where the first of them stood; what was written above it stays there.
  std::vector<Entry> entries, imports;
  std::size_t place = 0, heading = 0;
  bool blank = false;
  for (GsdParser::DeclContext* decl : file.decl()) {
    if (decl->importDecl() == nullptr) {
      entries.push_back(entry(decl));
      continue;
    }
    imports.push_back(entry(decl));
    if (imports.size() > 1) continue;
    place = entries.size();
    heading = imports[0].first;
    blank = blankBefore(imports[0]);
  }
  const auto path = [this](const Entry& one) {
    std::string text;
    for (std::size_t i = one.first; i <= one.last; ++i) text += tokens_[i].text;
    return text;
  };
  std::stable_sort(imports.begin(), imports.end(), [&](const Entry& a, const Entry& b) { return path(a) < path(b); });
  Docs docs;
  std::vector<Entry> before(std::make_move_iterator(entries.begin()),
                            std::make_move_iterator(entries.begin() + static_cast<std::ptrdiff_t>(place)));
  std::vector<Entry> after(std::make_move_iterator(entries.begin() + static_cast<std::ptrdiff_t>(place)),
                           std::make_move_iterator(entries.end()));
  layOut(before, 0, false, docs);
  bool started = !before.empty();
  for (Entry& one : imports) {
    const bool isFirst = &one == &imports.front();
    docs.push_back(Doc::hardLine(isFirst && started && blank));
    if (isFirst) docs.push_back(Doc::leading(heading, true));
    if (one.first != heading && commentBefore(one)) docs.push_back(Doc::leading(one.first, true));
    docs.push_back(std::move(one.doc));
  }
  started = started || !imports.empty();
  layOut(after, 0, started, docs);
  const std::size_t end = tokens_.size() - 1;
  closer(end, started || !after.empty(), docs);
  return Doc::concat(std::move(docs));
}

}  // namespace gshard
