// Optimizers: their bodies run into `init` for the first values of their states, and into the trained function for the
// update. For one weight of each type a body is elaborated; for the others its ops are repeated, unless something that
// it says depends on which weight it is.
#include <algorithm>

#include "sema/elaborator.h"

namespace gshard::sema {

template <class Body>
void Elaborator::asOptimizer(const TrainPlan::Use& use, std::int64_t parameter, Body body) {
  const ast::OptimizerDecl& decl = *use.optimizer.decl;
  const std::string& path = module_.parameters[static_cast<std::size_t>(parameter)].name;
  Frame frame;
  frame.what = "optimizer `" + decl.name.text + "` of `" + path + "`";
  frame.callRange = use.written->range;
  frame.decl = &decl;
  frame.site = path + "." + decl.name.text;
  auto* outerStates = std::exchange(optimizerStates_, &train_->states[parameter]);
  const std::string outerPath = std::exchange(optimizerPath_, frame.site);
  const std::int64_t outerParameter = std::exchange(optimizerParameter_, parameter);
  frames_.push_back(std::move(frame));
  body();
  frames_.pop_back();
  optimizerStates_ = outerStates;
  optimizerPath_ = outerPath;
  optimizerParameter_ = outerParameter;
}

std::optional<TensorDatum> Elaborator::runOptimizer(const TrainPlan::Use& use,
                                                    const std::vector<CallArgument>& arguments, std::int64_t parameter,
                                                    const TensorDatum& weight, const TensorDatum& gradient) {
  const ast::OptimizerDecl& decl = *use.optimizer.decl;
  std::optional<TensorDatum> updated;
  asOptimizer(use, parameter, [&] {
    Signature signature{decl.name.text, signatureText(decl.name.text, decl.parameters), {}};
    for (const ast::Parameter& each : decl.parameters) {
      signature.parameters.push_back({each.name.text, each.defaultValue == nullptr, false});
    }
    Scope scope(*use.optimizer.unit, nullptr);
    const std::int64_t errors = sink_.errors();
    if (!bindParameters(decl.parameters, {}, signature, arguments, use.written->range, scope)) return;
    bindName(decl.weight, weight, BindingKind::Weight, scope);
    bindName(decl.gradient, gradient, BindingKind::Let, scope);
    execBlock(decl.body, scope);
    const Binding* result = scope.findHere(decl.weight.text);
    if (result != nullptr && result->value.is<TensorDatum>() && sink_.errors() == errors) {
      updated = *result->value.as<TensorDatum>();
    }
  });
  return updated;
}

// Of the state whose first value was just made, `value` in `init`: its number.
std::int64_t Elaborator::addOptimizerState(const ast::StateDecl& decl, ValueId value) {
  State state;
  state.name = optimizerPath_ + "." + decl.name.text;
  state.type = init_->type(value);
  state.parameter = optimizerParameter_;
  state.range = decl.name.range;
  const auto index = static_cast<std::int64_t>(module_.states.size());
  const std::int64_t particulars = particulars_;
  state.annotation = annotationByPath(state.name, state.type, nullptr, true);
  particulars_ = particulars;  // asked of every state by its own path
  module_.states.push_back(std::move(state));
  stateWritten_.push_back(nullptr);
  init_->setState(index, value);
  stateInit_.push_back(value);
  optimizerStates_->emplace(&decl, index);
  return index;
}

const Elaborator::OptimizerRun* Elaborator::knownRun(const std::vector<OptimizerRun>& runs, std::size_t use,
                                                     const Type& weight) const {
  const auto known = std::find_if(runs.begin(), runs.end(),
                                  [&](const OptimizerRun& run) { return run.use == use && run.weight == weight; });
  return known != runs.end() && hasRoomFor(known->statements) ? &*known : nullptr;
}

// The states of one parameter with their first values.
void Elaborator::addStatesOf(std::int64_t parameter) {
  const Parameter& of = module_.parameters[static_cast<std::size_t>(parameter)];
  const auto use = static_cast<std::size_t>(train_->useOf[static_cast<std::size_t>(parameter)]);
  const TrainPlan::Use& optimizer = train_->uses[use];
  Function& init = init_->function();
  if (const OptimizerRun* known = knownRun(initRuns_, use, of.type)) {
    statements_ += known->statements;
    const std::vector<ValueId> values = known->ops.repeat(init, {});
    asOptimizer(optimizer, parameter, [&] {
      for (std::size_t i = 0; i < values.size(); ++i) addOptimizerState(*known->states[i], values[i]);
    });
    return;
  }
  const Mark before = mark();
  const std::size_t firstOp = init.ops.size(), firstState = module_.states.size();
  Scope scope(*program_.main, nullptr);
  const std::vector<CallArgument> arguments = evalArguments(optimizer.written->arguments, scope);
  const TensorDatum weight{parameterInit_[static_cast<std::size_t>(parameter)], of.type, nullptr};
  const Datum gradient = ops()->full(of.type.shape, makeInt(0), of.type.dtype, of.range);
  if (!gradient.is<TensorDatum>()) return;
  runOptimizer(optimizer, arguments, parameter, weight, *gradient.as<TensorDatum>());
  if (!isGeneralSince(before)) return;
  const auto& indices = train_->states[parameter];
  std::vector<const ast::StateDecl*> states(indices.size());
  for (const auto& [decl, index] : indices) states[static_cast<std::size_t>(index) - firstState] = decl;
  std::vector<ValueId> values(stateInit_.begin() + static_cast<std::ptrdiff_t>(firstState), stateInit_.end());
  RepeatedOps repeated(init, firstOp, {}, std::move(values));
  // A first value that follows from the weight's: rare, and elaborated each time.
  if (repeated.reads(init, weight.id)) return;
  initRuns_.push_back({use, of.type, std::move(states), {}, statements_ - before.statements, std::move(repeated)});
}

// Runs every optimizer once on the initial values, into `init`: that declares its states, with their first values.
void Elaborator::addOptimizerStates() {
  setBuild(init_.get());
  const std::int64_t errors = sink_.errors();
  for (std::size_t p = 0; p < module_.parameters.size() && sink_.errors() == errors; ++p) {
    if (train_->useOf[p] >= 0) addStatesOf(static_cast<std::int64_t>(p));
  }
  setBuild(nullptr);
}

// The weight after its update; nothing after a report.
std::optional<ValueId> Elaborator::update(FunctionBuild& build, const Update& of,
                                          const std::vector<CallArgument>& arguments) {
  const Type& type = module_.parameters[static_cast<std::size_t>(of.parameter)].type;
  std::map<const ast::StateDecl*, std::int64_t>& indices = train_->states[of.parameter];
  if (const OptimizerRun* known = of.mayRepeat ? knownRun(updateRuns_, of.use, type) : nullptr) {
    statements_ += known->statements;
    std::vector<ValueId> inputs = {of.weight, of.gradient};
    for (const ast::StateDecl* read : known->statesRead) inputs.push_back(build.state(indices.at(read)));
    const std::vector<ValueId> outputs = known->ops.repeat(build.function(), inputs);
    for (std::size_t i = 0; i < known->states.size(); ++i) build.setState(indices.at(known->states[i]), outputs[i + 1]);
    return outputs[0];
  }
  const Mark before = mark();
  const std::size_t firstOp = build.function().ops.size(), firstArgument = build.function().arguments.size();
  const TensorDatum weight{of.weight, type, parameterExtras_[static_cast<std::size_t>(of.parameter)].written};
  const std::optional<TensorDatum> updated =
      runOptimizer(train_->uses[of.use], arguments, of.parameter, weight, {of.gradient, type, nullptr});
  if (!updated) return std::nullopt;
  if (!of.mayRepeat || !isGeneralSince(before)) return updated->id;
  std::vector<ValueId> inputs = {of.weight, of.gradient}, outputs = {updated->id};
  std::vector<const ast::StateDecl*> read, assigned;
  const auto declOf = [&](std::int64_t index) {
    return std::find_if(indices.begin(), indices.end(), [&](const auto& each) { return each.second == index; })->first;
  };
  for (std::size_t i = firstArgument; i < build.function().arguments.size(); ++i) {
    const Argument& argument = build.function().arguments[i];
    if (argument.kind != ArgumentKind::State) continue;
    read.push_back(declOf(argument.index));
    inputs.push_back(argument.value);
  }
  for (const auto& [decl, index] : indices) {
    if (!build.stateAssigned(index)) continue;
    assigned.push_back(decl);
    outputs.push_back(build.state(index));
  }
  RepeatedOps repeated(build.function(), firstOp, std::move(inputs), std::move(outputs));
  updateRuns_.push_back(
      {of.use, type, std::move(assigned), std::move(read), statements_ - before.statements, std::move(repeated)});
  return updated->id;
}

}  // namespace gshard::sema
