// Where names live while elaborating: scopes of functions and blocks, instances of models, files. Apart from the
// interpreter, because instances and files outlive every function that is built.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sema/datum.h"

namespace gshard::sema {

enum class BindingKind : std::uint8_t { Let, Parameter, Generic, LoopVariable, Member, Weight };

struct Binding {
  std::string name;
  Datum value;
  SourceRange range;
  BindingKind kind = BindingKind::Let;
};

// A chain of scopes ends at a file, whose names are looked up by the interpreter (they are evaluated on first use).
class Scope {
 public:
  Scope(const FileUnit& unit, Scope* parent) : unit_(&unit), parent_(parent) {}

  // The binding of `name` in this scope alone.
  Binding* findHere(std::string_view name) {
    for (Binding& binding : bindings_) {
      if (binding.name == name) return &binding;
    }
    return nullptr;
  }
  Binding* find(std::string_view name) {
    for (Scope* scope = this; scope != nullptr; scope = scope->parent_) {
      if (Binding* found = scope->findHere(name)) return found;
    }
    return nullptr;
  }
  void bind(Binding binding) { bindings_.push_back(std::move(binding)); }
  const std::deque<Binding>& bindings() const { return bindings_; }
  const FileUnit& unit() const { return *unit_; }
  Scope* parent() const { return parent_; }

 private:
  const FileUnit* unit_;
  Scope* parent_;
  std::deque<Binding> bindings_;  // deque: bindings stay where they are
};

// One instance of a model: arguments, parameters, states, sub-models and functions by name.
struct Instance {
  Instance(const ast::ModelDecl& declaration, const FileUnit& unit, std::string instancePath)
      : decl(&declaration), path(std::move(instancePath)), scope(unit, nullptr) {}

  const ast::ModelDecl* decl;
  std::string path;  // "net.blocks.0"
  Scope scope;
  std::map<std::string, const ast::FnDecl*, std::less<>> functions;
};

// A top-level name of a file, evaluated on first use.
struct Global {
  enum class State : std::uint8_t { Untouched, InProgress, Done };
  const ast::Decl* decl = nullptr;
  std::string name;
  SourceRange range;
  std::size_t position = 0;  // of a name in `let (a, b) = …`
  mutable State state = State::Untouched;
  mutable Datum value;
};

// A parsed file with its names.
struct FileUnit {
  std::string name;  // "nn", "models.mlp"; the main file's stem
  std::string path;  // on disk, as shown
  bool isMain = false;
  std::unique_ptr<ast::File> owned;  // null for the main file
  const ast::File* ast = nullptr;
  std::map<std::string, Global, std::less<>> globals;
  std::map<std::string, const FileUnit*, std::less<>> imports;  // by the name that is bound
};

}  // namespace gshard::sema
