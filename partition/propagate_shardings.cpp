// propagate-shardings: works out how every tensor is split, from the few that are annotated (design.md section 5). The
// walk takes ops by priority until nothing is free of conflict, then settles the conflict with the most bytes, and goes
// on.
//
// Ops join in three groups: forward and backward of the trained functions; those of the other functions; last the
// updates and initial values. So a split comes from parameters to gradients and states, and never from a state to its
// parameter.
#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <optional>
#include <set>

#include "ir/op_signature.h"
#include "partition/diagnostics.h"
#include "partition/passes.h"
#include "partition/propagate_step.h"
#include "partition/slots.h"

namespace gshard {

namespace {

enum class Group : std::uint8_t { Training, Others, Updates };
enum class Level : std::uint8_t { Elementwise, NoBroadcast, BroadcastBackward, All };

struct PropagationOp {
  std::size_t function = 0;
  const Op* op = nullptr;
  std::size_t number = 0;              // of its signature
  const OpFactors* factors = nullptr;  // equal ops share them
  Group group = Group::Training;
  std::vector<std::size_t> slots;     // of tensorsOf, in order
  std::vector<Refinement> contested;  // as of the last full look
};

struct Task {
  Level level;
  std::size_t op;
};

// Tasks that wait, each once: by level, then by op. One bit a task, since each op is looked at many times.
class TaskQueue {
 public:
  void resize(std::size_t ops) {
    for (Waiting& waiting : levels_) waiting.words.resize(ops / kBits + 1);
  }

  void insert(const Task& task) {
    Waiting& waiting = levels_[static_cast<std::size_t>(task.level)];
    const std::size_t word = task.op / kBits;
    const std::uint64_t bit = std::uint64_t{1} << task.op % kBits;
    if ((waiting.words[word] & bit) != 0) return;
    waiting.words[word] |= bit;
    waiting.first = std::min(waiting.first, word);
    ++waiting.count;
  }

  // The first, taken out; nothing when none waits.
  std::optional<Task> take() {
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      Waiting& waiting = levels_[level];
      if (waiting.count == 0) continue;
      while (waiting.words[waiting.first] == 0) ++waiting.first;
      std::uint64_t& word = waiting.words[waiting.first];
      const std::size_t op = waiting.first * kBits + static_cast<std::size_t>(std::countr_zero(word));
      word &= word - 1;
      --waiting.count;
      return Task{static_cast<Level>(level), op};
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kBits = 64;
  struct Waiting {
    std::vector<std::uint64_t> words;
    std::size_t first = 0;  // no word before it has a bit
    std::size_t count = 0;
  };
  std::array<Waiting, 4> levels_;
};

class Propagation {
 public:
  Propagation(Module& module, PassContext& context) : module_(module), context_(context), slots_(module) {}

  void run() {
    for (const Parameter& each : module_.parameters) warnOfEmptyParts(each.name, each.type, each.annotation);
    for (const State& each : module_.states) warnOfEmptyParts(each.name, each.type, each.annotation);
    warnOfInputs();
    collectOps();
    for (const Group group : {Group::Training, Group::Others, Group::Updates}) {
      for (std::size_t i = 0; i < ops_.size(); ++i) {
        // Updates come alone: what they ask of gradients does not travel back into the backward pass.
        active_[i] = group == Group::Updates ? ops_[i].group == group : ops_[i].group <= group;
        // Those of an earlier group have said what they say, until one of their tensors changes.
        if (ops_[i].group == group) enqueue(i);
      }
      do {
        drain();
      } while (settleOne());
    }
    slots_.writeTo(module_);
  }

 private:
  void collectOps() {
    users_.resize(slots_.count());
    ValueNumbers values(/*sharded=*/false);
    for (std::size_t f = 0; f < module_.functions.size(); ++f) {
      const Function& function = module_.functions[f];
      OpSignatures signatures(function, values);
      Key signature;
      for (const Op& op : function.ops) {
        if (readsStored(op)) continue;
        signature.clear();
        signatures.add(signature, op);
        const std::size_t number = signatures_.of(signature);
        if (number == factors_.size()) factors_.push_back(factorsOf(OpView(module_, function, op)));
        PropagationOp item{f, &op, number, &factors_[number], groupOf(function, op), {}, {}};
        for (const ValueId value : op.operands) item.slots.push_back(slots_.of(f, value));
        for (const ValueId value : op.results) item.slots.push_back(slots_.of(f, value));
        for (const std::size_t slot : item.slots) users_[slot].push_back(ops_.size());
        ops_.push_back(std::move(item));
      }
    }
    active_.resize(ops_.size());
    queue_.resize(ops_.size());
    states_.assign(slots_.count(), kUnknown);
  }

  // The alias through which a tensor kept `@stored` is read: the split of the two is unrelated.
  static bool readsStored(const Op& op) {
    const Attribute* attribute = op.attributes.find("annotation");
    return attribute != nullptr && std::get<Annotation>(*attribute).stored;
  }

  static Group groupOf(const Function& function, const Op& op) {
    if (function.kind == FunctionKind::Init || op.phase == Phase::Update) return Group::Updates;
    return function.kind == FunctionKind::Train ? Group::Training : Group::Others;
  }

  void enqueue(std::size_t index) {
    const OpFactors& factors = *ops_[index].factors;
    if (factors.factors.empty()) return;
    if (factors.isElementwise) {
      queue_.insert({Level::Elementwise, index});
    } else if (!factors.isBroadcast) {
      queue_.insert({Level::NoBroadcast, index});
    } else {
      queue_.insert({Level::BroadcastBackward, index});
    }
    queue_.insert({Level::All, index});
  }

  // The number of what a slot is split as: equal for equal splits.
  std::size_t stateOf(std::size_t index) {
    std::size_t& state = states_[index];
    if (state != kUnknown) return state;
    const Slot& slot = slots_.at(index);
    key_.clear();
    for (std::size_t dim = 0; dim < slot.dims.size(); ++dim) {
      addAxes(key_, slot.dims[dim]);
      key_.add(slot.fixed[dim] ? 1 : 0);
    }
    return state = splits_.of(key_);
  }

  // Equal ops on equal splits say the same.
  const StepResult& step(const PropagationOp& item, Level level) {
    // As a source and as a target, in two bits.
    const auto roles = [&](std::size_t t) -> std::size_t {
      const bool isResult = t >= item.factors->operands.size();
      const bool source = level != Level::BroadcastBackward || isResult;
      const bool target = level != Level::BroadcastBackward || !isResult;
      const bool keeps = item.group == Group::Updates && slots_.at(item.slots[t]).keepsInUpdates;
      return (source ? 1u : 0u) + (target && !keeps ? 2u : 0u);
    };
    situation_.clear();
    situation_.addSize(item.number << 1 | (level == Level::All ? 1u : 0u));
    for (std::size_t t = 0; t < item.slots.size(); ++t) situation_.addSize(stateOf(item.slots[t]) << 2 | roles(t));
    const std::size_t number = situations_.of(situation_);
    if (number < steps_.size()) return steps_[number];
    std::vector<StepTensor> tensors;
    for (std::size_t t = 0; t < item.slots.size(); ++t) {
      const Slot& slot = slots_.at(item.slots[t]);
      tensors.push_back({&slot.type, &slot.dims, &slot.fixed, (roles(t) & 1) != 0, (roles(t) & 2) != 0});
    }
    return steps_.emplace_back(propagateStep(*item.factors, tensors, level == Level::All));
  }

  void drain() {
    while (const std::optional<Task> task = queue_.take()) {
      PropagationOp& item = ops_[task->op];
      const StepResult& result = step(item, task->level);
      for (const Refinement& refinement : result.refinements) apply(item, refinement);
      if (task->level == Level::All) item.contested = result.contested;
    }
  }

  void apply(const PropagationOp& item, const Refinement& refinement) {
    const std::size_t index = item.slots[refinement.tensor];
    Slot& slot = slots_.at(index);
    AxisList& dim = slot.dims[static_cast<std::size_t>(refinement.dim)];
    // A slot that stands twice in this op may have been refined since the step looked at it.
    if (productOf(dim) >= productOf(refinement.axes) || !isPrefix(dim, refinement.axes)) return;
    const AxisList added = withoutPrefix(refinement.axes, dim);
    for (const AxisList& other : slot.dims) {
      if (&other != &dim && overlapAny(other, added)) return;
    }
    dim = refinement.axes;
    states_[index] = kUnknown;
    const Function& function = module_.functions[item.function];
    const std::string how = "inferred from `" + nameOf(function, item, refinement.from) + "` through letter " +
                            item.factors->factors[static_cast<std::size_t>(refinement.factor)].letter;
    for (const AxisRef& axis : added) slot.origins.push_back({refinement.dim, axis, item.op->range, how});
    for (const std::size_t user : users_[index]) {
      if (active_[user]) enqueue(user);
    }
  }

  static std::string nameOf(const Function& function, const PropagationOp& item, std::size_t tensor) {
    const std::size_t operands = item.op->operands.size();
    const ValueId value = tensor < operands ? item.op->operands[tensor] : item.op->results[tensor - operands];
    const std::string& name = function.value(value).name;
    return name.empty() ? std::string(*opDef(item.op->kind).name) : name;
  }

  // The contested refinement with the most bytes behind it; the first of equals by op, then by factor.
  bool settleOne() {
    const PropagationOp* where = nullptr;
    const Refinement* best = nullptr;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!active_[i]) continue;
      for (const Refinement& refinement : ops_[i].contested) {
        const bool better = best == nullptr || refinement.bytes > best->bytes ||
                            (refinement.bytes == best->bytes && where == &ops_[i] && refinement.factor < best->factor);
        if (!better) continue;
        where = &ops_[i];
        best = &refinement;
      }
    }
    if (best == nullptr) return false;
    if (context_.options.strictSharding) reportConflict(*where, *best);
    const Refinement chosen = *best;
    PropagationOp& item = ops_[static_cast<std::size_t>(where - ops_.data())];
    item.contested.clear();
    apply(item, chosen);
    return true;
  }

  void warnOfInputs() {
    std::set<std::pair<std::string, SourceRange>> told;  // an input that is in several functions is told once
    for (const Function& function : module_.functions) {
      for (const Argument& argument : function.arguments) {
        if (!argument.annotation || !told.emplace(argument.name, argument.annotation->range).second) continue;
        warnOfEmptyParts(argument.name, function.type(argument.value), argument.annotation);
      }
    }
  }

  void warnOfEmptyParts(const std::string& name, const Type& type, const std::optional<Annotation>& annotation) {
    if (!annotation) return;
    for (std::int64_t dim = 0; dim < static_cast<std::int64_t>(annotation->sharding.dims.size()); ++dim) {
      const std::int64_t size = type.shape[static_cast<std::size_t>(dim)], parts = annotation->sharding.parts(dim);
      if (parts <= size) continue;
      context_.diag.emit(annotation->range, diag::EmptyParts, dim, name, size, parts)
          .note("a dimension of at least " + std::to_string(parts) + " elements would give every device a part")
          .group("perf");
    }
  }

  void reportConflict(const PropagationOp& item, const Refinement& refinement) {
    const Function& function = module_.functions[item.function];
    const std::size_t operands = item.op->operands.size();
    const std::string name = nameOf(function, item, refinement.tensor);
    DiagBuilder told = context_.diag.emit(item.op->range, diag::SplitNotImplied, name,
                                          printType(slots_.at(item.slots[refinement.tensor]).type), refinement.dim);
    // What the annotations say, each once; where inference carried a split here, the value it came by.
    std::set<SourceRange> shown;
    for (std::size_t t = 0; t < item.slots.size(); ++t) {
      for (const SplitOrigin& origin : slots_.at(item.slots[t]).origins) {
        if (!shown.insert(origin.range).second) continue;
        told.label(origin.range, "`" + nameOf(function, item, t) + "` is split over `" +
                                     printAxisRef(module_.mesh, origin.axis) + "` on dimension " +
                                     std::to_string(origin.dim) +
                                     (origin.how == "fixed" ? " here" : ", " + origin.how));
      }
    }
    const bool isResult = refinement.tensor >= operands;
    told.help(isResult ? "annotate the result, `(…) @split(…)`, and the operand that moves"
                       : "annotate `" + name + "`");
  }

  Module& module_;
  PassContext& context_;
  Slots slots_;
  static constexpr std::size_t kUnknown = SIZE_MAX;
  KeyNumbers signatures_, splits_, situations_;  // a situation: signature, level and splits
  std::deque<OpFactors> factors_;                // by number of signature; addresses stay
  std::deque<StepResult> steps_;                 // by number of situation
  Key key_, situation_;
  std::vector<std::size_t> states_;  // per slot: the number of its split, or unknown
  std::vector<PropagationOp> ops_;
  std::vector<bool> active_;
  std::vector<std::vector<std::size_t>> users_;  // per slot
  TaskQueue queue_;
};

}  // namespace

void propagateShardings(Module& module, PassContext& context) {
  Propagation(module, context).run();
}

}  // namespace gshard
