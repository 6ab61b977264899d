// all_reduce, then only slices of its result over the same axes and dim: a reduce_scatter moves half the bytes. Runs
// after common collectives are joined, since it needs to see every use of an all_reduce.
#include "ir/op_table.h"
#include "partition/passes.h"
#include "partition/reshard.h"

namespace gshard {

namespace {

// The slice that all uses of `value` agree on, or null.
const Op* onlySlice(const Function& function, ValueId value, const std::vector<AxisRef>& axes) {
  const Op* slice = nullptr;
  for (const Result& result : function.results) {
    if (result.value == value) return nullptr;
  }
  for (const Op& op : function.ops) {
    if (std::find(op.operands.begin(), op.operands.end(), value) == op.operands.end()) continue;
    if (op.kind != OpKind::AllSlice || std::get<std::vector<AxisRef>>(*op.attributes.find("axes")) != axes)
      return nullptr;
    if (slice != nullptr && !(op.attributes == slice->attributes)) return nullptr;
    slice = &op;
  }
  return slice;
}

}  // namespace

void formReduceScatters(Module& module, PassContext&) {
  for (Function& function : module.functions) {
    for (Op& op : function.ops) {
      if (op.kind != OpKind::AllReduce || op.operands.size() != 1) continue;
      const auto axes = std::get<std::vector<AxisRef>>(*op.attributes.find("axes"));
      const Op* slice = onlySlice(function, op.results[0], axes);
      if (slice == nullptr) continue;
      const std::int64_t dim = std::get<std::int64_t>(*slice->attributes.find("dim"));
      const Value& before = function.value(op.operands[0]);
      // The group's order must be the order of the pieces on the dim, and the tiles must nest.
      if (!tilesNest(before.type.shape[static_cast<std::size_t>(dim)], before.sharding->parts(dim), productOf(axes)))
        continue;
      op.kind = OpKind::ReduceScatter;
      op.attributes.set("dim", dim);
      op.reason += "; every use wants its part only";
      const ValueId sliced = slice->results[0];
      const ValueId reduced = op.results[0];
      function.value(reduced).sharding = function.value(sliced).sharding;
      for (Op& user : function.ops) {
        if (user.kind == OpKind::AllSlice && user.operands[0] == reduced)
          replaceUses(function, user.results[0], reduced);
      }
    }
    eraseUnused(function);
  }
}

}  // namespace gshard
