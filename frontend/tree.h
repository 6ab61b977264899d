// What parser.cpp hands to the builder of the AST and to the formatter: ANTLR's tree and where its tokens stand.
// Private to these files, the only ones that see ANTLR.
#pragma once

#include <antlr4-runtime.h>

#include <functional>

#include "GsdLexer.h"
#include "GsdParser.h"
#include "frontend/ast.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace gshard {

/// ANTLR counts code points, we count bytes.
class OffsetMap {
 public:
  OffsetMap(FileId file, std::string_view text);
  SourceRange range(const antlr4::Token& token) const;

 private:
  std::uint32_t byteOf(std::size_t codePoint) const;

  FileId file_;
  std::uint32_t base_ = 0;  // of a byte order mark, which ANTLR drops
  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> bytes_;  // empty when the text is ASCII
};

struct TreeContext {
  const SourceManager& sources;
  antlr4::CommonTokenStream& stream;
  const OffsetMap& offsets;
  DiagSink& sink;
};

/// Parses and hands over the tree while it lives; not called when the text cannot be parsed at all. Reports to `sink`
/// in the order in which mistakes are found.
void withTree(FileId file, const SourceManager& sources, DiagSink& sink,
              const std::function<void(grammar::GsdParser::FileContext&, const TreeContext&)>& use);

/// Subtrees whose parse failed (and was reported) are left out.
void buildAst(grammar::GsdParser::FileContext& tree, const TreeContext& context, ast::File& file);

}  // namespace gshard
