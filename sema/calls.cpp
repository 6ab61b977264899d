// Calls: of builtins, functions, models and instances; the chain of calls that messages show, and the sites of random
// numbers that follow it.
#include <algorithm>

#include "sema/diagnostics.h"
#include "sema/elaborator.h"
#include "support/check.h"
#include "support/text.h"

namespace gshard::sema {

namespace {
constexpr std::size_t kDeepest = 100;  // calls in calls; deeper programs would end the compiler's own stack
constexpr std::size_t kShownCalls = 3;
}  // namespace

std::string Elaborator::position(SourceRange range) const {
  if (!range.known()) return "?";
  return range.file == program_.main->ast->id ? sources_.describePosition(range) : sources_.describe(range);
}

std::vector<Note> Elaborator::chain() const {
  std::vector<Note> notes;
  std::size_t shown = 0;
  for (std::size_t i = frames_.size(); i-- > 0;) {
    const Frame& frame = frames_[i];
    if (i == 0 && !frame.isModel) break;
    if (frame.isBinding) continue;
    if (shown == kShownCalls) {
      notes.push_back(
          {"and " + plural(static_cast<std::int64_t>(i + 1 - (frames_[0].isModel ? 0 : 1)), "more call"), {}});
      break;
    }
    ++shown;
    std::string text = "in " + frame.what;
    if (!frame.bindings.empty()) text += " with " + frame.bindings;
    if (i > 0) {
      text += (frame.isModel ? ", made in " : ", called from ") + frames_[i - 1].what + " (" +
              position(frame.callRange) + ")";
    } else {
      text += ", made at " + position(frame.callRange);
    }
    notes.push_back({std::move(text), {}});
  }
  return notes;
}

std::string Elaborator::enterSite(const std::string& label) {
  if (frames_.empty()) return label;
  Frame& frame = frames_.back();
  const int count = frame.siteCounts[label]++;
  return frame.site + "/" + label + (count == 0 ? "" : "#" + std::to_string(count));
}

std::int64_t Elaborator::nextSite(std::string_view label, SourceRange range) {
  ++particulars_;
  std::string path;
  const auto root =
      std::find_if(frames_.rbegin(), frames_.rend(), [](const Frame& frame) { return frame.isInitialiser; });
  if (root != frames_.rend()) {
    const int count = root->siteCounts["random"]++;
    path = root->site + (count == 0 ? "" : "#" + std::to_string(count));
  } else {
    path = enterSite(std::string(label));
  }
  const std::uint32_t hash = siteHash(path);
  const auto [known, isNew] = sites_.try_emplace(hash, path);
  if (!isNew && known->second != path) {
    sink_.emit(range, diag::SitesCollide, known->second, path).help("rename one of them");
  }
  return static_cast<std::int64_t>(hash);
}

std::vector<CallArgument> Elaborator::evalArguments(const std::vector<ast::Argument>& arguments, Scope& scope) {
  std::vector<CallArgument> result;
  for (const ast::Argument& argument : arguments) {
    CallArgument made;
    made.name = argument.name.text;
    made.nameRange = argument.name.range;
    made.range = argument.value->range;
    made.value = eval(*argument.value, scope);
    result.push_back(std::move(made));
  }
  return result;
}

Datum Elaborator::evalCall(const ast::Call& call, SourceRange range, Scope& scope) {
  const std::optional<std::string> naming = std::exchange(naming_, std::nullopt);
  Datum callee;
  if (const auto* name = ast::as<ast::NameRef>(*call.callee)) {
    callee = evalName(name->name, call.callee->range, scope, true);
  } else {
    callee = eval(*call.callee, scope);
  }
  std::vector<CallArgument> arguments = evalArguments(call.arguments, scope);
  naming_ = naming;
  if (callee.isError()) return {};
  if (callee.is<NoneDatum>()) {
    sink_.emit(range, diag::NotCallable, describe(callee)).label(call.callee->range, kindOf(callee));
    return {};
  }
  for (const CallArgument& argument : arguments) {
    if (argument.value.isError()) return {};
  }
  if (const auto* builtin = callee.as<BuiltinRef>()) return callBuiltin(*builtin->row, std::move(arguments), range);
  if (const auto* function = callee.as<FunctionRef>()) return callFunction(*function, arguments, range);
  if (const auto* model = callee.as<ModelRef>()) return instantiate(*model, arguments, range);
  if (const auto* instance = callee.as<InstanceDatum>()) {
    const auto found = instance->instance->functions.find("call");
    if (found != instance->instance->functions.end()) {
      const FunctionRef function{found->second, &instance->instance->scope.unit(), instance->instance};
      return callFunction(function, arguments, range);
    }
    sink_.emit(range, diag::ModelWithoutCall, instance->instance->decl->name.text)
        .label(instance->instance->decl->name.range, "declared here")
        .help("name a function of it: `net.encode(x)`");
    return {};
  }
  sink_.emit(range, diag::NotCallable, describe(callee)).label(call.callee->range, kindOf(callee));
  return {};
}

Datum Elaborator::callBuiltin(const BuiltinRow& row, std::vector<CallArgument> arguments, SourceRange range) {
  const Signature& signature = signatureOf(row);
  std::vector<std::string> filled;
  if (declared_) filled = {"shape", "dtype"};
  auto bound = bindArguments(signature, arguments, filled, range, sink_);
  if (!bound) return {};
  BuiltinContext context;
  context.ops = ops();
  context.sink = &sink_;
  if (declared_) context.declared = declared_->tensor;
  context.real = real_;
  context.nextSite = [this, &row](SourceRange at) { return nextSite(row.name, at); };
  BuiltinCall call(row, context, std::move(arguments), std::move(*bound), range);
  return row.build(call);
}

bool Elaborator::checkDepth(const void* decl, const Instance* instance, std::string_view name, SourceRange range) {
  for (const Frame& frame : frames_) {
    if (frame.decl != decl || frame.instance != instance) continue;
    sink_.emit(range, diag::Recursion, std::string(name))
        .note("everything is unrolled while compiling, so no call may reach itself");
    return false;
  }
  if (frames_.size() < kDeepest) return true;
  sink_.emit(range, diag::CallsTooDeep, static_cast<std::int64_t>(kDeepest));
  return false;
}

bool Elaborator::bindParameters(const std::vector<ast::Parameter>& parameters,
                                const std::vector<ast::Generic>& generics, const Signature& signature,
                                const std::vector<CallArgument>& arguments, SourceRange range, Scope& scope) {
  std::vector<std::string> filled;
  if (declared_) filled = {"shape", "dtype"};
  frames_.back().isBinding = true;
  const auto bound = bindArguments(signature, arguments, filled, range, sink_);
  if (!bound) return false;
  const std::optional<TypeSpec> declared = std::exchange(declared_, std::nullopt);
  const std::size_t frame = frames_.size() - 1;
  const bool good = [&] {
    GenericValues values;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if ((*bound)[i].empty()) continue;
      const CallArgument& argument = arguments[(*bound)[i].front()];
      if (!infer(*parameters[i].type, argument.value, generics, values, parameters[i].name.text, argument.range))
        return false;
    }
    std::vector<std::string> texts;
    for (const ast::Generic& generic : generics) {
      const auto found = values.find(generic.name.text);
      if (found == values.end()) {
        sink_.emit(range, diag::GenericUnknown, generic.name.text, signature.name)
            .label(generic.range, "declared here")
            .note("a generic is worked out from an argument whose type names it alone");
        return false;
      }
      texts.push_back(generic.name.text + " = " + printDatum(found->second.value));
      bindName(generic.name, found->second.value, BindingKind::Generic, scope);
    }
    frames_.back().bindings = join(texts, ", ");
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const ast::Parameter& parameter = parameters[i];
      Datum value;
      SourceRange from = range;
      if (!(*bound)[i].empty()) {
        value = arguments[(*bound)[i].front()].value;
        from = arguments[(*bound)[i].front()].range;
      } else if (declared && parameter.name.text == "shape") {
        value = makeInts(declared->tensor.shape);
      } else if (declared && parameter.name.text == "dtype") {
        value = DTypeDatum{declared->tensor.dtype};
      } else {
        value = eval(*parameter.defaultValue, scope);
        from = parameter.defaultValue->range;
      }
      if (value.isError()) return false;
      const bool mayBeNone = parameter.defaultValue != nullptr && ast::is<ast::NoneLiteral>(*parameter.defaultValue);
      if (!(value.is<NoneDatum>() && mayBeNone)) {
        const std::optional<TypeSpec> type = resolveType(*parameter.type, scope);
        if (!type) return false;
        value = convert(value, *type, from, "`" + parameter.name.text + "` of `" + signature.name + "`");
        if (value.isError()) return false;
        value = annotate(value, parameter.type->annotations, type->written.get(), scope, from, false);
      }
      bindName(parameter.name, value, BindingKind::Parameter, scope);
    }
    return true;
  }();
  declared_ = declared;
  frames_[frame].isBinding = false;
  return good;
}

Datum Elaborator::callFunction(const FunctionRef& function, const std::vector<CallArgument>& arguments,
                               SourceRange range) {
  const ast::FnDecl& decl = *function.decl;
  if (!decl.manualOver.empty()) {
    notSupported(decl.name.range, "manual functions are");
    return {};
  }
  const FileUnit& unit = *function.unit;
  Instance* instance = function.instance.get();
  const std::string& name = decl.name.text;
  const std::string display = instance != nullptr ? instance->decl->name.text + "." + name : name;
  if (!checkDepth(&decl, instance, display, range)) return {};
  Frame frame;
  frame.what = (decl.isEntry ? "entry `" : "`") + display + "`";
  frame.callRange = range;
  frame.decl = &decl;
  frame.instance = instance;
  frame.isFunction = true;
  const std::string path = instance != nullptr ? instance->path + "." + name
                           : unit.isMain       ? name
                                               : unit.name + "." + name;
  frame.letPath = path;
  frame.site = enterSite(path);
  Scope scope(unit, instance != nullptr ? &instance->scope : nullptr);
  Signature signature{display, signatureText(display, decl.parameters), {}};
  for (const ast::Parameter& parameter : decl.parameters) {
    signature.parameters.push_back({parameter.name.text, parameter.defaultValue == nullptr, false});
  }
  frames_.push_back(std::move(frame));
  const std::optional<std::string> naming = naming_;
  Datum result;
  if (bindParameters(decl.parameters, decl.generics, signature, arguments, range, scope)) {
    const std::optional<TypeSpec> declared = std::exchange(declared_, std::nullopt);
    result = runBody(decl, scope);
    declared_ = declared;
  }
  naming_ = naming;
  frames_.pop_back();
  return result;
}

// Runs the body in the frame on top, and gives the result its declared type.
Datum Elaborator::runBody(const ast::FnDecl& decl, Scope& scope) {
  const std::int64_t errors = sink_.errors();
  const std::size_t before = emitted();
  if (execBlock(decl.body, scope) == Flow::Next) {
    if (sink_.errors() == errors) sink_.emit(decl.name.range, diag::NothingReturned, decl.name.text);
    return {};
  }
  Datum result = frames_.back().result;
  const SourceRange range = frames_.back().resultRange;
  if (result.isError() || decl.result == nullptr) return result;
  const std::optional<TypeSpec> type = resolveType(*decl.result, scope);
  if (!type) return {};
  result = convert(result, *type, range, "the result of `" + decl.name.text + "`");
  if (result.isError()) return {};
  if (type->kind == TypeSpec::Kind::Tuple) {
    const auto* tuple = result.as<TupleDatum>();
    std::vector<Datum> items;
    for (std::size_t i = 0; i < type->elements.size(); ++i) {
      const TypeSpec& element = type->elements[i];
      items.push_back(annotate((*tuple->items)[i], element.source->annotations, element.written.get(), scope, range));
    }
    return makeTuple(std::move(items));
  }
  result = annotate(result, decl.result->annotations, type->written.get(), scope, range);
  recompute(decl.result->annotations, before);
  return result;
}

}  // namespace gshard::sema
