// The front end's one entrance: source text to AST. Apart from ast.h so that users of the AST need nothing of parsing.
#pragma once

#include <memory>

#include "frontend/ast.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace gshard {

/// Parses a file of `sources`. Never null and never throws for what a user can write; mistakes are reported to `sink`
/// (codes E01xx) and the AST holds what could be recovered, so check the sink before elaborating.
std::unique_ptr<ast::File> parseFile(FileId file, const SourceManager& sources, DiagSink& sink);

}  // namespace gshard
