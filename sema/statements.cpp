// Statements: let, assignment, report, return, for, if; and the one place that answers for `loop`.
#include "sema/diagnostics.h"
#include "sema/elaborator.h"
#include "support/check.h"
#include "support/overloaded.h"
#include "support/text.h"

namespace gshard::sema {

Flow Elaborator::execBlock(const ast::Block& block, Scope& parent) {
  Scope scope(parent.unit(), &parent);
  for (const ast::StmtPtr& stmt : block.statements) {
    if (!countStatement(stmt->range)) return Flow::Returned;
    if (execStatement(*stmt, scope) == Flow::Returned) return Flow::Returned;
  }
  return Flow::Next;
}

Flow Elaborator::execStatement(const ast::Stmt& stmt, Scope& scope) {
  const SourceRange range = stmt.range;
  return std::visit(
      Overloaded{[&](const ast::Let& s) {
                   execLet(s, range, scope);
                   return Flow::Next;
                 },
                 [&](const ast::Assign& s) {
                   execAssign(s, range, scope);
                   return Flow::Next;
                 },
                 [&](const ast::Report& s) {
                   execReport(s, range, scope);
                   return Flow::Next;
                 },
                 [&](const ast::Return& s) {
                   GSHARD_CHECK(!frames_.empty(), "return stands in a function");
                   Frame& frame = frames_.back();
                   if (!frame.isFunction) {
                     sink_.emit(range, diag::Misplaced, std::string("`return`"), std::string("outside a function"));
                     return Flow::Returned;
                   }
                   const Datum value = eval(*s.value, scope);
                   frames_.back().result = value;
                   frames_.back().resultRange = s.value->range;
                   return Flow::Returned;
                 },
                 [&](const ast::For& s) { return execFor(s, range, scope); },
                 [&](const ast::If& s) {
                   for (const ast::If::Arm& arm : s.arms) {
                     const std::optional<bool> condition = evalCondition(*arm.condition, scope);
                     if (!condition) return Flow::Returned;
                     if (*condition) return execBlock(arm.body, scope);
                   }
                   return s.otherwise ? execBlock(*s.otherwise, scope) : Flow::Next;
                 },
                 [&](const ast::StateDecl& s) {
                   if (optimizerStates_ == nullptr) {
                     sink_.emit(range, diag::Misplaced, "`state " + s.name.text + "`", std::string("in a function"))
                         .help("declare it in the model; the function assigns it");
                     bindName(s.name, {}, BindingKind::Let, scope);  // one mistake, one message
                     return Flow::Next;
                   }
                   const auto found = optimizerStates_->find(&s);
                   if (found != optimizerStates_->end()) {
                     bindName(s.name, StateDatum{found->second}, BindingKind::Member, scope);
                     return Flow::Next;
                   }
                   std::optional<TypeSpec> type;
                   if (s.type != nullptr) {
                     type = resolveType(*s.type, scope);
                     if (!type) return Flow::Returned;
                   }
                   const std::string path = optimizerPath_ + "." + s.name.text;
                   const Datum value = initialise(*s.init, path, type ? &*type : nullptr, scope);
                   const auto* tensor = value.as<TensorDatum>();
                   if (tensor == nullptr) return Flow::Returned;
                   const std::int64_t index = addOptimizerState(s, tensor->id);
                   bindName(s.name, StateDatum{index}, BindingKind::Member, scope);
                   return Flow::Next;
                 },
                 [&](const ast::Loop& s) {
                   notSupported(s.variable.range.known() ? s.variable.range : range, "run-time loops (`loop`) are");
                   return Flow::Returned;
                 },
                 [&](const ast::ParamDecl& s) {
                   sink_.emit(range, diag::Misplaced, "`param " + s.name.text + "`", std::string("outside a model"));
                   return Flow::Next;
                 },
                 [&](const ast::FnDecl& s) {
                   sink_.emit(s.name.range, diag::Misplaced, "function `" + s.name.text + "`",
                              std::string("in a function"));
                   return Flow::Next;
                 }},
      stmt.node);
}

void Elaborator::bindName(const ast::Name& name, Datum value, BindingKind kind, Scope& scope) {
  if (!name.present() || name.text == "_") return;
  if (const Binding* known = scope.findHere(name.text)) {
    sink_.emit(name.range, diag::DeclaredTwice, name.text)
        .label(known->range, "declared here first")
        .help(known->kind == BindingKind::Let ? "assign it: `" + name.text + " = …`" : "choose another name");
    return;
  }
  scope.bind({name.text, std::move(value), name.range, kind});
}

// Tensors get the name that the source gives them, and what `shard` says of it.
Datum Elaborator::nameValue(Datum value, const ast::Name& name) {
  const auto* tensor = value.as<TensorDatum>();
  if (tensor == nullptr || build_ == nullptr || frames_.empty()) return value;
  Function& function = build_->function();
  const std::string& inside = frames_.back().letPath;
  const std::optional<Annotation> annotation =
      inside.empty() ? std::nullopt : annotationByPath(inside + "." + name.text, tensor->type, nullptr, false);
  if (annotation) {
    value = ops()->create(OpKind::Annotate, {*tensor}, {{"annotation", *annotation}}, name.range, name.text);
    tensor = value.as<TensorDatum>();
    if (tensor == nullptr) return value;
  }
  // Only what this expression has just made: an argument or an older value keeps its own name.
  const bool isLast = !function.ops.empty() && !function.ops.back().results.empty() &&
                      function.ops.back().results.front() == tensor->id;
  if (isLast) function.value(tensor->id).name = name.text;
  return value;
}

void Elaborator::takeApart(const ast::Let& let, const Datum& value, SourceRange range, Scope& scope) {
  const auto* tuple = value.as<TupleDatum>();
  const auto* list = value.as<ListDatum>();
  const std::vector<Datum>* items = tuple != nullptr  ? tuple->items.get()
                                    : list != nullptr ? list->items.get()
                                                      : nullptr;
  if (items == nullptr || items->size() != let.names.size()) {
    if (!value.isError()) {
      sink_.emit(range, diag::TupleSizes, static_cast<std::int64_t>(let.names.size()),
                 items == nullptr ? describe(value) : plural(static_cast<std::int64_t>(items->size()), "value"));
    }
    for (const ast::Name& name : let.names) bindName(name, {}, BindingKind::Let, scope);
    return;
  }
  for (std::size_t i = 0; i < items->size(); ++i) {
    bindName(let.names[i], nameValue((*items)[i], let.names[i]), BindingKind::Let, scope);
  }
}

void Elaborator::execLet(const ast::Let& let, SourceRange range, Scope& scope) {
  const std::size_t before = emitted();
  const std::optional<std::string> outer = naming_;
  if (outer && !let.isTuple) naming_ = *outer + "." + let.names.front().text;
  if (!outer || let.isTuple) naming_ = std::nullopt;
  Datum value = eval(*let.value, scope);
  naming_ = outer;
  if (let.type != nullptr && !value.isError()) {
    const std::optional<TypeSpec> type = resolveType(*let.type, scope);
    value = type ? convert(value, *type, let.value->range, "`" + let.names.front().text + "`") : Datum{};
    if (type) value = annotate(value, let.type->annotations, type->written.get(), scope, range);
    recompute(let.type->annotations, before);
  }
  if (value.is<FunctionRef>() || value.is<ModelRef>() || value.is<OptimizerRef>() || value.is<BuiltinRef>()) {
    sink_.emit(let.value->range, diag::FunctionAsValue, describe(value));
    value = {};
  }
  if (let.isTuple) {
    takeApart(let, value, range, scope);
  } else {
    bindName(let.names.front(), nameValue(value, let.names.front()), BindingKind::Let, scope);
  }
}

void Elaborator::execAssign(const ast::Assign& assign, SourceRange range, Scope& scope) {
  Binding* binding = scope.find(assign.name.text);
  if (binding == nullptr) {
    DiagBuilder builder = sink_.emit(assign.name.range, diag::AssignUnknown, assign.name.text);
    if (const std::optional<std::string> close = suggest(assign.name.text, namesInScope(scope))) {
      builder.fix("did you mean `" + *close + "`?", false, {{assign.name.range, *close}});
    } else {
      builder.help("`let " + assign.name.text + " = …` declares a name");
    }
    scope.bind({assign.name.text, {}, assign.name.range, BindingKind::Let});  // silent from here on
    return;
  }
  const std::optional<std::string> outer = std::exchange(naming_, std::nullopt);
  Datum value = eval(*assign.value, scope);
  naming_ = outer;
  if (const auto* state = binding->value.as<StateDatum>()) {
    if (value.isError()) return;
    GSHARD_CHECK(build_ != nullptr, "states are assigned in functions");
    const State& kept = module_.states[static_cast<std::size_t>(state->index)];
    TypeSpec type;
    type.tensor = kept.type;
    value = convert(value, type, assign.value->range, "state `" + assign.name.text + "`");
    value = nameValue(value, assign.name);
    if (const auto* tensor = value.as<TensorDatum>()) build_->setState(state->index, tensor->id);
    return;
  }
  switch (binding->kind) {
    case BindingKind::Let:
      break;
    case BindingKind::Weight: {
      if (value.isError()) {
        binding->value = {};
        return;
      }
      TypeSpec type;
      type.tensor = binding->value.is<TensorDatum>() ? binding->value.as<TensorDatum>()->type : Type{};
      value = convert(value, type, assign.value->range, "`" + assign.name.text + "`");
      break;
    }
    case BindingKind::Parameter:
    case BindingKind::Generic:
    case BindingKind::LoopVariable:
    case BindingKind::Member:
      sink_.emit(range, diag::AssignFixed, assign.name.text)
          .label(binding->range, "declared here")
          .help("`let` makes a name that may be assigned again");
      return;
  }
  binding->value = nameValue(value, assign.name);
}

void Elaborator::execReport(const ast::Report& report, SourceRange range, Scope& scope) {
  const Datum value = eval(*report.value, scope);
  if (value.isError()) return;
  if (build_ == nullptr || init_.get() == build_) {
    sink_.emit(range, diag::Misplaced, "`report " + report.name.text + "`", std::string("where no entry runs"));
    return;
  }
  std::optional<TensorDatum> tensor;
  if (value.is<TensorDatum>()) {
    tensor = *value.as<TensorDatum>();
  } else {
    tensor = ops()->adapt(value, wide(), report.value->range);
  }
  if (!tensor) return;
  if (tensor->type.rank() > 1) {
    sink_.emit(report.value->range, diag::ReportTooLarge, report.name.text, describe(Datum(*tensor)))
        .help("`mean` it, or `sum`, with `axis:` to keep one dim");
    return;
  }
  const Instance* instance = frames_.back().instance;
  std::string name = instance != nullptr ? instance->path + "." + report.name.text : report.name.text;
  const std::string base = name;
  // A model that is called several times reports each time: the later ones are numbered.
  int count = 0;
  const auto taken = [&](const std::string& wanted) {
    for (const FunctionBuild::ReportEntry& known : build_->reports) {
      if (known.name == wanted) return true;
    }
    return false;
  };
  while (taken(name)) name = base + "." + std::to_string(++count);
  build_->reports.push_back({name, tensor->id, range});
}

Flow Elaborator::execFor(const ast::For& loop, SourceRange range, Scope& scope) {
  const std::optional<std::vector<Datum>> items = evalSource(*loop.source, scope);
  if (!items) return Flow::Returned;
  const std::string label = enterSite("for");
  const std::int64_t errors = sink_.errors();
  Flow flow = Flow::Next;
  for (std::size_t i = 0; i < items->size() && flow == Flow::Next; ++i) {
    if (!countStatement(range)) return Flow::Returned;
    Scope inner(scope.unit(), &scope);
    bindName(loop.variable, (*items)[i], BindingKind::LoopVariable, inner);
    std::string site;
    std::map<std::string, int> counts;
    if (!frames_.empty()) {
      site = frames_.back().site;
      counts = std::exchange(frames_.back().siteCounts, {});
      frames_.back().site = label + "[" + std::to_string(i) + "]";
    }
    flow = execBlock(loop.body, inner);
    if (!frames_.empty()) {
      frames_.back().site = site;
      frames_.back().siteCounts = counts;
    }
    if (sink_.errors() != errors) break;  // one mistake in the body is one error
  }
  return flow;
}

}  // namespace gshard::sema
