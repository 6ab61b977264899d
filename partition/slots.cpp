// Slots of a module: who shares one, and what annotations fix.
#include "partition/slots.h"

#include "support/check.h"

namespace gshard {

namespace {
constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);

// A value that an annotation sets: its own slot is fixed to it. `@stored` says only how a parameter is kept.
std::optional<Annotation> annotationOf(const Module& module, const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::Input:
      return argument.annotation;
    case ArgumentKind::Parameter:
      return module.parameters[static_cast<std::size_t>(argument.index)].annotation;
    case ArgumentKind::State:
      return module.states[static_cast<std::size_t>(argument.index)].annotation;
    case ArgumentKind::Step:
    case ArgumentKind::Steps:
    case ArgumentKind::Setting:
    case ArgumentKind::Accumulator:
      return std::nullopt;
  }
  GSHARD_UNREACHABLE("ArgumentKind");
}
}  // namespace

std::string stemOf(const Function& function) {
  if (function.stage == Stage::Whole) return function.name;
  return function.name.substr(0, function.name.rfind('.'));
}

Slots::Slots(const Module& module) {
  for (const Parameter& parameter : module.parameters) {
    parameters_.push_back(add(parameter.type));
    slots_.back().keepsInUpdates = true;
    if (parameter.annotation) fix(parameters_.back(), *parameter.annotation, "fixed");
  }
  for (const State& state : module.states) {
    states_.push_back(add(state.type));
    if (state.annotation) fix(states_.back(), *state.annotation, "fixed");
  }
  byValue_.resize(module.functions.size());
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    byValue_[f].assign(module.functions[f].values.size(), kNoSlot);
    placeArguments(module, f);
  }
  for (std::size_t f = 0; f < module.functions.size(); ++f) placeResults(module, f);
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    for (std::size_t v = 0; v < byValue_[f].size(); ++v) {
      if (byValue_[f][v] == kNoSlot) byValue_[f][v] = add(module.functions[f].values[v].type);
    }
    for (const Op& op : module.functions[f].ops) {
      const Attribute* attribute = op.attributes.find("annotation");
      if (attribute == nullptr) continue;
      const std::size_t slot = byValue_[f][op.results[0].index];
      fix(slot, std::get<Annotation>(*attribute), "fixed");
    }
  }
}

std::size_t Slots::add(const Type& type) {
  Slot slot;
  slot.type = type;
  slot.dims.resize(type.shape.size());
  slot.fixed.assign(type.shape.size(), false);
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

void Slots::fix(std::size_t index, const Annotation& annotation, const std::string& how) {
  Slot& slot = slots_[index];
  if (slot.dims.size() != annotation.sharding.dims.size()) return;
  for (std::size_t dim = 0; dim < slot.dims.size(); ++dim) {
    if (slot.fixed[dim]) continue;  // the first to speak is the tensor's own annotation
    slot.dims[dim] = joinedAxes(annotation.sharding.dims[dim]);
    slot.fixed[dim] = !annotation.open || !slot.dims[dim].empty();
    for (const AxisRef& axis : slot.dims[dim])
      slot.origins.push_back({static_cast<std::int64_t>(dim), axis, annotation.range, how});
  }
}

std::size_t Slots::accumulatorSlot(const std::string& stem, std::int64_t index, const Type& type) {
  for (const auto& [key, slot] : accumulators_) {
    if (key.first == stem && key.second == index) return slot;
  }
  const std::size_t slot = add(type);
  slots_[slot].keepsInUpdates = true;
  accumulators_.push_back({{stem, index}, slot});
  return slot;
}

void Slots::placeArguments(const Module& module, std::size_t f) {
  const Function& function = module.functions[f];
  for (const Argument& argument : function.arguments) {
    std::size_t& place = byValue_[f][argument.value.index];
    switch (argument.kind) {
      case ArgumentKind::Parameter:
        place = parameters_[static_cast<std::size_t>(argument.index)];
        break;
      case ArgumentKind::State:
        place = states_[static_cast<std::size_t>(argument.index)];
        break;
      case ArgumentKind::Accumulator:
        place = accumulatorSlot(stemOf(function), argument.index, function.type(argument.value));
        break;
      case ArgumentKind::Input:
      case ArgumentKind::Step:
      case ArgumentKind::Steps:
      case ArgumentKind::Setting:
        place = add(function.type(argument.value));
        break;
    }
    const std::optional<Annotation> annotation = annotationOf(module, argument);
    if (annotation && argument.kind == ArgumentKind::Input) fix(place, *annotation, "fixed");
  }
}

// A new value of a parameter shares the parameter's slot, unless it is another argument or result already: then the two
// are brought together when the result is handed out.
void Slots::placeResults(const Module& module, std::size_t f) {
  const Function& function = module.functions[f];
  for (const Result& result : function.results) {
    std::size_t& place = byValue_[f][result.value.index];
    if (place != kNoSlot) continue;
    switch (result.kind) {
      case ResultKind::Parameter:
        place = parameters_[static_cast<std::size_t>(result.index)];
        break;
      case ResultKind::State:
        place = states_[static_cast<std::size_t>(result.index)];
        break;
      case ResultKind::Accumulator:
        place = accumulatorSlot(stemOf(function), result.index, function.type(result.value));
        break;
      case ResultKind::Output:
      case ResultKind::Report:
        break;
    }
  }
}

void Slots::writeTo(Module& module) const {
  const auto shardingOf = [&](const Slot& slot) {
    Sharding sharding;
    sharding.dims = slot.dims;
    return canonical(module.mesh, std::move(sharding));
  };
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    module.parameters[p].sharding = shardingOf(slots_[parameters_[p]]);
  for (std::size_t s = 0; s < states_.size(); ++s) module.states[s].sharding = shardingOf(slots_[states_[s]]);
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    Function& function = module.functions[f];
    for (std::size_t v = 0; v < byValue_[f].size(); ++v) {
      const Slot& slot = slots_[byValue_[f][v]];
      function.values[v].sharding = shardingOf(slot);
      function.values[v].origins = slot.origins;
    }
  }
}

}  // namespace gshard
