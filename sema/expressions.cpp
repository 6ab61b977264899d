// Expressions: names, members, operators, lists, conditionals. Calls and indices are apart.
#include <cmath>
#include <limits>

#include "sema/diagnostics.h"
#include "sema/elaborator.h"
#include "support/check.h"
#include "support/overloaded.h"
#include "support/text.h"

namespace gshard::sema {

namespace {
constexpr std::int64_t kMostItems = 1'000'000;
}  // namespace

Datum Elaborator::eval(const ast::Expr& expr, Scope& scope) {
  const SourceRange range = expr.range;
  return std::visit(Overloaded{[](const ast::ErrorExpr&) -> Datum { return {}; },
                               [](const ast::IntLiteral& e) { return makeInt(e.value); },
                               [](const ast::FloatLiteral& e) { return makeFloat(e.value); },
                               [](const ast::BoolLiteral& e) { return makeBool(e.value); },
                               [](const ast::StringLiteral& e) -> Datum { return StringDatum{e.value}; },
                               [](const ast::NoneLiteral&) -> Datum { return NoneDatum{}; },
                               [&](const ast::NameRef& e) { return evalName(e.name, range, scope, false); },
                               [&](const ast::Member& e) { return evalMember(e, range, scope); },
                               [&](const ast::Call& e) { return evalCall(e, range, scope); },
                               [&](const ast::Index& e) { return evalIndex(e, range, scope); },
                               [&](const ast::Unary& e) {
                                 return applyUnary(e.op, eval(*e.operand, scope), e.operand->range, range, ops(),
                                                   sink_);
                               },
                               [&](const ast::Binary& e) { return evalBinary(e, range, scope); },
                               [&](const ast::RangeExpr& e) -> Datum {
                                 const std::optional<std::int64_t> low = evalInt(*e.low, scope, "the start of a range");
                                 const std::optional<std::int64_t> high = evalInt(*e.high, scope, "the end of a range");
                                 if (!low || !high) return {};
                                 return RangeDatum{*low, *high};
                               },
                               [&](const ast::ListExpr& e) -> Datum {
                                 std::vector<Datum> items;
                                 const std::optional<std::string> base = naming_;
                                 for (std::size_t i = 0; i < e.elements.size(); ++i) {
                                   if (base) naming_ = *base + "." + std::to_string(i);
                                   items.push_back(eval(*e.elements[i], scope));
                                 }
                                 naming_ = base;
                                 return makeList(std::move(items));
                               },
                               [&](const ast::Comprehension& e) { return evalComprehension(e, range, scope); },
                               [&](const ast::TupleExpr& e) -> Datum {
                                 std::vector<Datum> items;
                                 for (const ast::ExprPtr& element : e.elements) items.push_back(eval(*element, scope));
                                 return makeTuple(std::move(items));
                               },
                               [&](const ast::IfExpr& e) { return evalIf(e, scope); },
                               [&](const ast::AnnotatedExpr& e) {
                                 const std::size_t before = emitted();
                                 const Datum value = eval(*e.operand, scope);
                                 const Datum annotated = annotate(value, e.annotations, nullptr, scope, range);
                                 recompute(e.annotations, before);
                                 return annotated;
                               }},
                    expr.node);
}

Datum Elaborator::read(const Datum& datum) {
  if (build_ == nullptr) return datum;
  if (const auto* parameter = datum.as<ParameterDatum>()) {
    ++particulars_;
    const auto at = static_cast<std::size_t>(parameter->index);
    const ValueId id = build_->parameter(parameter->index);
    TensorDatum tensor{id, build_->type(id), parameterExtras_[at].written};
    if (tensor.type.dtype == parameterExtras_[at].readAs) return tensor;
    const Datum rounded = ops()->cast(tensor, parameterExtras_[at].readAs, module_.parameters[at].range);
    return rounded;
  }
  if (const auto* state = datum.as<StateDatum>()) {
    if (module_.states[static_cast<std::size_t>(state->index)].parameter < 0) ++particulars_;
    const ValueId id = build_->state(state->index);
    return TensorDatum{id, build_->type(id), stateWritten_[static_cast<std::size_t>(state->index)]};
  }
  if (const auto* setting = datum.as<SettingDatum>()) {
    const ValueId id = build_->setting(setting->index);
    return TensorDatum{id, build_->type(id), nullptr};
  }
  if (const auto* given = datum.as<Given>()) {
    const ValueId id = *given == Given::Step ? build_->step() : build_->steps();
    return TensorDatum{id, build_->type(id), nullptr};
  }
  return datum;
}

Datum Elaborator::givenName(std::string_view name) {
  if (name == "training") return makeBool(build_ != nullptr && build_->training());
  if (name == "step") return Given::Step;
  if (name == "steps") return Given::Steps;
  if (name == "real") return DTypeDatum{real_};
  if (name == "wide") return DTypeDatum{wide()};
  if (name == "pi") return makeFloat(3.14159265358979323846);
  if (name == "inf") return makeFloat(std::numeric_limits<double>::infinity());
  if (name == "nan") return makeFloat(std::numeric_limits<double>::quiet_NaN());
  if (const std::optional<DType> dtype = dtypeFromName(name); dtype && name != "bool") return DTypeDatum{*dtype};
  if (name == "bool") return DTypeDatum{DType::Bool};
  return {};
}

std::vector<std::string> Elaborator::namesInScope(Scope& scope) const {
  std::vector<std::string> names;
  // For proposals, which nobody reads after the first hundred; comparing all names each time would take the square.
  if (sink_.errors() > 100) return names;
  for (Scope* at = &scope; at != nullptr; at = at->parent()) {
    for (const Binding& binding : at->bindings()) names.push_back(binding.name);
  }
  for (const auto& [name, global] : scope.unit().globals) names.push_back(name);
  for (const auto& [name, unit] : scope.unit().imports) names.push_back(name);
  for (const MeshAxis& axis : mesh_.mesh.axes) names.push_back(axis.name);
  if (program_.prelude != nullptr) {
    for (const auto& [name, global] : program_.prelude->globals) names.push_back(name);
  }
  for (const std::string& name : builtinNames()) names.push_back(name);
  for (const char* name : {"training", "step", "steps", "real", "wide", "pi", "inf", "nan", "devices"})
    names.emplace_back(name);
  return names;
}

Datum Elaborator::evalName(const std::string& name, SourceRange range, Scope& scope, bool isCallee) {
  if (Binding* binding = scope.find(name)) return read(binding->value);
  const FileUnit& unit = scope.unit();
  if (const auto found = unit.globals.find(name); found != unit.globals.end()) {
    Datum value = read(evalGlobal(unit, found->second));
    // Where rows are set at run time, the constant that sizes them counts the rows there are.
    if (const auto* i = value.as<IntDatum>(); i != nullptr && unit.isMain && build_ != nullptr && name == rowName_) {
      return IntDatum{i->value, RowsUse::Exact};
    }
    return value;
  }
  if (const auto found = unit.imports.find(name); found != unit.imports.end()) return UnitDatum{found->second};
  if (const std::optional<int> axis = mesh_.mesh.find(name)) return AxisDatum{name, {wholeAxis(mesh_.mesh, *axis)}};
  if (name == "devices") {
    std::vector<AxisRef> all;
    for (std::size_t i = 0; i < mesh_.mesh.axes.size(); ++i) all.push_back(wholeAxis(mesh_.mesh, static_cast<int>(i)));
    return AxisDatum{name, std::move(all)};
  }
  if (program_.prelude != nullptr && &unit != program_.prelude) {
    const auto found = program_.prelude->globals.find(name);
    if (found != program_.prelude->globals.end()) return read(evalGlobal(*program_.prelude, found->second));
  }
  // `int`, `float` and `dtype` are types and functions; in an expression they are functions.
  if (const BuiltinRow* row = findBuiltin(name)) return BuiltinRef{row};
  const Datum given = givenName(name);
  if (!given.isError()) return read(given);
  if (mesh_.hidden.contains(name)) {
    sink_.emit(range, diag::AxisNotInMesh, name, printMesh(mesh_.mesh))
        .note("the mesh of the source was replaced by an option");
    return {};
  }
  DiagBuilder builder = sink_.emit(range, diag::UnknownName, std::string(isCallee ? "function" : "name"), name);
  if (const std::optional<std::string> close = suggest(name, namesInScope(scope))) {
    builder.fix("did you mean `" + *close + "`?", false, {{range, *close}});
  }
  return {};
}

Datum Elaborator::evalMember(const ast::Member& member, SourceRange range, Scope& scope) {
  const Datum object = eval(*member.object, scope);
  if (object.isError()) return {};
  const std::string& name = member.name.text;
  std::vector<std::string> candidates;
  if (const auto* unit = object.as<UnitDatum>()) {
    const auto found = unit->unit->globals.find(name);
    if (found != unit->unit->globals.end()) return read(evalGlobal(*unit->unit, found->second));
    for (const auto& [known, global] : unit->unit->globals) candidates.push_back(known);
  } else if (const auto* instance = object.as<InstanceDatum>()) {
    const Instance& inside = *instance->instance;
    if (const auto found = inside.functions.find(name); found != inside.functions.end()) {
      return FunctionRef{found->second, &inside.scope.unit(), instance->instance};
    }
    if (Binding* binding = instance->instance->scope.findHere(name)) return read(binding->value);
    for (const auto& [known, decl] : inside.functions) candidates.push_back(known);
    for (const Binding& binding : inside.scope.bindings()) candidates.push_back(binding.name);
  } else if (const auto* record = object.as<RecordDatum>()) {
    for (const auto& [known, value] : *record->fields) {
      if (known == name) return value;
      candidates.push_back(known);
    }
  } else {
    sink_.emit(member.name.range, diag::NoMembers, describe(object), name).label(member.object->range, kindOf(object));
    return {};
  }
  DiagBuilder builder = sink_.emit(member.name.range, diag::UnknownMember, describe(object), name);
  if (object.is<RecordDatum>()) builder.note("it has `" + join(candidates, "`, `") + "`");
  if (const std::optional<std::string> close = suggest(name, candidates)) {
    builder.fix("did you mean `" + *close + "`?", false, {{member.name.range, *close}});
  }
  (void)range;
  return {};
}

Datum Elaborator::evalBinary(const ast::Binary& binary, SourceRange range, Scope& scope) {
  Datum left = eval(*binary.left, scope);
  // Compile-time `and` and `or` look at the right side only when it matters, so that `n > 0 and k % n == 0` works.
  if (const auto* known = left.as<BoolDatum>()) {
    if (binary.op == ast::BinaryOp::And && !known->value) return left;
    if (binary.op == ast::BinaryOp::Or && known->value) return left;
  }
  Datum right = eval(*binary.right, scope);
  const auto number = [](Datum& datum) {
    if (const auto* axis = datum.as<AxisDatum>(); axis != nullptr && axis->name == "devices")
      datum = makeInt(productOf(axis->axes));
  };
  number(left);
  number(right);
  return applyBinary(binary.op, left, right, {binary.left->range, binary.right->range, range, binary.opRange}, ops(),
                     sink_);
}

std::optional<std::vector<Datum>> Elaborator::evalSource(const ast::Expr& expr, Scope& scope) {
  const std::optional<std::string> outer = std::exchange(naming_, std::nullopt);
  const Datum source = eval(expr, scope);
  naming_ = outer;
  if (source.isError()) return std::nullopt;
  if (const auto* list = source.as<ListDatum>()) return *list->items;
  if (const auto* range = source.as<RangeDatum>()) {
    std::vector<Datum> items;
    if (range->high - range->low > kMostItems) {
      sink_.emit(expr.range, diag::TooManyStatements, kMostItems)
          .note("the loop would be unrolled " + formatCount(range->high - range->low) + " times");
      return std::nullopt;
    }
    for (std::int64_t i = range->low; i < range->high; ++i) items.push_back(makeInt(i));
    return items;
  }
  sink_.emit(expr.range, diag::NotIterable, describe(source)).help("`for` runs over a list, or a range such as `0..n`");
  return std::nullopt;
}

Datum Elaborator::evalComprehension(const ast::Comprehension& comprehension, SourceRange range, Scope& scope) {
  const std::optional<std::vector<Datum>> source = evalSource(*comprehension.source, scope);
  if (!source) return {};
  const std::optional<std::string> base = naming_;
  std::vector<Datum> items;
  const std::string loop = frames_.empty() ? "" : enterSite("for");
  for (std::size_t i = 0; i < source->size(); ++i) {
    if (!countStatement(range)) return {};
    Scope inner(scope.unit(), &scope);
    bindName(comprehension.variable, (*source)[i], BindingKind::LoopVariable, inner);
    if (base) naming_ = *base + "." + std::to_string(i);
    if (frames_.empty()) {
      items.push_back(eval(*comprehension.element, inner));
    } else {
      const std::string site = frames_.back().site;
      const std::map<std::string, int> counts = std::exchange(frames_.back().siteCounts, {});
      frames_.back().site = loop + "[" + std::to_string(i) + "]";
      items.push_back(eval(*comprehension.element, inner));
      frames_.back().site = site;
      frames_.back().siteCounts = counts;
    }
    // One mistake in the element is one error, not one per turn.
    if (items.back().isError()) break;
  }
  naming_ = base;
  if (!items.empty() && items.back().isError()) return {};
  return makeList(std::move(items));
}

Datum Elaborator::evalIf(const ast::IfExpr& expr, Scope& scope) {
  for (const ast::IfExpr::Arm& arm : expr.arms) {
    const std::optional<bool> condition = evalCondition(*arm.condition, scope);
    if (!condition) return {};
    if (*condition) return eval(*arm.value, scope);
  }
  return eval(*expr.otherwise, scope);
}

std::optional<bool> Elaborator::evalCondition(const ast::Expr& expr, Scope& scope) {
  const std::optional<std::string> outer = std::exchange(naming_, std::nullopt);
  const Datum value = eval(expr, scope);
  naming_ = outer;
  if (value.isError()) return std::nullopt;
  if (const auto* known = value.as<BoolDatum>()) return known->value;
  DiagBuilder builder = sink_.emit(expr.range, diag::ConditionAtRunTime, describe(value));
  if (value.isTensorLike()) builder.help("`where(c, a, b)` chooses at run time");
  return std::nullopt;
}

std::optional<std::int64_t> Elaborator::evalInt(const ast::Expr& expr, Scope& scope, std::string_view what) {
  const std::optional<std::string> outer = std::exchange(naming_, std::nullopt);
  Datum value = eval(expr, scope);
  naming_ = outer;
  if (value.isError()) return std::nullopt;
  if (const auto* axis = value.as<AxisDatum>(); axis != nullptr && axis->name == "devices")
    value = makeInt(productOf(axis->axes));
  if (const auto* i = value.as<IntDatum>()) return i->value;
  sink_.emit(expr.range, diag::ValueDoesNotFit, std::string(what), describe(value), std::string("a compile-time int"));
  return std::nullopt;
}

bool Elaborator::hasRoomFor(std::int64_t statements) const {
  return statements_ + statements <= kMostItems;
}

bool Elaborator::countStatement(SourceRange range) {
  if (++statements_ <= kMostItems) return true;
  if (!tooManyStatements_)
    sink_.emit(range, diag::TooManyStatements, kMostItems).note("loops are unrolled while compiling");
  tooManyStatements_ = true;
  return false;
}

}  // namespace gshard::sema
