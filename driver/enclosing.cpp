// Reads the file again: diagnostics carry ranges, not declarations, since few readers ask.
#include "driver/enclosing.h"

#include "frontend/parse.h"
#include "support/overloaded.h"

namespace gshard {

namespace {

std::string nameOf(const ast::Let& let) {
  return let.names.empty() ? "" : let.names[0].text;
}

std::string memberAt(const ast::Block& body, SourceRange range) {
  for (const ast::StmtPtr& member : body.statements) {
    if (range.begin < member->range.begin || range.begin >= member->range.end) continue;
    if (const auto* fn = ast::as<ast::FnDecl>(*member)) return "." + fn->name.text;
    if (const auto* param = ast::as<ast::ParamDecl>(*member)) return "." + param->name.text;
    if (const auto* state = ast::as<ast::StateDecl>(*member)) return "." + state->name.text;
    if (const auto* let = ast::as<ast::Let>(*member)) return "." + nameOf(*let);
  }
  return "";
}

}  // namespace

std::string enclosingDeclaration(SourceRange range, const SourceManager& sources) {
  if (!range.known()) return "";
  CollectingSink silent;
  const auto file = parseFile(range.file, sources, silent);
  for (const ast::Decl& decl : file->decls) {
    if (range.begin < decl.range.begin || range.begin >= decl.range.end) continue;
    return std::visit(
        Overloaded{[](const ast::ImportDecl& d) { return "import " + d.path.parts.back().text; },
                   [](const ast::ConstDecl& d) { return d.name.text; },
                   [](const ast::MeshDecl&) { return std::string("mesh"); },
                   [](const ast::FnDecl& d) { return d.name.text; },
                   [&](const ast::ModelDecl& d) { return d.name.text + memberAt(d.body, range); },
                   [](const ast::OptimizerDecl& d) { return d.name.text; }, [](const ast::Let& d) { return nameOf(d); },
                   [](const ast::TrainDecl& d) { return "train " + d.function.parts.back().text; },
                   [](const ast::ShardDecl&) { return std::string("shard"); }},
        decl.node);
  }
  return "";
}

}  // namespace gshard
