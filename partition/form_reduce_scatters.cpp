// all_reduce, then only slices of its result over the same axes and dim: a reduce_scatter moves half the bytes. Runs
// after common collectives are joined, since it needs to see every use of an all_reduce.
#include <unordered_map>

#include "ir/op_table.h"
#include "partition/passes.h"
#include "partition/reshard.h"

namespace gshard {

namespace {

// Who reads the result of each all_reduce: found in one walk, since a data parallel model has one per parameter.
struct Users {
  std::vector<std::size_t> ops;
  bool isResult = false;  // of the function
};

std::unordered_map<std::uint32_t, Users> usersOfReductions(const Function& function) {
  std::unordered_map<std::uint32_t, Users> users;
  for (const Op& op : function.ops) {
    if (op.kind == OpKind::AllReduce && op.operands.size() == 1) users[op.results[0].index];
  }
  if (users.empty()) return users;
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    for (const ValueId operand : function.ops[i].operands) {
      const auto found = users.find(operand.index);
      if (found != users.end()) found->second.ops.push_back(i);
    }
  }
  for (const Result& result : function.results) {
    const auto found = users.find(result.value.index);
    if (found != users.end()) found->second.isResult = true;
  }
  return users;
}

// The slice that all uses agree on, or null.
const Op* onlySlice(const Function& function, const Users& users, const std::vector<AxisRef>& axes) {
  if (users.isResult) return nullptr;
  const Op* slice = nullptr;
  for (const std::size_t user : users.ops) {
    const Op& op = function.ops[user];
    if (op.kind != OpKind::AllSlice || std::get<std::vector<AxisRef>>(*op.attributes.find("axes")) != axes)
      return nullptr;
    if (slice != nullptr && !(op.attributes == slice->attributes)) return nullptr;
    slice = &op;
  }
  return slice;
}

// Puts other values in the place of some, in operands and results.
void replaceAll(Function& function, const std::unordered_map<std::uint32_t, ValueId>& stands) {
  const auto replace = [&](ValueId& value) {
    const auto found = stands.find(value.index);
    if (found != stands.end()) value = found->second;
  };
  for (Op& op : function.ops) {
    for (ValueId& operand : op.operands) replace(operand);
  }
  for (Result& result : function.results) replace(result.value);
}

// Whether anything was replaced.
bool formIn(Function& function) {
  const std::unordered_map<std::uint32_t, Users> users = usersOfReductions(function);
  if (users.empty()) return false;
  std::unordered_map<std::uint32_t, ValueId> stands;  // the result of a slice: that of the reduce_scatter
  bool isChanged = false;
  for (Op& op : function.ops) {
    if (op.kind != OpKind::AllReduce || op.operands.size() != 1) continue;
    const auto axes = std::get<std::vector<AxisRef>>(*op.attributes.find("axes"));
    const Users& readers = users.at(op.results[0].index);
    const Op* slice = onlySlice(function, readers, axes);
    if (slice == nullptr) continue;
    const std::int64_t dim = std::get<std::int64_t>(*slice->attributes.find("dim"));
    const Value& before = function.value(op.operands[0]);
    // The group's order must be the order of the pieces on the dim, and the tiles must nest.
    if (!tilesNest(before.type.shape[static_cast<std::size_t>(dim)], before.sharding->parts(dim), productOf(axes)))
      continue;
    isChanged = true;
    op.kind = OpKind::ReduceScatter;
    op.attributes.set("dim", dim);
    op.reason += "; every use wants its part only";
    function.value(op.results[0]).sharding = function.value(slice->results[0]).sharding;
    for (const std::size_t user : readers.ops) stands[function.ops[user].results[0].index] = op.results[0];
  }
  if (!stands.empty()) replaceAll(function, stands);
  return isChanged;
}

}  // namespace

void formReduceScatters(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    const std::size_t ops = function.ops.size();
    const bool isChanged = formIn(function);
    eraseUnused(function);
    if (!isChanged && function.ops.size() == ops) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
