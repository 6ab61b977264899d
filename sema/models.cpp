// Models: instances, their parameters and states. An initialiser runs where its tensor is declared, into the function
// `init`, so that a state without written type gets the type of its first value.
#include "sema/diagnostics.h"
#include "sema/elaborator.h"
#include "support/check.h"
#include "support/overloaded.h"
#include "support/text.h"

namespace gshard::sema {

Datum Elaborator::instantiate(const ModelRef& model, const std::vector<CallArgument>& arguments, SourceRange range) {
  const ast::ModelDecl& decl = *model.decl;
  const std::string& name = decl.name.text;
  if (!naming_) {
    sink_.emit(range, diag::ModelOutsideLet, name)
        .note("an instance is named by the `let` that makes it, at top level or in a model, as `let net = " + name +
              "(…)`");
    return {};
  }
  if (!checkDepth(&decl, nullptr, name, range)) return {};
  const std::string path = *naming_;
  if (!instancePaths_.insert(path).second) {
    sink_.emit(range, diag::PathTwice, path);
    return {};
  }
  auto instance = std::make_shared<Instance>(decl, *model.unit, path);
  instances_.push_back(instance);
  Frame frame;
  frame.what = "`" + path + "`, a `" + name + "`";
  frame.callRange = range;
  frame.decl = &decl;
  frame.isModel = true;
  frame.site = path;
  frame.letPath = path;
  frames_.push_back(std::move(frame));
  Signature signature{name, signatureText(name, decl.parameters), {}};
  for (const ast::Parameter& parameter : decl.parameters) {
    signature.parameters.push_back({parameter.name.text, parameter.defaultValue == nullptr, false});
  }
  const std::int64_t errors = sink_.errors();
  naming_ = std::nullopt;
  FunctionBuild* outer = build_;
  setBuild(nullptr);  // what a model holds is known while compiling
  if (bindParameters(decl.parameters, {}, signature, arguments, range, instance->scope)) {
    addMembers(decl.body, *instance, instance->scope, instance);
  }
  setBuild(outer);
  naming_ = path;
  frames_.pop_back();
  if (sink_.errors() != errors) return {};
  return InstanceDatum{instance};
}

// `for` and `if` around members open a scope for their own names; members are bound in the instance.
void Elaborator::addMembers(const ast::Block& block, Instance& instance, Scope& scope,
                            const std::shared_ptr<Instance>& self) {
  for (const ast::StmtPtr& member : block.statements) {
    const SourceRange range = member->range;
    if (!countStatement(range)) return;
    std::visit(
        Overloaded{
            [&](const ast::Let& let) {
              naming_ = let.isTuple ? std::nullopt : std::optional(instance.path + "." + let.names.front().text);
              Datum value = eval(*let.value, scope);
              naming_ = std::nullopt;
              if (let.type != nullptr && !value.isError()) {
                const std::optional<TypeSpec> type = resolveType(*let.type, scope);
                value = type ? convert(value, *type, let.value->range, "`" + let.names.front().text + "`") : Datum{};
              }
              if (let.isTuple) {
                takeApart(let, value, range, instance.scope);
              } else {
                bindName(let.names.front(), std::move(value), BindingKind::Member, instance.scope);
              }
            },
            [&](const ast::ParamDecl& decl) { addParameter(decl, range, instance, scope); },
            [&](const ast::StateDecl& decl) { addState(decl, range, instance, scope); },
            [&](const ast::FnDecl& decl) {
              if (instance.functions.emplace(decl.name.text, &decl).second) return;
              sink_.emit(decl.name.range, diag::DeclaredTwice, decl.name.text);
            },
            [&](const ast::For& loop) {
              const std::optional<std::vector<Datum>> items = evalSource(*loop.source, scope);
              if (!items) return;
              for (const Datum& item : *items) {
                Scope inner(scope.unit(), &scope);
                bindName(loop.variable, item, BindingKind::LoopVariable, inner);
                addMembers(loop.body, instance, inner, self);
              }
            },
            [&](const ast::If& branch) {
              for (const ast::If::Arm& arm : branch.arms) {
                const std::optional<bool> condition = evalCondition(*arm.condition, scope);
                if (!condition) return;
                if (*condition) return addMembers(arm.body, instance, scope, self);
              }
              if (branch.otherwise) addMembers(*branch.otherwise, instance, scope, self);
            },
            [&](const ast::Assign&) {
              sink_.emit(range, diag::Misplaced, std::string("an assignment"),
                         std::string("among the members of a model"));
            },
            [&](const ast::Report&) {
              sink_.emit(range, diag::Misplaced, std::string("`report`"), std::string("among the members of a model"));
            },
            [&](const ast::Return&) {
              sink_.emit(range, diag::Misplaced, std::string("`return`"), std::string("among the members of a model"));
            },
            [&](const ast::Loop&) {
              sink_.emit(range, diag::Misplaced, std::string("`loop`"), std::string("among the members of a model"));
            }},
        member->node);
  }
}

Datum Elaborator::initialise(const ast::Expr& init, const std::string& path, const TypeSpec* type, Scope& scope) {
  Frame frame;
  frame.what = "the initialiser of `" + path + "`";
  frame.callRange = init.range;
  frame.decl = &init;
  frame.site = path;
  frame.isInitialiser = true;
  FunctionBuild* outer = build_;
  const std::optional<std::string> naming = std::exchange(naming_, std::nullopt);
  const std::optional<TypeSpec> declared = std::exchange(declared_, std::nullopt);
  setBuild(init_.get());
  frames_.push_back(std::move(frame));
  if (type != nullptr && type->kind == TypeSpec::Kind::Tensor) declared_ = *type;
  Datum value = eval(init, scope);
  declared_ = std::nullopt;
  if (!value.isError() && type != nullptr) {
    const bool fill = value.isNumber() || value.is<BoolDatum>();  // `= 0.5` fills
    value = fill ? ops()->full(type->tensor.shape, value, type->tensor.dtype, init.range)
                 : convert(value, *type, init.range, "the initial value of `" + path + "`");
  }
  if (!value.isError() && !value.is<TensorDatum>()) {
    sink_.emit(init.range, diag::StandsWhere, describe(value), std::string("a tensor"));
    value = {};
  }
  frames_.pop_back();
  setBuild(outer);
  naming_ = naming;
  declared_ = declared;
  return value;
}

void Elaborator::addParameter(const ast::ParamDecl& decl, SourceRange range, Instance& instance, Scope& scope) {
  const std::string path = instance.path + "." + decl.name.text;
  const std::optional<TypeSpec> type = resolveType(*decl.type, scope);
  if (!type) return bindName(decl.name, {}, BindingKind::Member, instance.scope);
  if (type->kind != TypeSpec::Kind::Tensor) {
    sink_.emit(decl.type->range, diag::TypeDoesNotFit, decl.name.text, typeText(*decl.type), std::string("a tensor"));
    return bindName(decl.name, {}, BindingKind::Member, instance.scope);
  }
  (void)range;
  Parameter parameter;
  parameter.name = path;
  parameter.type = type->tensor;
  parameter.range = decl.name.range;
  parameter.doc = decl.doc;
  parameter.annotation = annotationByPath(path, type->tensor, type->written.get(), true);
  if (!parameter.annotation) {
    parameter.annotation = resolveAnnotations(decl.type->annotations, type->tensor, type->written.get(), scope, true);
  }
  const Datum value = initialise(*decl.init, path, &*type, scope);
  const auto index = static_cast<std::int64_t>(module_.parameters.size());
  module_.parameters.push_back(std::move(parameter));
  parameterExtras_.push_back({type->written, type->tensor.dtype, false});
  const auto* tensor = value.as<TensorDatum>();
  parameterInit_.push_back(tensor != nullptr ? tensor->id : ValueId{});
  if (tensor == nullptr) return bindName(decl.name, {}, BindingKind::Member, instance.scope);
  init_->setParameter(index, tensor->id);
  bindName(decl.name, ParameterDatum{index}, BindingKind::Member, instance.scope);
}

void Elaborator::addState(const ast::StateDecl& decl, SourceRange range, Instance& instance, Scope& scope) {
  const std::string path = instance.path + "." + decl.name.text;
  std::optional<TypeSpec> type;
  (void)range;
  if (decl.type != nullptr) {
    type = resolveType(*decl.type, scope);
    if (!type) return bindName(decl.name, {}, BindingKind::Member, instance.scope);
    if (type->kind != TypeSpec::Kind::Tensor) {
      sink_.emit(decl.type->range, diag::TypeDoesNotFit, decl.name.text, typeText(*decl.type), std::string("a tensor"));
      return bindName(decl.name, {}, BindingKind::Member, instance.scope);
    }
  }
  const Datum value = initialise(*decl.init, path, type ? &*type : nullptr, scope);
  const auto* tensor = value.as<TensorDatum>();
  if (tensor == nullptr) return bindName(decl.name, {}, BindingKind::Member, instance.scope);
  State state;
  state.name = path;
  state.type = tensor->type;
  state.range = decl.name.range;
  const std::shared_ptr<const Written> written = type ? type->written : nullptr;
  state.annotation = annotationByPath(path, state.type, written.get(), true);
  if (!state.annotation && decl.type != nullptr) {
    state.annotation = resolveAnnotations(decl.type->annotations, state.type, written.get(), scope, true);
  }
  const auto index = static_cast<std::int64_t>(module_.states.size());
  module_.states.push_back(std::move(state));
  stateWritten_.push_back(written);
  stateInit_.push_back(tensor->id);
  init_->setState(index, tensor->id);
  bindName(decl.name, StateDatum{index}, BindingKind::Member, instance.scope);
}

}  // namespace gshard::sema
