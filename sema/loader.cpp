// Finding, parsing and indexing files.
#include "sema/loader.h"

#include <algorithm>
#include <filesystem>

#include "frontend/parse.h"
#include "sema/diagnostics.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

namespace fs = std::filesystem;

class Loader {
 public:
  Loader(SourceManager& sources, const ElaborateOptions& options, DiagSink& sink, Program& program)
      : sources_(sources), options_(options), sink_(sink), program_(program) {}

  bool run(const ast::File& main) {
    auto unit = std::make_unique<FileUnit>();
    const std::string path = sources_.name(main.id);
    unit->name = fs::path(path).stem().string();
    unit->path = path;
    unit->isMain = true;
    unit->ast = &main;
    program_.main = unit.get();
    program_.units.push_back(std::move(unit));
    loadPrelude();
    std::error_code ignored;
    loaded_.emplace(fs::weakly_canonical(path, ignored).string(), program_.main);
    loading_.emplace_back(program_.main, SourceRange{});
    index(*program_.main);
    for (const std::string& layout : options_.layouts) loadLayout(layout);
    return good_;
  }

 private:
  void loadPrelude() {
    if (options_.stdlibPath.empty()) return;
    const std::string path = (fs::path(options_.stdlibPath) / "prelude.gsd").string();
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return;
    program_.prelude = load(path, "prelude", {});
  }

  void loadLayout(const std::string& path) {
    std::string why;
    const std::optional<FileId> file = sources_.addFileFromDisk(path, why);
    if (!file) {
      sink_.emit({}, diag::FileNotReadable, path, why);
      good_ = false;
      return;
    }
    std::unique_ptr<ast::File> parsed = parse(*file);
    for (const ast::Decl& decl : parsed->decls) {
      if (ast::is<ast::MeshDecl>(decl) || ast::is<ast::ShardDecl>(decl)) continue;
      sink_.emit(decl.range, diag::Misplaced, std::string("a declaration other than `mesh` and `shard`"),
                 std::string("in a layout file"));
      good_ = false;
    }
    program_.layouts.push_back(std::move(parsed));
  }

  // Parses, counting errors as ours.
  std::unique_ptr<ast::File> parse(FileId file) {
    CollectingSink collected;
    std::unique_ptr<ast::File> parsed = parseFile(file, sources_, collected);
    for (const Diagnostic& diagnostic : collected.diagnostics()) sink_.report(diagnostic);
    good_ = good_ && !collected.hasErrors();
    return parsed;
  }

  // The library's files are named `stdlib/nn.gsd` wherever they are installed: plans and objects name no absolute path.
  std::string shownName(const std::string& path) const {
    const std::string prefix = options_.stdlibPath + "/";
    if (options_.stdlibPath.empty() || !path.starts_with(prefix)) return path;
    return "stdlib/" + path.substr(prefix.size());
  }

  FileUnit* load(const std::string& path, const std::string& name, SourceRange from) {
    std::error_code ignored;
    const fs::path resolved = fs::weakly_canonical(path, ignored);
    const std::string key = resolved.empty() ? path : resolved.string();
    if (const auto known = loaded_.find(key); known != loaded_.end()) {
      for (std::size_t i = 0; i < loading_.size(); ++i) {
        if (loading_[i].first != known->second) continue;
        DiagBuilder builder = sink_.emit(from, diag::ImportCycle, name);
        for (std::size_t k = i; k < loading_.size(); ++k) {
          if (loading_[k].second.known())
            builder.label(loading_[k].second, "`" + loading_[k].first->name + "` imported here");
        }
        good_ = false;
        return nullptr;
      }
      return known->second;
    }
    std::string why;
    const std::optional<FileId> file = sources_.addFileFromDisk(path, why, shownName(path));
    if (!file) {
      sink_.emit(from, diag::FileNotReadable, path, why);
      good_ = false;
      return nullptr;
    }
    auto unit = std::make_unique<FileUnit>();
    FileUnit* made = unit.get();
    made->name = name;
    made->path = path;
    made->owned = parse(*file);
    made->ast = made->owned.get();
    program_.units.push_back(std::move(unit));
    loaded_.emplace(key, made);
    loading_.emplace_back(made, from);
    index(*made);
    loading_.pop_back();
    return made;
  }

  void import(FileUnit& unit, const ast::ImportDecl& decl) {
    fs::path relative;
    std::vector<std::string> parts;
    for (const ast::Name& part : decl.path.parts) {
      relative /= part.text;
      parts.push_back(part.text);
    }
    relative += ".gsd";
    std::vector<std::string> folders{fs::path(unit.path).parent_path().string()};
    folders.insert(folders.end(), options_.importPaths.begin(), options_.importPaths.end());
    if (!options_.stdlibPath.empty()) folders.push_back(options_.stdlibPath);
    const ast::Name& bound = decl.path.parts.back();
    for (const std::string& folder : folders) {
      const fs::path candidate = folder.empty() ? relative : fs::path(folder) / relative;
      std::error_code ignored;
      if (!fs::is_regular_file(candidate, ignored)) continue;
      FileUnit* found = load(candidate.string(), join(parts, "."), decl.path.range);
      if (found == nullptr) return;
      if (unit.globals.contains(bound.text) || unit.imports.contains(bound.text)) {
        sink_.emit(bound.range, diag::DeclaredTwice, bound.text);
        program_.hasErrors = true;
        return;
      }
      unit.imports.emplace(bound.text, found);
      return;
    }
    DiagBuilder builder = sink_.emit(decl.path.range, diag::ImportNotFound, relative.string());
    std::vector<std::string> shown;
    for (const std::string& folder : folders) shown.push_back("`" + (folder.empty() ? "." : folder) + "`");
    builder.note("searched in " + join(shown, ", "));
    std::vector<std::string> names;
    for (const std::string& folder : folders) {
      std::error_code ignored;
      std::vector<std::string> here;
      for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
        if (entry.path().extension() == ".gsd") here.push_back(entry.path().stem().string());
      }
      std::sort(here.begin(), here.end());
      names.insert(names.end(), here.begin(), here.end());
    }
    if (const std::optional<std::string> close = suggest(bound.text, names); close && parts.size() == 1) {
      builder.fix("did you mean `" + *close + "`?", false, {{bound.range, *close}});
    }
    good_ = false;
  }

  void declare(FileUnit& unit, const ast::Decl& decl, const ast::Name& name, std::size_t position = 0) {
    if (!name.present() || name.text == "_") return;
    Global global;
    global.decl = &decl;
    global.name = name.text;
    global.range = name.range;
    global.position = position;
    const auto [at, isNew] = unit.globals.try_emplace(name.text, std::move(global));
    if (isNew && !unit.imports.contains(name.text)) return;
    DiagBuilder builder = sink_.emit(name.range, diag::DeclaredTwice, name.text);
    if (!isNew) builder.label(at->second.range, "declared here first");
    program_.hasErrors = true;
  }

  void onlyInMain(const FileUnit& unit, const ast::Decl& decl, std::string_view what) {
    if (unit.isMain) return;
    sink_.emit(decl.range, diag::Misplaced, "`" + std::string(what) + "`", std::string("in an imported file"));
    program_.hasErrors = true;
  }

  void index(FileUnit& unit) {
    for (const ast::Decl& decl : unit.ast->decls) {
      if (const auto* import = ast::as<ast::ImportDecl>(decl)) {
        this->import(unit, *import);
      } else if (const auto* constant = ast::as<ast::ConstDecl>(decl)) {
        declare(unit, decl, constant->name);
      } else if (const auto* fn = ast::as<ast::FnDecl>(decl)) {
        if (fn->isEntry) onlyInMain(unit, decl, "entry");
        declare(unit, decl, fn->name);
      } else if (const auto* model = ast::as<ast::ModelDecl>(decl)) {
        declare(unit, decl, model->name);
      } else if (const auto* optimizer = ast::as<ast::OptimizerDecl>(decl)) {
        declare(unit, decl, optimizer->name);
      } else if (const auto* let = ast::as<ast::Let>(decl)) {
        for (std::size_t i = 0; i < let->names.size(); ++i) declare(unit, decl, let->names[i], i);
      } else if (ast::is<ast::MeshDecl>(decl)) {
        onlyInMain(unit, decl, "mesh");
      } else if (ast::is<ast::TrainDecl>(decl)) {
        onlyInMain(unit, decl, "train");
      } else if (ast::is<ast::ShardDecl>(decl)) {
        onlyInMain(unit, decl, "shard");
      }
    }
  }

  SourceManager& sources_;
  const ElaborateOptions& options_;
  DiagSink& sink_;
  Program& program_;
  std::map<std::string, FileUnit*> loaded_;
  std::vector<std::pair<FileUnit*, SourceRange>> loading_;
  bool good_ = true;
};

}  // namespace

bool loadProgram(const ast::File& main, SourceManager& sources, const ElaborateOptions& options, DiagSink& sink,
                 Program& program) {
  return Loader(sources, options, sink, program).run(main);
}

}  // namespace gshard::sema
