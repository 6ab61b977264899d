// Arguments on first use, and which dims hold rows.
#include "sema/function_build.h"

#include <algorithm>

namespace gshard::sema {

std::uint32_t siteHash(std::string_view path) {
  std::uint32_t hash = 2166136261u;
  for (const char c : path) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 16777619u;
  }
  return hash;
}

FunctionBuild::FunctionBuild(Module& module, FunctionKind kind, std::string name, bool training, DiagSink& diag)
    : module_(&module), builder_(module, function_, diag), training_(training) {
  function_.kind = kind;
  function_.name = std::move(name);
}

ValueId FunctionBuild::addArgument(ArgumentKind kind, const std::string& name, std::int64_t index, const Type& type,
                                   SourceRange range) {
  Value value;
  value.type = type;
  value.name = name;
  value.range = range;
  const ValueId id = function_.addValue(std::move(value));
  Argument argument;
  argument.kind = kind;
  argument.name = name;
  argument.index = index;
  argument.value = id;
  function_.arguments.push_back(std::move(argument));
  return id;
}

ValueId FunctionBuild::addInput(const std::string& name, const Type& type, std::optional<Annotation> annotation,
                                bool isRow, SourceRange range) {
  const ValueId id = addArgument(ArgumentKind::Input, name, -1, type, range);
  function_.arguments.back().annotation = std::move(annotation);
  if (isRow) {
    function_.value(id).rowDim = 0;
    if (!rowInput_.known()) rowInput_ = id;
  }
  return id;
}

ValueId FunctionBuild::parameter(std::int64_t index) {
  const auto found = parameters_.find(index);
  if (found != parameters_.end()) return found->second;
  const Parameter& parameter = module_->parameters[static_cast<std::size_t>(index)];
  const ValueId id = addArgument(ArgumentKind::Parameter, parameter.name, index, parameter.type, parameter.range);
  parameters_.emplace(index, id);
  return id;
}

ValueId FunctionBuild::state(std::int64_t index) {
  const auto found = states_.find(index);
  if (found != states_.end()) return found->second;
  const State& state = module_->states[static_cast<std::size_t>(index)];
  const ValueId id = addArgument(ArgumentKind::State, state.name, index, state.type, state.range);
  states_.emplace(index, id);
  return id;
}

void FunctionBuild::setParameter(std::int64_t index, ValueId value) {
  parameters_[index] = value;
}

void FunctionBuild::setState(std::int64_t index, ValueId value) {
  states_[index] = value;
  assignedStates_.insert(index);
}

ValueId FunctionBuild::setting(std::int64_t index) {
  const auto found = settings_.find(index);
  if (found != settings_.end()) return found->second;
  const Setting& setting = module_->settings[static_cast<std::size_t>(index)];
  const Type type{setting.dtype, {}};
  // `init` has no arguments: what it computes belongs to the program, not to one run of it.
  const ValueId id = function_.kind == FunctionKind::Init
                         ? builder_.scalar(setting.dtype, setting.value, {})
                         : addArgument(ArgumentKind::Setting, setting.name, index, type, {});
  settings_.emplace(index, id);
  return id;
}

void FunctionBuild::recomputeFrom(std::size_t from) {
  if (from == function_.ops.size()) return;
  recomputed_.resize(function_.ops.size(), 0);
  std::fill(recomputed_.begin() + static_cast<std::ptrdiff_t>(from), recomputed_.end(), ++regions_);
}

ValueId FunctionBuild::step() {
  if (!step_.known()) {
    const Type type{DType::I32, {}};
    step_ = function_.kind == FunctionKind::Init ? builder_.constant(type, intLiteral(0), {})
                                                 : addArgument(ArgumentKind::Step, "step", -1, type, {});
  }
  return step_;
}

ValueId FunctionBuild::steps() {
  if (!steps_.known()) {
    const Type type{DType::I32, {}};
    steps_ = function_.kind == FunctionKind::Init ? builder_.constant(type, intLiteral(0), {})
                                                  : addArgument(ArgumentKind::Steps, "steps", -1, type, {});
  }
  return steps_;
}

void FunctionBuild::trackRows() {
  rowDims_.resize(function_.values.size(), -1);
  for (const Argument& argument : function_.arguments) {
    rowDims_[argument.value.index] = function_.value(argument.value).rowDim;
  }
  for (; tracked_ < function_.ops.size(); ++tracked_) {
    const Op& op = function_.ops[tracked_];
    const bool any = std::any_of(op.operands.begin(), op.operands.end(),
                                 [&](ValueId operand) { return rowDims_[operand.index] >= 0; });
    if (!any) continue;
    const OpFactors& factors = factors_.of(OpView(*module_, function_, op));
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const std::int64_t dim = rowDims_[op.operands[i].index];
      if (dim < 0 || factors.operands[i][static_cast<std::size_t>(dim)].empty()) continue;
      const int rows = factors.operands[i][static_cast<std::size_t>(dim)].front();
      for (std::size_t r = 0; r < op.results.size(); ++r) {
        for (std::size_t d = 0; d < factors.results[r].size(); ++d) {
          const std::vector<int>& here = factors.results[r][d];
          if (!here.empty() && here.front() == rows) rowDims_[op.results[r].index] = static_cast<std::int64_t>(d);
        }
      }
    }
  }
}

std::int64_t FunctionBuild::rowDim(ValueId value) {
  if (!rowsAtRunTime()) return -1;
  trackRows();
  return rowDims_[value.index];
}

}  // namespace gshard::sema
