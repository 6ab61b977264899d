// What parser.cpp hands to build_ast.cpp: ANTLR's tree and where its tokens stand. Private to these two files, the only
// ones that see ANTLR.
#pragma once

#include <antlr4-runtime.h>

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

/// Subtrees whose parse failed (and was reported) are left out.
void buildAst(grammar::GsdParser::FileContext& tree, const TreeContext& context, ast::File& file);

}  // namespace gshard
