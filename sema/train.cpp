// Training: which optimizer updates which parameter, and the update that follows the gradients.
#include <algorithm>

#include "ir/autodiff.h"
#include "sema/clip_gradients.h"
#include "sema/diagnostics.h"
#include "sema/elaborator.h"
#include "support/text.h"

namespace gshard::sema {

namespace {
std::string dotted(const ast::DottedName& name) {
  std::vector<std::string> parts;
  for (const ast::Name& part : name.parts) parts.push_back(part.text);
  return join(parts, ".");
}
}  // namespace

bool Elaborator::planOptions(TrainPlan& plan) {
  bool good = true;
  Scope scope(*program_.main, nullptr);
  for (const ast::TrainDecl::Option& option : plan.decl->options) {
    const std::string& name = option.name.text;
    if (name == "microbatches") {
      const std::optional<std::int64_t> count = evalInt(*option.value, scope, "`microbatches`");
      if (!count) {
        good = false;
      } else if (*count < 1) {
        sink_.emit(option.value->range, diag::ValueDoesNotFit, std::string("`microbatches`"), std::to_string(*count),
                   std::string("at least 1"));
        good = false;
      } else {
        plan.microbatches = *count;
      }
    } else if (name == "clip_norm") {
      good = planClipNorm(plan, *option.value) && good;
    } else if (name != "precision") {  // which was applied before anything had a type
      DiagBuilder builder = sink_.emit(option.name.range, diag::TrainOption, name);
      if (const std::optional<std::string> close = suggest(name, {"clip_norm", "microbatches", "precision"})) {
        builder.fix("did you mean `" + *close + "`?", false, {{option.name.range, *close}});
      }
      good = false;
    }
  }
  return good;
}

bool Elaborator::planClipNorm(TrainPlan& plan, const ast::Expr& limit) {
  Scope scope(*program_.main, nullptr);
  const Datum value = eval(limit, scope);
  if (value.isError()) return false;
  const auto* setting = value.as<SettingDatum>();
  const double number = setting != nullptr ? module_.settings[static_cast<std::size_t>(setting->index)].value
                        : value.isNumber() ? numberOf(value)
                                           : 0;
  if (!(number > 0)) {
    sink_.emit(limit.range, diag::ValueDoesNotFit, std::string("`clip_norm`"), describe(value),
               std::string("a number above 0"));
    return false;
  }
  plan.clipNorm = &limit;
  return true;
}

bool Elaborator::planTraining() {
  bool good = true;
  for (const ast::Decl& decl : program_.main->ast->decls) {
    const auto* written = ast::as<ast::TrainDecl>(decl);
    if (written == nullptr) continue;
    if (train_) {
      notSupported(decl.range, "several `train` declarations are");
      return false;
    }
    TrainPlan plan;
    plan.decl = written;
    plan.range = written->function.range;
    const std::string name = dotted(written->function);
    const auto found = program_.main->globals.find(name);
    const ast::FnDecl* fn = found != program_.main->globals.end() ? ast::as<ast::FnDecl>(*found->second.decl) : nullptr;
    if (fn == nullptr || !fn->isEntry) {
      std::vector<std::string> entries;
      for (const auto& [known, global] : program_.main->globals) {
        const auto* each = ast::as<ast::FnDecl>(*global.decl);
        if (each != nullptr && each->isEntry) entries.push_back(known);
      }
      DiagBuilder builder = sink_.emit(written->function.range, diag::TrainNoEntry, name);
      if (fn != nullptr) {
        builder.label(fn->name.range, "this function").help("write `entry fn " + name + "`");
      } else if (const std::optional<std::string> close = suggest(name, entries)) {
        builder.fix("did you mean `" + *close + "`?", false, {{written->function.range, *close}});
      }
      return false;
    }
    plan.entry = fn;
    good = planOptions(plan) && good;
    for (const ast::TrainDecl::Optimizer& each : written->optimizers) {
      Scope scope(*program_.main, nullptr);
      Datum datum = evalName(each.name.parts.front().text, each.name.parts.front().range, scope, false);
      for (std::size_t i = 1; i < each.name.parts.size() && !datum.isError(); ++i) {
        const ast::Name& part = each.name.parts[i];
        const auto* unit = datum.as<UnitDatum>();
        const auto global = unit != nullptr ? unit->unit->globals.find(part.text) : program_.main->globals.end();
        if (unit == nullptr || global == unit->unit->globals.end()) {
          std::vector<std::string> names;
          if (unit != nullptr) {
            for (const auto& [known, other] : unit->unit->globals) names.push_back(known);
          }
          DiagBuilder builder = sink_.emit(part.range, diag::UnknownMember, describe(datum), part.text);
          if (const std::optional<std::string> close = suggest(part.text, names)) {
            builder.fix("did you mean `" + *close + "`?", false, {{part.range, *close}});
          }
          datum = {};
          break;
        }
        datum = evalGlobal(*unit->unit, global->second);
      }
      if (const auto* optimizer = datum.as<OptimizerRef>()) {
        plan.uses.push_back({*optimizer, &each});
        continue;
      }
      if (!datum.isError()) sink_.emit(each.name.range, diag::NotAnOptimizer, describe(datum));
      good = false;
    }
    train_ = std::move(plan);
  }
  if (!train_) return good;
  if (!good || sink_.errors() > 0) return false;  // parameters may be missing
  if (!matchOptimizers(*train_)) return false;
  const std::int64_t errors = sink_.errors();
  addOptimizerStates();
  return sink_.errors() == errors;
}

bool Elaborator::matchOptimizers(TrainPlan& plan) {
  plan.useOf.assign(module_.parameters.size(), -1);
  bool good = true;
  for (std::size_t u = 0; u < plan.uses.size(); ++u) {
    const ast::TrainDecl::Optimizer& written = *plan.uses[u].written;
    std::vector<std::int64_t> matches(written.patterns.size(), 0);
    for (std::size_t p = 0; p < module_.parameters.size(); ++p) {
      const std::string& path = module_.parameters[p].name;
      bool matched = written.patterns.empty();
      for (std::size_t i = 0; i < written.patterns.size(); ++i) {
        if (!matchesPattern(written.patterns[i], path)) continue;
        ++matches[i];
        matched = true;
      }
      if (!matched) continue;
      if (plan.useOf[p] >= 0) {
        sink_.emit(written.range, diag::TwoOptimizers, path)
            .label(plan.uses[static_cast<std::size_t>(plan.useOf[p])].written->range, "matches it, too");
        good = false;
        continue;
      }
      plan.useOf[p] = static_cast<std::int64_t>(u);
    }
    for (std::size_t i = 0; i < matches.size(); ++i) {
      if (matches[i] > 0) continue;
      sink_.emit(written.patterns[i].range, diag::PatternMatchesNothing, sourceText(written.patterns[i].range))
          .note("an optimizer's patterns match parameters");
      good = false;
    }
  }
  for (std::size_t p = 0; p < module_.parameters.size(); ++p) {
    Parameter& parameter = module_.parameters[p];
    if (plan.useOf[p] < 0) continue;
    if (!isFloat(parameter.type.dtype)) {
      sink_.emit(parameter.range, diag::TrainedInteger, parameter.name, printType(parameter.type))
          .help("leave it out of the optimizer's patterns, or make it a `state`");
      good = false;
      continue;
    }
    parameter.trained = true;
    if (byteSize(parameter.type.dtype) != 2) continue;
    // Small updates would be lost in 16 bits: kept and updated wide, read rounded.
    parameter.type.dtype = wide();
    const ValueId wide = init_->builder().cast(parameterInit_[p], parameter.type.dtype, parameter.range);
    parameterInit_[p] = wide;
    init_->setParameter(static_cast<std::int64_t>(p), wide);
  }
  if (good && std::none_of(plan.useOf.begin(), plan.useOf.end(), [](std::int64_t use) { return use >= 0; })) {
    sink_.emit(plan.range, diag::NothingTrained, plan.entry->name.text);
    good = false;
  }
  return good;
}

std::vector<ValueId> Elaborator::clipped(FunctionBuild& build, const std::vector<ValueId>& gradients) {
  const ast::Expr& limit = *train_->clipNorm;
  Scope scope(*program_.main, nullptr);
  DType dtype = wide();
  for (const ValueId gradient : gradients) {
    if (build.type(gradient).dtype == DType::F64) dtype = DType::F64;
  }
  const Datum value = eval(limit, scope);
  std::optional<TensorDatum> number;
  if (const auto* setting = value.as<TensorDatum>()) {
    number = *setting;
  } else {
    number = ops()->adapt(makeFloat(numberOf(value)), dtype, limit.range);
  }
  if (!number) return gradients;
  const ValueId id = number->type.dtype == dtype ? number->id : build.builder().cast(number->id, dtype, limit.range);
  return clipByGlobalNorm(build.builder(), gradients, id, limit.range);
}

void Elaborator::finishTraining(FunctionBuild& build, const Datum& loss) {
  const auto* value = loss.as<TensorDatum>();
  if (value == nullptr || !value->type.isScalar() || !isFloat(value->type.dtype)) {
    sink_
        .emit(frames_.back().resultRange, diag::NotAScalar, "the trained result of `" + train_->entry->name.text + "`",
              describe(loss))
        .label(train_->range, "trained here")
        .help("`mean` it, or `sum`");
    return;
  }
  std::vector<std::int64_t> trained;
  std::vector<ValueId> sources;
  for (std::size_t p = 0; p < module_.parameters.size(); ++p) {
    if (train_->useOf[p] < 0) continue;
    trained.push_back(static_cast<std::int64_t>(p));
    sources.push_back(build.parameter(static_cast<std::int64_t>(p)));
  }
  const std::int64_t errors = sink_.errors();
  const std::size_t valuesBefore = build.function().values.size();
  std::vector<ValueId> gradientIds = gradients(build.builder(), value->id, sources, build.recomputed());
  if (sink_.errors() != errors) return;
  // The plan names what it moves: a gradient by its parameter.
  for (std::size_t i = 0; i < trained.size(); ++i) {
    build.builder().function().value(gradientIds[i]).name =
        "grad." + module_.parameters[static_cast<std::size_t>(trained[i])].name;
  }
  build.builder().setPhase(Phase::Update);
  if (train_->clipNorm != nullptr) gradientIds = clipped(build, gradientIds);
  Scope scope(*program_.main, nullptr);
  const std::int64_t particulars = particulars_;
  std::vector<std::vector<CallArgument>> arguments;
  for (const TrainPlan::Use& use : train_->uses) arguments.push_back(evalArguments(use.written->arguments, scope));
  const bool sharesArguments = particulars_ == particulars;
  for (std::size_t i = 0; i < trained.size() && sink_.errors() == errors; ++i) {
    const std::int64_t p = trained[i];
    const auto use = static_cast<std::size_t>(train_->useOf[static_cast<std::size_t>(p)]);
    // A gradient that backward has not made may be something that the body reads by another name, too.
    const bool mayRepeat = sharesArguments && gradientIds[i].index >= valuesBefore;
    const std::optional<ValueId> updated =
        update(build, {use, p, sources[i], gradientIds[i], mayRepeat}, arguments[use]);
    if (!updated) continue;
    const Parameter& parameter = module_.parameters[static_cast<std::size_t>(p)];
    build.setParameter(p, *updated);
    build.function().results.push_back(
        {ResultKind::Parameter, parameter.name, p, *updated, Reduction::Sum, parameter.range});
  }
}

}  // namespace gshard::sema
