// The AST as text, for --emit=ast and for tests: an indented tree, deterministic, without source positions.
#pragma once

#include <string>

#include "frontend/ast.h"

namespace gshard {

std::string printAst(const ast::File& file);

/// One expression or type as it would be written, normalised (single spaces, parentheses only where needed); for
/// messages.
std::string printExpr(const ast::Expr& expr);
std::string printType(const ast::Type& type);
std::string printAnnotation(const ast::Annotation& annotation);

}  // namespace gshard
