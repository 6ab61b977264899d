// partition: rewrites a program whose values say how they should be split into the SPMD program that every device runs.
// Per function: choose how each op runs (op_plan), decide where pending reductions are completed (pending), then write
// the ops with the collectives between them (spmd_writer).
#include <algorithm>
#include <deque>
#include <map>

#include "partition/known_plans.h"
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

bool isOpenAnnotation(const Op& op) {
  const Annotation* annotation = annotationOf(op);
  return annotation != nullptr && annotation->open && !annotation->stored;
}

// How the accumulators of a function leave its first half, by stem and number.
using AccumulatorShardings = std::map<std::pair<std::string, std::int64_t>, Sharding>;

class FunctionPartitioner {
 public:
  FunctionPartitioner(Module& module, Function& function, DiagSink& diag, KnownPlans& plans,
                      AccumulatorShardings& accumulators, ToldMoves& told)
      : module_(module),
        function_(function),
        diag_(diag),
        plans_(plans),
        shardings_(plans.shardings()),
        accumulators_(accumulators),
        told_(told),
        wanted_(function.values.size(), kUnknown) {}

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
    const KnownPlan* known = nullptr;  // equal ops share them
    std::vector<std::size_t> operandsWanted;
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

  // By propagation, until anything is written: the number of a sharding.
  std::size_t wanted(ValueId value) {
    std::size_t& number = wanted_[value.index];
    if (number == kUnknown) number = shardings_.of(*function_.value(value).sharding);
    return number;
  }

  Sharding requiredOf(const Result& result) {
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
        return shardings_.at(wanted(result.value));
    }
    GSHARD_UNREACHABLE("ResultKind");
  }

  // An open annotation has spoken to propagation; it moves nothing. Uses keep the split that the annotated value had.
  // The alias of what is kept @stored stays: reads begin with the split that was inferred for it, whatever it is kept
  // as.
  void dissolveOpenAnnotations() {
    if (std::none_of(function_.ops.begin(), function_.ops.end(), isOpenAnnotation)) return;
    std::vector<Op> ops;
    std::vector<Planned> planned;
    std::vector<ValueId> stands(function_.values.size());
    const auto resolve = [&](ValueId& value) {
      if (stands[value.index].known()) value = stands[value.index];
    };
    for (std::size_t i = 0; i < function_.ops.size(); ++i) {
      Op& op = function_.ops[i];
      for (ValueId& operand : op.operands) resolve(operand);
      if (isOpenAnnotation(op)) {
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
    versions_[value.index] = {shardings_.of(pending.asMade(value, known->second))};
  }

  void planOp(std::size_t index, OpSignatures& signatures, PendingReductions& pending) {
    const Op& op = function_.ops[index];
    const OpView view(module_, function_, op);
    Planned& item = planned_[index];
    const std::size_t number = plans_.numberOf(view, signatures);
    item.factors = plans_.factorsOf(number);
    pending.joinAccumulators(index);
    NumberedSurroundings around;
    around.operandsWanted = std::move(item.operandsWanted);
    for (const ValueId operand : op.operands) {
      std::vector<std::size_t>& versions = versions_[operand.index];
      versions.front() = asMade(operand, versions.front(), pending);
      around.operands.push_back(&versions);
      around.free.push_back(isFree_[operand.index]);
    }
    for (const ValueId result : op.results) around.resultsWanted.push_back(wanted(result));
    if (function_.stage == Stage::Accumulate && function_.blocks > 1) {
      around.completionsPerRun = 1 / static_cast<double>(function_.blocks);
    }
    if (annotationOf(op) != nullptr) {
      OpPlan plan;
      plan.completes = true;
      plan.axes.resize(item.factors->factors.size());
      plan.operands = plan.results = {shardings_.at(around.resultsWanted[0])};
      plan.madePartial.resize(1);
      item.known = &annotated_.emplace_back(plans_.numbered(std::move(plan)));
    } else {
      item.known = &plans_.choose(view, number, around);
    }
    item.why = beginnings(op, item);
    pending.add(index, item.known->plan, item.why);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      std::vector<std::size_t>& versions = versions_[op.operands[i].index];
      const std::size_t needed = item.known->operands[i];
      if (std::find(versions.begin(), versions.end(), needed) == versions.end()) versions.push_back(needed);
    }
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      versions_[op.results[r].index] = {asMade(op.results[r], item.known->results[r], pending)};
    }
    if (op.results.size() == 1)
      isFree_[op.results[0].index] = isGenerator(op, *item.factors) && pending.of(op.results[0]).empty();
  }

  // Of tiles that are canonical: with what is pending, as the value is made.
  std::size_t asMade(ValueId value, std::size_t tiles, const PendingReductions& pending) {
    if (pending.of(value).empty() && shardings_.at(tiles).partial.empty()) return tiles;
    return shardings_.of(pending.asMade(value, shardings_.at(tiles)));
  }

  // … and as ops read it.
  std::size_t asRead(ValueId value, std::size_t tiles, const PendingReductions& pending) {
    if (pending.of(value).empty()) return tiles;
    return shardings_.of(pending.asRead(value, shardings_.at(tiles)));
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
    for (std::size_t f = 0; f < item.known->plan.axes.size(); ++f) {
      const Factor& factor = item.factors->factors[f];
      if (item.known->plan.axes[f].empty() || (factor.kind != FactorKind::Reduce && factor.kind != FactorKind::Lookup))
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
    SpmdWriter writer(module_, function_, diag_, plans_.costs(), told_);
    for (const Argument& argument : function_.arguments) {
      const std::size_t made = asMade(argument.value, versions_[argument.value.index].front(), pending);
      writer.setMade(argument.value, shardings_.at(made), Phase::Forward);
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
    const OpPlan& plan = item.known->plan;
    const std::vector<ValueId> read = op.operands;
    const bool annotated = annotationOf(op) != nullptr;
    if (annotated && annotationOf(op)->stored) {
      writer.setReadLater(op.results[0], read[0], canonical(module_.mesh, plan.results[0]));
      return;
    }
    for (std::size_t i = 0; i < read.size(); ++i) {
      const std::size_t tiles = item.known->operands[i];
      const Sharding& needed = shardings_.at(plan.completes ? tiles : asRead(read[i], tiles, pending));
      if (const ValueId known = writer.find(read[i], needed); known.known()) {
        op.operands[i] = known;
      } else {
        Request request{annotated ? "the annotation" : opName(op), op.range, op.phase, whyPending(pending, read[i]),
                        annotated};
        if (!annotated) request.asker = {i, &read, &op.results, item.factors.get(), &plan};
        op.operands[i] = writer.obtain(read[i], needed, request);
      }
      if (i < plan.madePartial.size() && !plan.madePartial[i].empty()) {
        op.operands[i] = makePartial(op, op.operands[i], plan.madePartial[i], writer);
      }
    }
    if (annotated) {
      writer.setAlias(op.results[0], op.operands[0], plan.results[0], op.phase);
      return;
    }
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      const std::size_t made = asMade(op.results[r], item.known->results[r], pending);
      writer.setMade(op.results[r], shardings_.at(made), op.phase);
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
  ShardingNumbers& shardings_;
  AccumulatorShardings& accumulators_;
  ToldMoves& told_;
  std::vector<Sharding> resultsWanted_;
  static constexpr std::size_t kUnknown = SIZE_MAX;
  std::vector<std::size_t> wanted_;                 // per value, once asked for
  std::vector<Planned> planned_;                    // per op
  std::deque<KnownPlan> annotated_;                 // of annotations; addresses stay
  std::vector<std::vector<std::size_t>> versions_;  // per value, while planning: the shardings in which it will exist
  std::vector<bool> isFree_;
};

}  // namespace

void partition(Module& module, PassContext& context) {
  KnownPlans plans(module.mesh);
  AccumulatorShardings accumulators;
  ToldMoves told;
  for (const bool finish : {false, true}) {  // the second half of a function takes the accumulators of the first
    for (Function& function : module.functions) {
      if ((function.stage == Stage::Finish) != finish) continue;
      FunctionPartitioner(module, function, context.diag, plans, accumulators, told).run();
    }
  }
}

}  // namespace gshard
