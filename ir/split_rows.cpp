// split-rows: a function that takes its rows in blocks (microbatches, the batches of eval, any number of rows of
// predict) becomes two: NAME.accumulate runs once per block and adds to accumulators, NAME.finish runs once on the
// complete values. The result is that of all rows at once. A function without anything to finish becomes
// NAME.accumulate alone.
#include <algorithm>
#include <map>

#include "ir/batch_rows.h"
#include "ir/diagnostics.h"
#include "ir/passes.h"
#include "ir/row_analysis.h"
#include "ir/unit_rows.h"
#include "support/check.h"

namespace gshard {

namespace {

// How an accumulator takes in a block.
std::string_view joiningFunction(Reduction reduction) {
  switch (reduction) {
    case Reduction::Sum:
      return "add";
    case Reduction::Prod:
      return "mul";
    case Reduction::Max:
      return "maximum";
    case Reduction::Min:
      return "minimum";
    case Reduction::Any:
      return "or";
    case Reduction::All:
      return "and";
  }
  GSHARD_UNREACHABLE("Reduction");
}

// Copies ops and values of one function into another, cut down to one block.
class StageBuilder {
 public:
  StageBuilder(const Function& source, const RowAnalysis& rows, std::int64_t blockRows, Stage stage)
      : source_(&source), rows_(&rows), blockRows_(blockRows), map_(source.values.size()) {
    stage_.name = source.name + (stage == Stage::Accumulate ? ".accumulate" : ".finish");
    stage_.kind = source.kind;
    stage_.stage = stage;
    stage_.range = source.range;
    stage_.doc = source.doc;
  }

  Function& stage() { return stage_; }
  ValueId mapped(ValueId old) const { return map_[old.index]; }

  ValueId addValue(ValueId old) {
    Value value = source_->value(old);
    value.rowDim = -1;
    const RowState& state = rows_->state(old);
    if (state.place == RowPlace::Split) {
      value.rowDim = state.dim;
      std::int64_t& size = value.type.shape[static_cast<std::size_t>(state.dim)];
      size = size / source_->rows * blockRows_;
    }
    map_[old.index] = stage_.addValue(std::move(value));
    return map_[old.index];
  }

  void addArgument(const Argument& old) {
    Argument argument = old;
    argument.value = addValue(old.value);
    stage_.arguments.push_back(std::move(argument));
  }

  void addAccumulatorArgument(ValueId old, std::int64_t number) {
    const std::string name = source_->value(old).name;
    stage_.arguments.push_back({ArgumentKind::Accumulator, name, number, addValue(old), std::nullopt});
  }

  void addOp(const Op& old) {
    Op op = old;
    for (ValueId& operand : op.operands) operand = mapped(operand);
    for (ValueId& result : op.results) result = addValue(result);
    if (!op.results.empty()) shrinkAttributes(old, op);
    stage_.ops.push_back(std::move(op));
  }

 private:
  // Sizes in attributes: the shape of what an op makes, and the end of a slice (which takes all rows, or the analysis
  // would have refused it).
  void shrinkAttributes(const Op& old, Op& op) const {
    const RowState& state = rows_->state(old.results[0]);
    if (state.place != RowPlace::Split) return;
    const std::vector<std::int64_t>& shape = stage_.type(op.results[0]).shape;
    if (op.attributes.find("shape") != nullptr) op.attributes.set("shape", shape);
    if (const Attribute* limit = op.attributes.find("limit"); limit != nullptr) {
      std::vector<std::int64_t> limits = std::get<std::vector<std::int64_t>>(*limit);
      limits[static_cast<std::size_t>(state.dim)] = shape[static_cast<std::size_t>(state.dim)];
      op.attributes.set("limit", std::move(limits));
    }
  }

  const Function* source_;
  const RowAnalysis* rows_;
  std::int64_t blockRows_;
  std::vector<ValueId> map_;
  Function stage_;
};

struct AccumulatorValue {
  ValueId value;
  Reduction reduction;
};

class RowSplitter {
 public:
  RowSplitter(const Function& function, const RowAnalysis& rows, std::int64_t blockRows)
      : function_(&function),
        rows_(&rows),
        blockRows_(blockRows),
        definition_(definitionsOf(function)),
        number_(function.values.size(), -1),
        inAccumulate_(function.ops.size(), false),
        inFinish_(function.ops.size(), false) {}

  std::vector<Function> split() {
    for (const Result& result : function_->results) {
      if (!staysInBlocks(result)) needInFinish(result.value);
    }
    for (const AccumulatorValue& accumulator : accumulators_) needInAccumulate(accumulator.value);
    for (const Result& result : function_->results) {
      if (staysInBlocks(result)) needInAccumulate(result.value);
    }
    std::vector<Function> stages;
    stages.push_back(buildAccumulate());
    const bool hasFinish = std::any_of(function_->results.begin(), function_->results.end(),
                                       [&](const Result& result) { return !staysInBlocks(result); });
    if (hasFinish) stages.push_back(buildFinish());
    return stages;
  }

 private:
  bool staysInBlocks(const Result& result) const { return rows_->state(result.value).place == RowPlace::Split; }

  const Op* definition(ValueId value) const {
    const std::int64_t at = definition_[value.index];
    return at < 0 ? nullptr : &function_->ops[static_cast<std::size_t>(at)];
  }

  // The reduction over blocks after which finish may read `value`, or nothing.
  std::optional<Reduction> accumulation(ValueId value) const {
    const RowState& state = rows_->state(value);
    if (state.place == RowPlace::Partial) return state.reduction;
    // The same number in every block: their maximum.
    const Op* op = definition(value);
    return op != nullptr && rows_->countsRows(*op) ? std::optional(Reduction::Max) : std::nullopt;
  }

  void needInFinish(ValueId value) {
    if (const std::optional<Reduction> reduction = accumulation(value)) {
      if (number_[value.index] >= 0) return;
      number_[value.index] = static_cast<std::int64_t>(accumulators_.size());
      accumulators_.push_back({value, *reduction});
      return;
    }
    needOp(value, inFinish_, [&](ValueId operand) { needInFinish(operand); });
  }

  void needInAccumulate(ValueId value) {
    needOp(value, inAccumulate_, [&](ValueId operand) { needInAccumulate(operand); });
  }

  template <class Need>
  void needOp(ValueId value, std::vector<bool>& needed, Need need) {
    const std::int64_t at = definition_[value.index];
    if (at < 0 || needed[static_cast<std::size_t>(at)]) return;
    needed[static_cast<std::size_t>(at)] = true;
    for (const ValueId operand : function_->ops[static_cast<std::size_t>(at)].operands) need(operand);
  }

  // Arguments that the needed ops or results read; inputs always belong to the stage that is fed with rows.
  void addArguments(StageBuilder& builder, const std::vector<bool>& needed, bool isAccumulate) const {
    std::vector<bool> read(function_->values.size(), false);
    for (std::size_t i = 0; i < needed.size(); ++i) {
      if (!needed[i]) continue;
      for (const ValueId operand : function_->ops[i].operands) read[operand.index] = true;
    }
    for (const Result& result : function_->results) {
      if (staysInBlocks(result) == isAccumulate) read[result.value.index] = true;
    }
    for (const Argument& argument : function_->arguments) {
      if (argument.kind == ArgumentKind::Accumulator) continue;
      const bool isFed = isAccumulate && argument.kind == ArgumentKind::Input;
      if (isFed || read[argument.value.index]) builder.addArgument(argument);
    }
  }

  Function buildAccumulate() {
    StageBuilder builder(*function_, *rows_, blockRows_, Stage::Accumulate);
    Function& stage = builder.stage();
    stage.rows = blockRows_;
    // Where rows do not divide, fewer blocks may do.
    stage.blocks = function_->blocks == 0 ? 0 : (function_->rows + stage.rows - 1) / stage.rows;
    stage.totalRows = function_->blocks == 0 ? 0 : function_->rows;
    addArguments(builder, inAccumulate_, true);
    std::vector<ValueId> sums;
    for (std::size_t n = 0; n < accumulators_.size(); ++n) {
      const Value& old = function_->value(accumulators_[n].value);
      sums.push_back(stage.addValue(
          {.type = old.type, .sharding = {}, .rowDim = -1, .name = old.name, .range = old.range, .origins = {}}));
      stage.arguments.push_back(
          {ArgumentKind::Accumulator, old.name, static_cast<std::int64_t>(n), sums.back(), std::nullopt});
    }
    // The place of a block is an accumulator too: the rows of the blocks before it.
    const ValueId firstRow = rows_->firstRow();
    if (firstRow.known()) builder.addAccumulatorArgument(firstRow, static_cast<std::int64_t>(accumulators_.size()));
    for (std::size_t i = 0; i < function_->ops.size(); ++i) {
      if (inAccumulate_[i]) builder.addOp(function_->ops[i]);
    }
    for (std::size_t n = 0; n < accumulators_.size(); ++n) addJoin(builder, n, sums[n]);
    if (firstRow.known()) addRowCount(builder, firstRow);
    for (const Result& result : function_->results) {
      if (!staysInBlocks(result)) continue;
      Result copy = result;
      copy.value = builder.mapped(result.value);
      stage.results.push_back(std::move(copy));
    }
    return std::move(stage);
  }

  void addJoin(StageBuilder& builder, std::size_t n, ValueId sum) const {
    Function& stage = builder.stage();
    const AccumulatorValue& accumulator = accumulators_[n];
    const Value& old = function_->value(accumulator.value);
    const Op* source = definition(accumulator.value);
    const ValueId joined = stage.addValue(
        {.type = old.type, .sharding = {}, .rowDim = -1, .name = old.name, .range = old.range, .origins = {}});
    Op op{.kind = OpKind::Map,
          .operands = {sum, builder.mapped(accumulator.value)},
          .results = {joined},
          .attributes = {{"fn", std::string(joiningFunction(accumulator.reduction))}},
          .range = old.range,
          .phase = source == nullptr ? Phase::Forward : source->phase,
          .reason = {}};
    stage.ops.push_back(std::move(op));
    stage.results.push_back(
        {ResultKind::Accumulator, old.name, static_cast<std::int64_t>(n), joined, accumulator.reduction, old.range});
  }

  void addRowCount(StageBuilder& builder, ValueId firstRow) const {
    Function& stage = builder.stage();
    const Value scalar = stage.value(builder.mapped(firstRow));
    const ValueId block = stage.addValue(scalar), next = stage.addValue(scalar);
    stage.ops.push_back(
        {.kind = OpKind::Constant,
         .operands = {},
         .results = {block},
         .attributes = {{"value", intLiteral(blockRows_)}, {"shape", scalar.type.shape}, {"dtype", scalar.type.dtype}},
         .range = scalar.range,
         .phase = Phase::Forward,
         .reason = {}});
    stage.ops.push_back({.kind = OpKind::Map,
                         .operands = {builder.mapped(firstRow), block},
                         .results = {next},
                         .attributes = {{"fn", std::string("add")}},
                         .range = scalar.range,
                         .phase = Phase::Forward,
                         .reason = {}});
    stage.results.push_back({ResultKind::Accumulator, scalar.name, static_cast<std::int64_t>(accumulators_.size()),
                             next, Reduction::Sum, scalar.range});
  }

  Function buildFinish() {
    StageBuilder builder(*function_, *rows_, blockRows_, Stage::Finish);
    Function& stage = builder.stage();
    addArguments(builder, inFinish_, false);
    for (std::size_t n = 0; n < accumulators_.size(); ++n) {
      builder.addAccumulatorArgument(accumulators_[n].value, static_cast<std::int64_t>(n));
    }
    for (std::size_t i = 0; i < function_->ops.size(); ++i) {
      if (inFinish_[i]) builder.addOp(function_->ops[i]);
    }
    for (const Result& result : function_->results) {
      if (staysInBlocks(result)) continue;
      Result copy = result;
      copy.value = builder.mapped(result.value);
      stage.results.push_back(std::move(copy));
    }
    return std::move(stage);
  }

  const Function* function_;
  const RowAnalysis* rows_;
  std::int64_t blockRows_;
  std::vector<std::int64_t> definition_;
  std::vector<AccumulatorValue> accumulators_;
  std::vector<std::int64_t> number_;  // per value: its accumulator, or -1
  std::vector<bool> inAccumulate_, inFinish_;
};

// Sizes that are known now: all but those over rows that are counted at run time. Whether there were any.
bool fixSizes(Function& function, const RowAnalysis* rows) {
  bool isChanged = false;
  for (Op& op : function.ops) {
    if (op.kind != OpKind::DimSize || (rows != nullptr && rows->countsRows(op))) continue;
    std::int64_t size = 1;
    const std::vector<std::int64_t> dims = std::get<std::vector<std::int64_t>>(*op.attributes.find("dims"));
    for (const std::int64_t dim : dims) size *= function.type(op.operands[0]).shape[static_cast<std::size_t>(dim)];
    const Type& type = function.type(op.results[0]);
    op.kind = OpKind::Constant;
    op.operands.clear();
    op.attributes = {{"value", isFloat(type.dtype) ? floatLiteral(static_cast<double>(size)) : intLiteral(size)},
                     {"shape", type.shape},
                     {"dtype", type.dtype}};
    isChanged = true;
  }
  return isChanged;
}

// Rows counted through several values are one number: one accumulator instead of many.
void shareRowCounts(Function& function, const RowAnalysis& rows) {
  std::map<std::pair<DType, std::int64_t>, ValueId> counts;  // by dtype and elements per row
  const std::vector<Op> ops = function.ops;
  for (const Op& op : ops) {
    if (!rows.countsRows(op)) continue;
    std::int64_t perRow = 1;
    for (const std::int64_t dim : std::get<std::vector<std::int64_t>>(*op.attributes.find("dims"))) {
      const std::int64_t size = function.type(op.operands[0]).shape[static_cast<std::size_t>(dim)];
      perRow *= dim == rows.state(op.operands[0]).dim ? size / function.rows : size;
    }
    const auto [first, isNew] = counts.try_emplace({function.type(op.results[0]).dtype, perRow}, op.results[0]);
    if (!isNew) replaceUses(function, op.results[0], first->second);
  }
}

void tell(const Function& function, const RowFault& fault, DiagSink& diag) {
  const std::string blocks = function.blocks == 0
                                 ? "they are taken in blocks of " + std::to_string(function.rows)
                                 : "`microbatches` takes them in " + std::to_string(function.blocks) + " parts";
  switch (fault.kind) {
    case RowFault::Kind::NeedsAllRows:
      diag.emit(fault.range, diag::NeedsAllRows, fault.name, blocks).label(fault.operandRange, fault.operandLabel);
      return;
    case RowFault::Kind::MeetsReduction:
      diag.emit(fault.range, diag::RowsMeetReduction, fault.name, fault.reduction, blocks)
          .label(fault.operandRange, fault.operandLabel);
      return;
    case RowFault::Kind::ResultHasRows:
      diag.emit(fault.range, diag::ResultHasRows, fault.name, blocks);
      return;
  }
  GSHARD_UNREACHABLE("RowFault");
}

// What training can do on a batch, `eval` does batch by batch; the runtime averages by rows.
void averageBatches(const Module& module, Function& function, const RowFault& fault, DiagSink& diag) {
  diag.emit(fault.range, diag::EvalAverages, function.rows, fault.name).label(fault.operandRange, fault.operandLabel);
  // A last, shorter batch needs live sizes; where rows cannot be followed, only whole batches are taken.
  if (markBatchRows(module, function)) return;
  function.blocks = 1;
  function.totalRows = function.rows;
  fixSizes(function, nullptr);
}

}  // namespace

void splitRows(Module& module, PassContext& context) {
  std::vector<Function> functions;
  std::vector<std::size_t> unchanged;  // of functions
  KnownFactors factors;
  for (Function& function : module.functions) {
    if (function.stage != Stage::Whole || function.rows == 0) {
      unchanged.push_back(functions.size());
      functions.push_back(std::move(function));
      continue;
    }
    if (function.blocks == 1 || (function.blocks != 0 && function.rows == 1)) {
      const bool isWhole = function.blocks == 1 && function.totalRows == function.rows;
      function.blocks = 1;
      function.totalRows = function.rows;
      if (!fixSizes(function, nullptr) && isWhole) unchanged.push_back(functions.size());
      functions.push_back(std::move(function));
      continue;
    }
    const std::int64_t blockRows =
        function.blocks == 0 ? function.rows : (function.rows + function.blocks - 1) / function.blocks;
    Function copy = function;
    if (copy.rows == 1) widenUnitRows(module, copy);
    RowAnalysis rows(module, copy, factors);
    if (!rows.run()) {
      // What has a value per row cannot be averaged: the n-th rows of the batches have nothing in common.
      if (function.kind == FunctionKind::Eval && rows.fault()->kind != RowFault::Kind::ResultHasRows) {
        averageBatches(module, function, *rows.fault(), context.diag);
      } else {
        tell(function, *rows.fault(), context.diag);
      }
      functions.push_back(std::move(function));
      continue;
    }
    fixSizes(copy, &rows);
    shareRowCounts(copy, rows);
    for (Function& stage : RowSplitter(copy, rows, blockRows).split()) functions.push_back(std::move(stage));
  }
  module.functions = std::move(functions);
  for (const std::size_t index : unchanged) context.unchanged.insert(&module.functions[index]);
}

}  // namespace gshard
