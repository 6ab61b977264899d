// Small collectives cost mostly latency. Those that reduce or gather over the same axes wait, each for the first use of
// its result, and those that wait together become one: they move the same bytes in fewer messages. The last of the
// pipeline, since a combined op hides the single ones.
//
// Ops of a few numbers that use such a result (the sum of loss and auxiliary loss, the ratios of statistics) wait with
// it, until something that does not wait needs them: they would part what may travel together.
//
// What waits keeps its operand alive, and where operand and result differ in size (reduce_scatter, all_gather) both: a
// group of these stays below the size up to which a single one counts as small.
#include "ir/op_table.h"
#include "partition/passes.h"

namespace gshard {

namespace {

constexpr std::int64_t kHeldBytes = 1 << 14;  // of a tensor; 4096 numbers: the loads of as many experts

struct Waiting {
  OpKind kind;
  Attributes attributes;
  DType dtype = DType::F32;
  std::int64_t bytes = 0;  // of the larger side of all members
  std::vector<Op> members;
};

std::int64_t tileBytes(const Value& value) {
  std::int64_t bytes = byteSize(value.type.dtype);
  for (const std::int64_t size : localShape(value.type, *value.sharding)) bytes *= size;
  return bytes;
}

std::int64_t largerSide(const Function& function, const Op& op) {
  return std::max(tileBytes(function.value(op.operands[0])), tileBytes(function.value(op.results[0])));
}

bool combines(const Op& op) {
  return op.operands.size() == 1 &&
         (op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter || op.kind == OpKind::AllGather);
}

Op combined(Waiting group) {
  Op op = std::move(group.members.front());
  if (group.members.size() == 1) return op;
  for (std::size_t i = 1; i < group.members.size(); ++i) {
    const Op& member = group.members[i];
    op.operands.insert(op.operands.end(), member.operands.begin(), member.operands.end());
    op.results.insert(op.results.end(), member.results.begin(), member.results.end());
    op.phase = std::max(op.phase, member.phase);
  }
  op.reason += "; combined from " + std::to_string(group.members.size());
  return op;
}

bool reads(const Op& op, const std::vector<ValueId>& values) {
  return std::any_of(values.begin(), values.end(), [&](ValueId value) {
    return std::find(op.operands.begin(), op.operands.end(), value) != op.operands.end();
  });
}

bool uses(const Op& op, const Waiting& group) {
  return std::any_of(group.members.begin(), group.members.end(),
                     [&](const Op& member) { return reads(op, member.results); });
}

class Combiner {
 public:
  Combiner(Function& function, std::int64_t limit)
      : function_(function),
        limit_(limit),
        waits_(function.values.size(), false),
        isKept_(function.values.size(), false) {
    for (const Argument& argument : function.arguments) {
      isKept_[argument.value.index] = argument.kind == ArgumentKind::Parameter ||
                                      argument.kind == ArgumentKind::State ||
                                      argument.kind == ArgumentKind::Accumulator;
    }
  }

  void run() {
    for (Op& op : function_.ops) {
      const bool isWaiting =
          std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) { return waits_[operand.index]; });
      if (isWaiting && mayWait(op)) {
        mark(op, true);
        held_.push_back(std::move(op));
        continue;
      }
      if (isWaiting) releaseFor(op);
      if (combines(op) && largerSide(function_, op) <= limitFor(op.kind)) {
        join(std::move(op));
      } else {
        ops_.push_back(std::move(op));
      }
    }
    while (!waiting_.empty()) release(0);
    for (Op& op : held_) ops_.push_back(std::move(op));
    function_.ops = std::move(ops_);
  }

 private:
  void mark(const Op& op, bool waits) {
    for (const ValueId result : op.results) waits_[result.index] = waits;
  }

  // Small ops on small tensors, so that nothing large stays alive for them. Parameters and states are updated in place,
  // so neither updates wait nor what reads the old value.
  bool mayWait(const Op& op) const {
    if (op.phase == Phase::Update || std::holds_alternative<LowerCollective>(*opDef(op.kind).lower)) return false;
    const auto isSmall = [&](ValueId value) {
      return !isKept_[value.index] && tileBytes(function_.value(value)) <= kHeldBytes;
    };
    return std::all_of(op.operands.begin(), op.operands.end(), isSmall) &&
           std::all_of(op.results.begin(), op.results.end(), isSmall);
  }

  // What `op` needs of all that waits, first the collectives, then the ops held up for them.
  void releaseFor(const Op& op) {
    std::vector<bool> needed(held_.size(), false);
    for (std::size_t i = held_.size(); i-- > 0;) {
      needed[i] = reads(op, held_[i].results);
      for (std::size_t later = i + 1; later < held_.size() && !needed[i]; ++later)
        needed[i] = needed[later] && reads(held_[later], held_[i].results);
    }
    for (std::size_t g = 0; g < waiting_.size();) {
      bool isNeeded = uses(op, waiting_[g]);
      for (std::size_t i = 0; i < held_.size() && !isNeeded; ++i) isNeeded = needed[i] && uses(held_[i], waiting_[g]);
      if (isNeeded) {
        release(g);
      } else {
        ++g;
      }
    }
    std::vector<Op> stillHeld;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (needed[i]) mark(held_[i], false);
      std::vector<Op>& to = needed[i] ? ops_ : stillHeld;
      to.push_back(std::move(held_[i]));
    }
    held_ = std::move(stillHeld);
  }

  // Where groups are bounded, one that would fill more than half of a group does not hold up the smaller ones.
  std::int64_t limitFor(OpKind kind) const { return kind == OpKind::AllReduce ? limit_ : limit_ / 2; }

  void release(std::size_t g) {
    for (const Op& member : waiting_[g].members) mark(member, false);
    ops_.push_back(combined(std::move(waiting_[g])));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(g));
  }

  void join(Op op) {
    mark(op, true);
    const std::int64_t bytes = largerSide(function_, op);
    const DType dtype = function_.type(op.operands[0]).dtype;
    for (std::size_t g = 0; g < waiting_.size(); ++g) {
      Waiting& group = waiting_[g];
      if (group.kind != op.kind || group.dtype != dtype || !(group.attributes == op.attributes)) continue;
      if (op.kind != OpKind::AllReduce && group.bytes + bytes > limit_) {
        release(g);
        break;
      }
      group.bytes += bytes;
      group.members.push_back(std::move(op));
      return;
    }
    waiting_.push_back({op.kind, op.attributes, dtype, bytes, {}});
    waiting_.back().members.push_back(std::move(op));
  }

  Function& function_;
  std::int64_t limit_;
  std::vector<Waiting> waiting_;
  std::vector<bool> waits_;   // per value: made by an op of a group or of held_
  std::vector<bool> isKept_;  // per value: the old value of what is updated in place
  std::vector<Op> held_;      // in program order; each needs a group that waits, or did
  std::vector<Op> ops_;
};

}  // namespace

void combineSmallCollectives(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    if (std::none_of(function.ops.begin(), function.ops.end(), combines)) {
      context.unchanged.insert(&function);
      continue;
    }
    Combiner(function, context.options.combineBytes).run();
  }
}

}  // namespace gshard
