// Small all_reduces over the same axes cost mostly latency: each waits for the first use of its result, and those that
// wait together become one. The last of the pipeline, since a combined op hides the single ones.
#include "ir/op_table.h"
#include "partition/passes.h"

namespace gshard {

namespace {

struct Group {
  std::vector<AxisRef> axes;
  std::string reduction;
  std::vector<Op> members;
};

bool isSmall(const Module& module, const Function& function, const Op& op, std::int64_t limit) {
  (void)module;
  const Value& value = function.value(op.operands[0]);
  std::int64_t bytes = byteSize(value.type.dtype);
  for (const std::int64_t size : localShape(value.type, *value.sharding)) bytes *= size;
  return bytes <= limit;
}

Op combined(Group group) {
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

bool uses(const Op& op, const Group& group) {
  for (const Op& member : group.members) {
    for (const ValueId result : member.results) {
      if (std::find(op.operands.begin(), op.operands.end(), result) != op.operands.end()) return true;
    }
  }
  return false;
}

}  // namespace

void combineSmallCollectives(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    std::vector<Op> ops;
    std::vector<Group> waiting;
    for (Op& op : function.ops) {
      for (std::size_t g = 0; g < waiting.size();) {
        if (uses(op, waiting[g])) {
          ops.push_back(combined(std::move(waiting[g])));
          waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(g));
        } else {
          ++g;
        }
      }
      if (op.kind != OpKind::AllReduce || op.operands.size() != 1 ||
          !isSmall(module, function, op, context.options.combineBytes)) {
        ops.push_back(std::move(op));
        continue;
      }
      const auto axes = std::get<std::vector<AxisRef>>(*op.attributes.find("axes"));
      const std::string reduction = std::get<std::string>(*op.attributes.find("reduction"));
      const auto same = std::find_if(waiting.begin(), waiting.end(), [&](const Group& group) {
        return group.axes == axes && group.reduction == reduction &&
               function.type(group.members[0].operands[0]).dtype == function.type(op.operands[0]).dtype;
      });
      if (same != waiting.end()) {
        same->members.push_back(std::move(op));
      } else {
        waiting.push_back({axes, reduction, {}});
        waiting.back().members.push_back(std::move(op));
      }
    }
    for (Group& group : waiting) ops.push_back(combined(std::move(group)));
    function.ops = std::move(ops);
  }
}

}  // namespace gshard
