// Small collectives cost mostly latency. Those that reduce or gather over the same axes wait, each for the first use of
// its result, and those that wait together become one: they move the same bytes in fewer messages. The last of the
// pipeline, since a combined op hides the single ones.
//
// What waits keeps its operand alive, and where operand and result differ in size (reduce_scatter, all_gather) both: a
// group of these stays below the size up to which a single one counts as small.
#include "ir/op_table.h"
#include "partition/passes.h"

namespace gshard {

namespace {

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

bool uses(const Op& op, const Waiting& group) {
  for (const Op& member : group.members) {
    for (const ValueId result : member.results) {
      if (std::find(op.operands.begin(), op.operands.end(), result) != op.operands.end()) return true;
    }
  }
  return false;
}

class Combiner {
 public:
  Combiner(Function& function, std::int64_t limit) : function_(function), limit_(limit) {}

  void run() {
    for (Op& op : function_.ops) {
      for (std::size_t g = 0; g < waiting_.size();) {
        if (uses(op, waiting_[g])) {
          release(g);
        } else {
          ++g;
        }
      }
      if (combines(op) && largerSide(function_, op) <= limitFor(op.kind)) {
        join(std::move(op));
      } else {
        ops_.push_back(std::move(op));
      }
    }
    while (!waiting_.empty()) release(0);
    function_.ops = std::move(ops_);
  }

 private:
  // Where groups are bounded, one that would fill more than half of a group does not hold up the smaller ones.
  std::int64_t limitFor(OpKind kind) const { return kind == OpKind::AllReduce ? limit_ : limit_ / 2; }

  void release(std::size_t g) {
    ops_.push_back(combined(std::move(waiting_[g])));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(g));
  }

  void join(Op op) {
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
