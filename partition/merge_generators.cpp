// Joins copies of constants, iota and broadcast scalars that are split alike: the other half of clone_generators.cpp.
#include <map>

#include "ir/op_table.h"
#include "partition/passes.h"

namespace gshard {

namespace {

struct Known {
  Attributes attributes;
  Type type;
  Sharding sharding;
  ValueId value;
};

bool canMerge(const Function& function, const Op& op) {
  if (op.results.size() != 1) return false;
  if (op.operands.empty()) return !isSpmdOnly(op.kind);
  return isMove(op.kind) && op.operands.size() == 1 && function.type(op.operands[0]).isScalar();
}

// Whether any was joined, or was of no use.
bool mergeIn(Function& function) {
  const std::size_t count = function.ops.size();
  std::map<std::pair<OpKind, std::vector<ValueId>>, std::vector<Known>> known;
  std::vector<ValueId> now(function.values.size());  // per value: what stands for it
  const auto resolve = [&](ValueId& use) {
    if (now[use.index].known()) use = now[use.index];
  };
  for (Op& op : function.ops) {
    for (ValueId& operand : op.operands) resolve(operand);
    if (!canMerge(function, op)) continue;
    const Value& value = function.value(op.results[0]);
    std::vector<Known>& alike = known[{op.kind, op.operands}];
    bool found = false;
    for (const Known& each : alike) {
      if (!(each.type == value.type && each.sharding == *value.sharding && each.attributes == op.attributes)) continue;
      now[op.results[0].index] = each.value;
      found = true;
      break;
    }
    if (!found) alike.push_back({op.attributes, value.type, *value.sharding, op.results[0]});
  }
  for (Result& result : function.results) resolve(result.value);
  eraseUnused(function);
  return function.ops.size() != count;
}

}  // namespace

void mergeGenerators(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    if (!mergeIn(function)) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
