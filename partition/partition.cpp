// partition: rewrites a program whose values say how they should be split into the SPMD program that every device runs.
// Per function: choose how each op runs (op_plan), decide where pending reductions are completed (pending), then write
// the ops with the collectives between them (spmd_writer).
#include <algorithm>
#include <bit>
#include <deque>
#include <memory>

#include "ir/op_signature.h"
#include "partition/passes.h"
#include "partition/pending.h"
#include "partition/slots.h"
#include "partition/split_candidates.h"
#include "partition/split_scan.h"
#include "support/check.h"

namespace gshard {

namespace {

std::string opName(const Op& op) {
  const Attribute* fn = op.attributes.find("fn");
  const std::string* name = fn == nullptr ? nullptr : std::get_if<std::string>(fn);
  return "`" + (name != nullptr ? *name : std::string(*opDef(op.kind).name)) + "`";
}

const Annotation* annotationOf(const Op& op) {
  const Attribute* attribute = op.attributes.find("annotation");
  return attribute == nullptr ? nullptr : std::get_if<Annotation>(attribute);
}

// How the accumulators of a function leave its first half, by stem and number.
using AccumulatorShardings = std::map<std::pair<std::string, std::int64_t>, Sharding>;

// Equal ops in equal surroundings run alike: each is planned once, so that a deep model costs what a shallow one does.
class KnownPlans {
 public:
  ValueNumbers& values() { return values_; }

  // Beside its factors an op has a number, the same for equal ops.
  std::size_t numberOf(const OpView& op, OpSignatures& signatures) {
    key_.clear();
    signatures.add(key_, op.op());
    const std::size_t number = signatures_.of(key_);
    if (number == factors_.size()) factors_.push_back(std::make_shared<const OpFactors>(gshard::factorsOf(op)));
    return number;
  }
  const std::shared_ptr<const OpFactors>& factorsOf(std::size_t number) const { return factors_[number]; }

  const OpPlan& choose(const OpView& op, std::size_t number, const OpSurroundings& around, ReshardCosts& costs) {
    key_.clear();
    key_.addSize(number);
    for (std::size_t i = 0; i < around.operands.size(); ++i) {
      key_.addSize(around.operands[i].size());
      for (const Sharding& version : around.operands[i]) addSharding(key_, version);
      key_.add(around.free[i] ? 1 : 0);
      addSharding(key_, around.operandsWanted[i]);
    }
    for (const Sharding& wanted : around.resultsWanted) addSharding(key_, wanted);
    key_.add(std::bit_cast<std::int64_t>(around.completionsPerRun));
    const std::size_t plan = situations_.of(key_);
    if (plan == plans_.size()) plans_.push_back(choosePlan(op, *factors_[number], around, costs));
    return plans_[plan];
  }

 private:
  ValueNumbers values_{/*sharded=*/false};
  Key key_;
  KeyNumbers signatures_, situations_;
  std::vector<std::shared_ptr<const OpFactors>> factors_;  // by number of signature
  std::deque<OpPlan> plans_;                               // by number of situation; addresses stay
};

class FunctionPartitioner {
 public:
  FunctionPartitioner(Module& module, Function& function, DiagSink& diag, KnownPlans& plans, ReshardCosts& costs,
                      AccumulatorShardings& accumulators, ToldMoves& told)
      : module_(module),
        function_(function),
        diag_(diag),
        plans_(plans),
        costs_(costs),
        accumulators_(accumulators),
        told_(told) {}

  void run() {
    readWanted();
    dissolveOpenAnnotations();
    PendingReductions pending(module_, function_);
    plan(pending);
    pending.decide();
    write(pending);
    eraseUnused(function_);
  }

 private:
  struct Planned {
    std::shared_ptr<const OpFactors> factors;
    const OpPlan* plan = nullptr;  // equal ops share them
    std::vector<Sharding> operandsWanted;
    std::string why;  // what is pending behind it, if anything begins here
  };

  void readWanted() {
    for (const Op& op : function_.ops) {
      Planned item;
      for (const ValueId operand : op.operands) item.operandsWanted.push_back(wanted(operand));
      planned_.push_back(std::move(item));
    }
    for (const Result& result : function_.results) resultsWanted_.push_back(requiredOf(result));
  }

  // By propagation, until anything is written.
  const Sharding& wanted(ValueId value) const { return *function_.value(value).sharding; }

  Sharding requiredOf(const Result& result) const {
    switch (result.kind) {
      case ResultKind::Parameter:
        return *module_.parameters[static_cast<std::size_t>(result.index)].sharding;
      case ResultKind::State:
        return *module_.states[static_cast<std::size_t>(result.index)].sharding;
      case ResultKind::Report:
        // Device 0 says what it holds; whatever has to travel for that stands in the plan.
        return Sharding::replicated(function_.type(result.value).rank());
      case ResultKind::Output:
      case ResultKind::Accumulator:
        return wanted(result.value);
    }
    GSHARD_UNREACHABLE("ResultKind");
  }

  // An open annotation has spoken to propagation; it moves nothing. Uses keep the split that the annotated value had.
  // The alias of what is kept @stored stays: reads begin with the split that was inferred for it, whatever it is kept
  // as.
  void dissolveOpenAnnotations() {
    std::vector<Op> ops;
    std::vector<Planned> planned;
    std::vector<ValueId> stands(function_.values.size());
    const auto resolve = [&](ValueId& value) {
      if (stands[value.index].known()) value = stands[value.index];
    };
    for (std::size_t i = 0; i < function_.ops.size(); ++i) {
      Op& op = function_.ops[i];
      for (ValueId& operand : op.operands) resolve(operand);
      const Annotation* annotation = annotationOf(op);
      if (annotation != nullptr && annotation->open && !annotation->stored) {
        stands[op.results[0].index] = op.operands[0];
        continue;
      }
      ops.push_back(std::move(op));
      planned.push_back(std::move(planned_[i]));
    }
    for (Result& result : function_.results) resolve(result.value);
    function_.ops = std::move(ops);
    planned_ = std::move(planned);
  }

  // ---- decisions

  void plan(PendingReductions& pending) {
    versions_.resize(function_.values.size());
    isFree_.assign(function_.values.size(), false);
    for (const Argument& argument : function_.arguments) planArgument(argument, pending);
    OpSignatures signatures(function_, plans_.values());
    for (std::size_t i = 0; i < function_.ops.size(); ++i) planOp(i, signatures, pending);
  }

  void planArgument(const Argument& argument, PendingReductions& pending) {
    const ValueId value = argument.value;
    versions_[value.index] = {wanted(value)};
    if (argument.kind != ArgumentKind::Accumulator) return;
    if (function_.stage == Stage::Accumulate) {
      pending.setAccumulator(value);
      return;
    }
    const auto known = accumulators_.find({stemOf(function_), argument.index});
    if (known == accumulators_.end()) return;
    std::vector<Pending> list;
    for (const PartialAxis& partial : known->second.partial) {
      list.push_back({partial.axis, partial.reduction, false, "each device has summed its part of the rows"});
    }
    pending.setArgument(value, std::move(list));
    versions_[value.index] = {pending.asMade(value, known->second)};
  }

  void planOp(std::size_t index, OpSignatures& signatures, PendingReductions& pending) {
    const Op& op = function_.ops[index];
    const OpView view(module_, function_, op);
    Planned& item = planned_[index];
    const std::size_t number = plans_.numberOf(view, signatures);
    item.factors = plans_.factorsOf(number);
    pending.joinAccumulators(index);
    OpSurroundings around;
    around.operandsWanted = std::move(item.operandsWanted);
    for (const ValueId operand : op.operands) {
      std::vector<Sharding>& versions = versions_[operand.index];
      versions.front() = pending.asMade(operand, versions.front());
      around.operands.push_back(versions);
      around.free.push_back(isFree_[operand.index]);
    }
    for (const ValueId result : op.results) around.resultsWanted.push_back(wanted(result));
    if (function_.stage == Stage::Accumulate && function_.blocks > 1) {
      around.completionsPerRun = 1 / static_cast<double>(function_.blocks);
    }
    if (annotationOf(op) != nullptr) {
      OpPlan& plan = annotated_.emplace_back();
      plan.completes = true;
      plan.axes.resize(item.factors->factors.size());
      plan.operands = plan.results = around.resultsWanted;
      plan.madePartial.resize(1);
      item.plan = &plan;
    } else {
      item.plan = &plans_.choose(view, number, around, costs_);
    }
    item.why = beginnings(op, item);
    pending.add(index, *item.plan, item.why);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      std::vector<Sharding>& versions = versions_[op.operands[i].index];
      const Sharding needed = canonical(module_.mesh, item.plan->operands[i]);
      if (std::find(versions.begin(), versions.end(), needed) == versions.end()) versions.push_back(needed);
    }
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      versions_[op.results[r].index] = {pending.asMade(op.results[r], item.plan->results[r])};
    }
    if (op.results.size() == 1)
      isFree_[op.results[0].index] = isGenerator(op, *item.factors) && pending.of(op.results[0]).empty();
  }

  // Ops whose elements follow from indices, or from one element, and that run on any tiles.
  bool isGenerator(const Op& op, const OpFactors& factors) const {
    for (const std::vector<int>& dim : factors.results[0]) {
      if (dim.empty()) return false;
    }
    if (std::holds_alternative<LowerGenerate>(*opDef(op.kind).lower)) return true;
    return isMove(op.kind) && op.operands.size() == 1 && function_.type(op.operands[0]).isScalar();
  }

  std::string beginnings(const Op& op, const Planned& item) const {
    std::string letters;
    for (std::size_t f = 0; f < item.plan->axes.size(); ++f) {
      const Factor& factor = item.factors->factors[f];
      if (item.plan->axes[f].empty() || (factor.kind != FactorKind::Reduce && factor.kind != FactorKind::Lookup))
        continue;
      letters += (letters.empty() ? "" : ", ") + factor.letter;
    }
    return letters.empty() ? std::string()
                           : "letter " + letters + " of " + opName(op) + " is split: each device has its part";
  }

  // ---- writing

  void write(const PendingReductions& pending) {
    std::vector<Op> ops = std::move(function_.ops);
    function_.ops.clear();
    SpmdWriter writer(module_, function_, diag_, costs_, told_);
    for (const Argument& argument : function_.arguments) {
      const Sharding sharding = pending.asMade(argument.value, versions_[argument.value.index].front());
      writer.setMade(argument.value, sharding, Phase::Forward);
    }
    for (std::size_t i = 0; i < ops.size(); ++i) writeOp(std::move(ops[i]), planned_[i], pending, writer);
    for (std::size_t r = 0; r < function_.results.size(); ++r) writeResult(r, pending, writer);
    writer.finish();
  }

  static std::string whyPending(const PendingReductions& pending, ValueId value) {
    for (const Pending& each : pending.of(value)) {
      if (each.complete) return each.why;
    }
    return pending.of(value).empty() ? std::string() : pending.of(value).front().why;
  }

  void writeOp(Op op, const Planned& item, const PendingReductions& pending, SpmdWriter& writer) {
    const OpPlan& plan = *item.plan;
    const std::vector<ValueId> read = op.operands;
    const bool annotated = annotationOf(op) != nullptr;
    if (annotated && annotationOf(op)->stored) {
      writer.setReadLater(op.results[0], read[0], canonical(module_.mesh, plan.results[0]));
      return;
    }
    for (std::size_t i = 0; i < read.size(); ++i) {
      const Sharding needed = plan.completes ? plan.operands[i] : pending.asRead(read[i], plan.operands[i]);
      Request request{annotated ? "the annotation" : opName(op), op.range, op.phase, whyPending(pending, read[i]),
                      annotated};
      if (!annotated) request.asker = {i, &read, &op.results, item.factors.get(), &plan};
      op.operands[i] = writer.obtain(read[i], canonical(module_.mesh, needed), request);
      if (i < plan.madePartial.size() && !plan.madePartial[i].empty()) {
        op.operands[i] = makePartial(op, op.operands[i], plan.madePartial[i], writer);
      }
    }
    if (annotated) {
      writer.setAlias(op.results[0], op.operands[0], plan.results[0], op.phase);
      return;
    }
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      writer.setMade(op.results[r], pending.asMade(op.results[r], plan.results[r]), op.phase);
    }
    if (isFree_[op.results[0].index]) writer.setGenerator(op.results[0], op);
    if (plan.exchange) {
      op.attributes.set("move", std::string(*opDef(op.kind).name));
      op.reason = opName(op) + " moves elements across the parts of a split dim";
      op.kind = OpKind::Exchange;
    } else if (const AxisList axes = candidateAxes(*item.factors, plan); !axes.empty()) {
      writeSplitCandidates(module_, function_, op, *item.factors, axes, writer);
      return;
    } else if (const AxisList parts = scanAxes(*item.factors, plan); !parts.empty()) {
      writeSplitScan(module_, function_, std::move(op), parts, writer);
      return;
    }
    writer.append(std::move(op));
  }

  ValueId makePartial(const Op& op, ValueId value, const std::vector<PartialAxis>& over, SpmdWriter& writer) {
    Sharding sharding = *function_.value(value).sharding;
    for (const PartialAxis& each : over) {
      sharding.partial.push_back(each);
      sharding = canonical(module_.mesh, std::move(sharding));
      Op copy{OpKind::MakePartial, {value}, {}, {}, op.range, op.phase};
      copy.attributes.set("axes", std::vector<AxisRef>{each.axis});
      copy.attributes.set("reduction", std::string(reductionName(each.reduction)));
      copy.reason = opName(op) + " adds it once, not once per device";
      value = writer.newValue(function_.value(value), sharding);
      copy.results = {value};
      writer.append(std::move(copy));
    }
    return value;
  }

  void writeResult(std::size_t index, const PendingReductions& pending, SpmdWriter& writer) {
    Result& result = function_.results[index];
    Sharding needed = resultsWanted_[index];
    if (result.kind == ResultKind::Accumulator) {
      needed = pending.asRead(result.value, needed);
      accumulators_[{stemOf(function_), result.index}] = needed;
    }
    const Request request{result.kind == ResultKind::Output ? "the result" : "`" + result.name + "`",
                          result.range,
                          phaseOf(result),
                          whyPending(pending, result.value),
                          true,
                          {}};
    result.value = writer.obtain(result.value, needed, request);
  }

  static Phase phaseOf(const Result& result) {
    return result.kind == ResultKind::Parameter || result.kind == ResultKind::State ? Phase::Update : Phase::Forward;
  }

  Module& module_;
  Function& function_;
  DiagSink& diag_;
  KnownPlans& plans_;
  ReshardCosts& costs_;
  AccumulatorShardings& accumulators_;
  ToldMoves& told_;
  std::vector<Sharding> resultsWanted_;
  std::vector<Planned> planned_;                 // per op
  std::deque<OpPlan> annotated_;                 // of annotations; addresses stay
  std::vector<std::vector<Sharding>> versions_;  // per value, while planning: the shardings in which it will exist
  std::vector<bool> isFree_;
};

}  // namespace

void partition(Module& module, PassContext& context) {
  ReshardCosts costs(module.mesh);
  KnownPlans plans;
  AccumulatorShardings accumulators;
  ToldMoves told;
  for (const bool finish : {false, true}) {  // the second half of a function takes the accumulators of the first
    for (Function& function : module.functions) {
      if ((function.stage == Stage::Finish) != finish) continue;
      FunctionPartitioner(module, function, context.diag, plans, costs, accumulators, told).run();
    }
  }
}

}  // namespace gshard
