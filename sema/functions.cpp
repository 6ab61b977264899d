// The functions of a module: entries with their rows, inputs and results, and `init`.
#include <algorithm>

#include "sema/diagnostics.h"
#include "sema/elaborator.h"
#include "support/check.h"
#include "support/text.h"

namespace gshard::sema {

namespace {
constexpr std::int64_t kDefaultBlock = 64;  // rows of a block when neither --rows nor train says
}

Elaborator::Elaborator(Program& program, SourceManager& sources, const ElaborateOptions& options, DiagSink& sink)
    : program_(program), sources_(sources), options_(options), sink_(sink) {
  sink_.setChain([this] { return chain(); });
  for (const auto& unit : program_.units) {
    for (auto& [name, global] : unit->globals) {
      global.state = Global::State::Untouched;  // a program may be elaborated twice
      global.value = {};
    }
  }
}

std::optional<Module> Elaborator::run(std::optional<std::int64_t> devices) {
  module_.name = program_.main->name;
  init_ = std::make_unique<FunctionBuild>(module_, FunctionKind::Init, "init", false, sink_);
  applyDefines();
  applyPrecision();
  if (!chooseMesh(devices)) return std::nullopt;
  collectShardRules();
  evaluateTopLevel();
  const bool planned = planTraining();
  if (planned && train_) {
    buildEntry(*train_->entry, train_->range, FunctionKind::Train);
    buildEntry(*train_->entry, train_->range, FunctionKind::Eval);
  }
  for (const ast::Decl& decl : program_.main->ast->decls) {
    const auto* fn = ast::as<ast::FnDecl>(decl);
    if (fn == nullptr || !fn->isEntry || (train_ && fn == train_->entry)) continue;
    buildEntry(*fn, decl.range, FunctionKind::Entry);
  }
  if (sink_.errors() == 0) reportUnmatchedPatterns();
  if (sink_.errors() > 0) return std::nullopt;
  buildInit();
  for (Function& function : functions_) module_.functions.push_back(std::move(function));
  return std::move(module_);
}

void Elaborator::evaluateTopLevel() {
  for (const ast::Decl& decl : program_.main->ast->decls) {
    std::vector<ast::Name> names;
    if (const auto* constant = ast::as<ast::ConstDecl>(decl)) names.push_back(constant->name);
    if (const auto* let = ast::as<ast::Let>(decl)) names = let->names;
    for (const ast::Name& name : names) {
      const auto found = program_.main->globals.find(name.text);
      if (found != program_.main->globals.end()) evalGlobal(*program_.main, found->second);
    }
  }
}

std::string Elaborator::rowNameOf(const ast::FnDecl& decl) const {
  if (decl.parameters.empty()) return "";
  const auto* type = ast::as<ast::NamedType>(*decl.parameters.front().type);
  if (type == nullptr || type->dims.empty() || type->dims.front().size == nullptr) return "";
  const auto* name = ast::as<ast::NameRef>(*type->dims.front().size);
  return name != nullptr ? name->name : "";
}

// How many rows a block has, and whether their number is set at run time.
bool Elaborator::planRows(const ast::FnDecl& decl, FunctionBuild& build, Scope& scope) {
  Function& function = build.function();
  const std::string name = rowNameOf(decl);
  const FunctionKind kind = function.kind;
  bool isGeneric = false;
  for (const ast::Generic& generic : decl.generics) {
    if (generic.kind == ast::Generic::Kind::Dim && generic.name.text == name) {
      isGeneric = true;
      continue;
    }
    sink_.emit(generic.range, diag::EntryGeneric, generic.name.text)
        .note("only the first dim of the first input may be left open in an entry: its rows");
    return false;
  }
  if (name.empty()) return true;
  std::int64_t rows = options_.rows > 0 ? options_.rows : trainRows_ > 0 ? trainRows_ : kDefaultBlock;
  if (!isGeneric) {
    const auto* dim = std::get<ast::NamedType>(decl.parameters.front().type->node).dims.front().size.get();
    const std::optional<std::int64_t> size = evalInt(*dim, scope, "a dim");
    if (!size) return false;
    rows = *size;
  }
  if (rows < 1) return true;
  function.rows = rows;
  if (kind == FunctionKind::Train) {
    trainRows_ = rows;
    function.blocks = train_->microbatches;
    if (function.blocks > rows) {
      sink_.emit(train_->range, diag::ValueDoesNotFit, std::string("`microbatches`"), std::to_string(function.blocks),
                 "at most one per row, " + std::to_string(rows) + ",");
      return false;
    }
  }
  if (kind == FunctionKind::Eval || (kind == FunctionKind::Entry && isGeneric)) function.blocks = 0;
  function.totalRows = function.blocks == 0 ? 0 : rows;
  if (function.blocks == 0) rowName_ = name;
  if (isGeneric) {
    const RowsUse use = function.blocks == 0 ? RowsUse::Exact : RowsUse::None;
    scope.bind({name, IntDatum{rows, use}, decl.generics.front().name.range, BindingKind::Generic});
  }
  return true;
}

bool Elaborator::addInputs(const ast::FnDecl& decl, FunctionBuild& build, Scope& scope) {
  const std::string rowName = rowNameOf(decl);
  bool good = true;
  for (const ast::Parameter& parameter : decl.parameters) {
    const std::optional<TypeSpec> type = resolveType(*parameter.type, scope);
    if (!type) {
      good = false;
      continue;
    }
    if (type->kind != TypeSpec::Kind::Tensor) {
      sink_
          .emit(parameter.type->range, diag::TypeDoesNotFit, parameter.name.text, typeText(*parameter.type),
                std::string("a tensor"))
          .help("what is known while compiling is a `const`");
      good = false;
      continue;
    }
    if (parameter.defaultValue != nullptr) {
      sink_.emit(parameter.defaultValue->range, diag::Misplaced, "a default of `" + parameter.name.text + "`",
                 std::string("on an input of an entry"));
      good = false;
      continue;
    }
    const auto& named = std::get<ast::NamedType>(parameter.type->node);
    const ast::NameRef* first = !named.dims.empty() && named.dims.front().size != nullptr
                                    ? ast::as<ast::NameRef>(*named.dims.front().size)
                                    : nullptr;
    const bool isRow = build.function().rows > 0 && first != nullptr && first->name == rowName;
    const std::string path = decl.name.text + "." + parameter.name.text;
    std::optional<Annotation> annotation = annotationByPath(path, type->tensor, type->written.get(), false);
    if (!annotation) {
      annotation = resolveAnnotations(parameter.type->annotations, type->tensor, type->written.get(), scope, false);
    }
    const ValueId id =
        build.addInput(parameter.name.text, type->tensor, std::move(annotation), isRow, parameter.name.range);
    bindName(parameter.name, TensorDatum{id, type->tensor, type->written}, BindingKind::Parameter, scope);
  }
  return good;
}

void Elaborator::addOutputs(const Datum& result, const std::string& name, SourceRange range, FunctionBuild& build) {
  if (const auto* tuple = result.as<TupleDatum>()) {
    for (std::size_t i = 0; i < tuple->items->size(); ++i) {
      addOutputs((*tuple->items)[i], name + "." + std::to_string(i), range, build);
    }
    return;
  }
  const auto* tensor = result.as<TensorDatum>();
  if (tensor == nullptr) {
    if (!result.isError()) sink_.emit(range, diag::StandsWhere, describe(result), std::string("a tensor"));
    return;
  }
  Result made;
  made.kind = ResultKind::Output;
  made.name = name;
  made.value = tensor->id;
  made.range = range;
  build.function().results.push_back(std::move(made));
}

void Elaborator::buildEntry(const ast::FnDecl& decl, SourceRange range, FunctionKind kind) {
  const std::string name = kind == FunctionKind::Eval ? decl.name.text + ".eval" : decl.name.text;
  if (!decl.manualOver.empty()) return notSupported(decl.name.range, "manual functions are");
  if (decl.result == nullptr) {
    sink_.emit(decl.name.range, diag::EntryWithoutType, decl.name.text).help("write `-> f32` or what it returns");
    return;
  }
  FunctionBuild build(module_, kind, name, kind == FunctionKind::Train, sink_);
  build.function().range = decl.name.range;
  build.function().doc = decl.doc;
  Frame frame;
  frame.what = "entry `" + decl.name.text + "`";
  frame.callRange = range;
  frame.decl = &decl;
  frame.isFunction = true;
  frame.site = decl.name.text;
  frame.letPath = decl.name.text;
  frames_.push_back(std::move(frame));
  statements_ = 0;
  rowName_.clear();
  Scope scope(*program_.main, nullptr);
  setBuild(&build);
  const std::int64_t errors = sink_.errors();
  if (planRows(decl, build, scope) && addInputs(decl, build, scope)) {
    const Datum result = runBody(decl, scope);
    const SourceRange where = frames_.back().resultRange;
    if (!result.isError()) {
      const bool isTrained = kind == FunctionKind::Train || kind == FunctionKind::Eval;
      addOutputs(result, isTrained ? "loss" : "result", where, build);
      for (const FunctionBuild::ReportEntry& report : build.reports) {
        build.function().results.push_back(
            {ResultKind::Report, report.name, -1, report.value, Reduction::Sum, report.range});
      }
      if (kind == FunctionKind::Train && sink_.errors() == errors) finishTraining(build, result);
    }
  }
  frames_.pop_back();
  setBuild(nullptr);
  rowName_.clear();
  if (sink_.errors() != errors) return;
  finishFunction(build);
  functions_.push_back(std::move(build.function()));
}

void Elaborator::finishFunction(FunctionBuild& build) {
  Function& function = build.function();
  // `eval` changes nothing; every other function keeps what it assigns.
  if (function.kind != FunctionKind::Eval) {
    for (const std::int64_t index : build.assignedStates()) {
      const State& state = module_.states[static_cast<std::size_t>(index)];
      function.results.push_back(
          {ResultKind::State, state.name, index, build.state(index), Reduction::Sum, state.range});
    }
  }
  eraseUnused(function);
  const std::vector<std::int64_t> uses = useCounts(function);
  for (const Argument& argument : function.arguments) {
    if (argument.kind != ArgumentKind::Input || uses[argument.value.index] > 0 || sink_.errors() > 0) continue;
    sink_.emit(function.value(argument.value).range, diag::InputUnused, argument.name, function.name);
  }
  std::erase_if(function.arguments, [&](const Argument& argument) {
    return argument.kind != ArgumentKind::Input && uses[argument.value.index] == 0;
  });
}

void Elaborator::buildInit() {
  Function& function = init_->function();
  for (std::size_t i = 0; i < module_.parameters.size(); ++i) {
    const Parameter& parameter = module_.parameters[i];
    function.results.push_back({ResultKind::Parameter, parameter.name, static_cast<std::int64_t>(i), parameterInit_[i],
                                Reduction::Sum, parameter.range});
  }
  for (std::size_t i = 0; i < module_.states.size(); ++i) {
    const State& state = module_.states[i];
    function.results.push_back(
        {ResultKind::State, state.name, static_cast<std::int64_t>(i), stateInit_[i], Reduction::Sum, state.range});
  }
  eraseUnused(function);
  module_.functions.push_back(std::move(function));
}

}  // namespace gshard::sema
