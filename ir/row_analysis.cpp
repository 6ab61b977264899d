// The analysis walks the ops until nothing more has to be completed: once one user needs a completed value, all its
// users read that one, so that each pending value becomes one accumulator.
#include "ir/row_analysis.h"

#include <algorithm>

#include "ir/op_table.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace gshard {

namespace {

// The factor that is split when dim `dim` of the tensor is cut by rows: its major one, which must hold whole rows.
std::optional<int> rowFactor(const OpFactors& factors, const OpFactors::DimFactors& dims, std::int64_t dim,
                             std::int64_t rows) {
  const std::vector<int>& list = dims[static_cast<std::size_t>(dim)];
  if (list.empty()) return std::nullopt;
  return factors.factors[static_cast<std::size_t>(list.front())].size % rows == 0 ? std::optional(list.front())
                                                                                  : std::nullopt;
}

// The dim whose major factor is `factor`, or -1; nothing if it is a minor one somewhere.
std::optional<std::int64_t> dimOfFactor(const OpFactors::DimFactors& dims, int factor) {
  for (std::size_t dim = 0; dim < dims.size(); ++dim) {
    const auto found = std::find(dims[dim].begin(), dims[dim].end(), factor);
    if (found == dims[dim].end()) continue;
    return found == dims[dim].begin() ? std::optional(static_cast<std::int64_t>(dim)) : std::nullopt;
  }
  return -1;
}

// Adds up only where what is added to is nothing: a splat 0 (0 + the first update, in either form of zero).
bool isZero(const Op* op) {
  if (op == nullptr || op->kind != OpKind::Constant) return false;
  const auto& literal = std::get<Literal>(*op->attributes.find("value"));
  return (literal.floats.size() == 1 && literal.floats[0] == 0) || (literal.ints.size() == 1 && literal.ints[0] == 0);
}

// One pending operand: completing it takes no more accumulators than completing the result.
bool isOnly(const std::vector<std::optional<Reduction>>& operands) {
  return std::count_if(operands.begin(), operands.end(), [](const auto& each) { return each.has_value(); }) == 1;
}

}  // namespace

bool RowAnalysis::run() {
  while (true) {
    const std::size_t before = completed_.size();
    if (!pass()) return false;
    for (const Result& result : function_->results) {
      if (state(result.value).place == RowPlace::Partial) complete(result.value);
      const bool isWhole = result.kind != ResultKind::Output;
      if (isWhole && state(result.value).place == RowPlace::Split) {
        fault_ = RowFault{RowFault::Kind::ResultHasRows, result.name, {}, result.range, {}, {}};
        return false;
      }
    }
    if (completed_.size() == before) return true;
  }
}

bool RowAnalysis::pass() {
  states_.assign(function_->values.size(), RowState{});
  definition_.assign(function_->values.size(), -1);
  for (const Argument& argument : function_->arguments) {
    if (function_->value(argument.value).rowDim < 0) continue;
    states_[argument.value.index] = {RowPlace::Split, function_->value(argument.value).rowDim, Reduction::Sum};
  }
  std::vector<Op> ops = std::move(function_->ops);
  done_.clear();
  bool isGood = true;
  for (Op& op : ops) {
    isGood = isGood && visit(op);  // after an error the rest is kept as it is
    for (const ValueId result : op.results) definition_[result.index] = static_cast<std::int64_t>(done_.size());
    done_.push_back(std::move(op));
  }
  function_->ops = std::move(done_);
  return isGood;
}

bool RowAnalysis::countsRows(const Op& op) const {
  if (op.kind != OpKind::DimSize || function_->blocks != 0) return false;
  const RowState& x = states_[op.operands[0].index];
  const auto* dims = std::get_if<std::vector<std::int64_t>>(op.attributes.find("dims"));
  return x.place == RowPlace::Split && std::find(dims->begin(), dims->end(), x.dim) != dims->end();
}

void RowAnalysis::complete(ValueId value) {
  completed_.insert(value);
}

void RowAnalysis::setResults(const Op& op, RowState state) {
  for (const ValueId result : op.results) states_[result.index] = state;
}

bool RowAnalysis::visit(Op& op) {
  // A size is known before any row is read.
  if (op.kind == OpKind::DimSize) return true;
  if (const auto version = versionDims_.find(op.results[0]); version != versionDims_.end()) {
    setResults(op, {RowPlace::Split, version->second, Reduction::Sum});
    return true;
  }
  bool hasFinal = false, hasSplit = false, hasPartial = false;
  std::vector<std::optional<Reduction>> pending;
  for (const ValueId operand : op.operands) {
    const bool isCompletedHere = isCompleted(operand) && states_[operand.index].place == RowPlace::Partial;
    const RowPlace place = isCompletedHere ? RowPlace::Final : states_[operand.index].place;
    hasFinal = hasFinal || place == RowPlace::Final;
    hasSplit = hasSplit || place == RowPlace::Split;
    hasPartial = hasPartial || place == RowPlace::Partial;
    pending.push_back(place == RowPlace::Partial ? std::optional(states_[operand.index].reduction) : std::nullopt);
  }
  if (hasSplit && (hasFinal || hasPartial)) return failFinal(op);
  if (hasFinal) {
    for (const ValueId operand : op.operands) {
      if (states_[operand.index].place == RowPlace::Partial) complete(operand);
    }
    setResults(op, {RowPlace::Final, -1, Reduction::Sum});
    return true;
  }
  if (hasPartial) return visitPartial(op, std::move(pending));
  if (hasSplit) return visitSplit(op);
  setResults(op, {});
  return true;
}

bool RowAnalysis::visitPartial(const Op& op, std::vector<std::optional<Reduction>> operands) {
  const std::optional<Reduction> kept = acceptPartial(OpView(*module_, *function_, op), operands);
  if (kept && !(isOnly(operands) && !shrinks(op, operands))) {
    setResults(op, {RowPlace::Partial, -1, *kept});
    return true;
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i]) complete(op.operands[i]);
  }
  setResults(op, {RowPlace::Final, -1, Reduction::Sum});
  return true;
}

// Whether the result is smaller than the pending operand: then it pays to go on. Else the sum is kept as it first comes
// up, which is also the more exact (a count is divided once).
bool RowAnalysis::shrinks(const Op& op, const std::vector<std::optional<Reduction>>& operands) const {
  const auto pending =
      std::find_if(operands.begin(), operands.end(), [](const auto& each) { return each.has_value(); });
  const ValueId operand = op.operands[static_cast<std::size_t>(pending - operands.begin())];
  return function_->type(op.results[0]).bytes() < function_->type(operand).bytes();
}

bool RowAnalysis::visitSplit(Op& op) {
  const OpFactors& factors = factors_->of(OpView(*module_, *function_, op));
  std::optional<int> rows;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const RowState& operand = states_[op.operands[i].index];
    if (operand.place != RowPlace::Split) continue;
    const std::optional<int> factor = rowFactor(factors, factors.operands[i], operand.dim, function_->rows);
    if (!factor || (rows && *rows != *factor)) return fail(op, i);
    rows = factor;
  }
  GSHARD_CHECK(rows.has_value(), "rows without a factor");
  const Factor& factor = factors.factors[static_cast<std::size_t>(*rows)];
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (states_[op.operands[i].index].place == RowPlace::Split) continue;
    const std::optional<std::int64_t> dim = dimOfFactor(factors.operands[i], *rows);
    if (!dim) return fail(op, i);
    if (*dim < 0) {
      const auto at = definition_[op.operands[i].index];
      if (factor.othersPartial && !isZero(at < 0 ? nullptr : &done_[static_cast<std::size_t>(at)])) return fail(op, i);
      continue;
    }
    const ValueId version = splitVersion(op.operands[i], *dim);
    if (!version.known()) return fail(op, i);
    op.operands[i] = version;
  }
  switch (factor.kind) {
    case FactorKind::Pass:
      for (std::size_t r = 0; r < op.results.size(); ++r) {
        const std::optional<std::int64_t> dim = dimOfFactor(factors.results[r], *rows);
        if (!dim || *dim < 0) return fail(op, 0);
        states_[op.results[r].index] = {RowPlace::Split, *dim, Reduction::Sum};
      }
      return true;
    case FactorKind::Reduce:
      setResults(op, {RowPlace::Partial, -1, factor.reduction});
      return true;
    case FactorKind::Window:
    case FactorKind::Whole:
    case FactorKind::Scan:
    case FactorKind::Lookup:
    case FactorKind::Candidates:
      return fail(op, 0);
  }
  GSHARD_UNREACHABLE("FactorKind");
}

// Appends an op with one result like `value`.
ValueId RowAnalysis::add(Op op, const Value& value, RowState state) {
  const Value copy = value;
  op.results = {function_->addValue(copy)};
  const ValueId result = op.results[0];
  states_.push_back(state);
  definition_.push_back(static_cast<std::int64_t>(done_.size()));
  if (state.place == RowPlace::Split) versionDims_.emplace(result, state.dim);
  done_.push_back(std::move(op));
  return result;
}

// Elements before the block at hand, of a tensor with `perRow` elements per row.
ValueId RowAnalysis::blockOffset(std::int64_t perRow, SourceRange range) {
  const Value scalar{
      .type = {DType::I64, {}}, .sharding = {}, .rowDim = -1, .name = "first_row", .range = range, .origins = {}};
  if (!firstRow_.known()) {
    firstRow_ = function_->addValue(scalar);
    states_.push_back({});
    definition_.push_back(-1);
    function_->arguments.push_back({ArgumentKind::Accumulator, scalar.name, -1, firstRow_, std::nullopt});
  }
  if (perRow == 1) return firstRow_;
  Op number{.kind = OpKind::Constant,
            .operands = {},
            .results = {},
            .attributes = {},
            .range = range,
            .phase = Phase::Forward,
            .reason = {}};
  number.attributes = {{"value", intLiteral(perRow)}, {"shape", scalar.type.shape}, {"dtype", scalar.type.dtype}};
  const ValueId factor = add(std::move(number), scalar, {});
  Op product{.kind = OpKind::Map,
             .operands = {firstRow_, factor},
             .results = {},
             .attributes = {{"fn", std::string("mul")}},
             .range = range,
             .phase = Phase::Forward,
             .reason = {}};
  return add(std::move(product), scalar, {});
}

// A generator whose elements depend on the place of their row: random numbers take the block's place as an operand
// (rows must be their outermost dim), iota has it added.
ValueId RowAnalysis::placedVersion(const Op& generator, std::int64_t dim) {
  const Value value = function_->value(generator.results[0]);
  const RowState split{RowPlace::Split, dim, Reduction::Sum};
  Op op = generator;
  if (op.kind == OpKind::RandomUniform || op.kind == OpKind::RandomNormal) {
    if (dim != 0) return {};
    op.operands.push_back(blockOffset(value.type.elements() / function_->rows, op.range));
    return add(std::move(op), value, split);
  }
  if (op.kind != OpKind::Iota || value.type.shape[static_cast<std::size_t>(dim)] % function_->rows != 0) return {};
  ValueId offset = blockOffset(value.type.shape[static_cast<std::size_t>(dim)] / function_->rows, op.range);
  const SourceRange range = op.range;
  const Phase phase = op.phase;
  const ValueId local = add(std::move(op), value, split);
  if (value.type.dtype != DType::I64) {
    const Value scalar{.type = {value.type.dtype, {}},
                       .sharding = {},
                       .rowDim = -1,
                       .name = "first_row",
                       .range = range,
                       .origins = {}};
    offset = add({.kind = OpKind::Map,
                  .operands = {offset},
                  .results = {},
                  .attributes = {{"fn", std::string("cast")}, {"dtype", value.type.dtype}},
                  .range = range,
                  .phase = phase,
                  .reason = {}},
                 scalar, {});
  }
  return add({.kind = OpKind::Map,
              .operands = {local, offset},
              .results = {},
              .attributes = {{"fn", std::string("add")}},
              .range = range,
              .phase = phase,
              .reason = {}},
             value, split);
}

// A clone of an Independent value that is cut by rows along `dim`, or an unknown id when a block cannot have its own.
ValueId RowAnalysis::splitVersion(ValueId value, std::int64_t dim) {
  if (const auto known = versions_.find({value, dim}); known != versions_.end()) return known->second;
  if (states_[value.index].place != RowPlace::Independent || definition_[value.index] < 0) return {};
  Op op = done_[static_cast<std::size_t>(definition_[value.index])];
  if (op.results.size() != 1) return {};
  ValueId version;
  if (std::holds_alternative<LowerGenerate>(*opDef(op.kind).lower)) {
    // The same in every row: a splat, and iota along another dim.
    const Attribute* literal = op.attributes.find("value");
    const Attribute* along = op.attributes.find("dim");
    const bool isSplat =
        literal != nullptr && std::get<Literal>(*literal).floats.size() + std::get<Literal>(*literal).ints.size() == 1;
    const bool isAlongOther = along != nullptr && std::get<std::int64_t>(*along) != dim;
    if (!isSplat && !isAlongOther) {
      version = placedVersion(op, dim);
      if (version.known()) versions_.emplace(std::pair(value, dim), version);
      return version;
    }
  } else {
    const OpFactors& factors = factors_->of(OpView(*module_, *function_, op));
    const std::optional<int> rows = rowFactor(factors, factors.results[0], dim, function_->rows);
    if (!rows || factors.factors[static_cast<std::size_t>(*rows)].kind != FactorKind::Pass) return {};
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const std::optional<std::int64_t> operandDim = dimOfFactor(factors.operands[i], *rows);
      if (!operandDim) return {};
      if (*operandDim < 0) continue;
      const ValueId part = splitVersion(op.operands[i], *operandDim);
      if (!part.known()) return {};
      op.operands[i] = part;
    }
  }
  version = add(std::move(op), function_->value(value), {RowPlace::Split, dim, Reduction::Sum});
  versions_.emplace(std::pair(value, dim), version);
  return version;
}

bool RowAnalysis::fail(const Op& op, std::size_t operand) {
  const Value& x = function_->value(op.operands[operand]);
  const bool hasRows = states_[op.operands[operand].index].place == RowPlace::Split;
  fault_ = RowFault{RowFault::Kind::NeedsAllRows,
                    function_->value(op.results[0]).name,
                    {},
                    op.range,
                    x.range,
                    hasRows ? "these rows" : "this differs from row to row"};
  return false;
}

bool RowAnalysis::failFinal(const Op& op) {
  ValueId complete = op.operands[0];
  for (const ValueId operand : op.operands) {
    const RowPlace place = states_[operand.index].place;
    if (place == RowPlace::Final || place == RowPlace::Partial) complete = operand;
  }
  const Value& x = function_->value(complete);
  fault_ = RowFault{RowFault::Kind::MeetsReduction, function_->value(op.results[0]).name, x.name, op.range, x.range,
                    "complete only after all rows"};
  return false;
}

}  // namespace gshard
