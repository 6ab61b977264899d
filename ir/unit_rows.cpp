// Shapes are inferred anew from inputs of two rows; only reshape, broadcast and slice say sizes of their own.
#include "ir/unit_rows.h"

#include "ir/op_table.h"
#include "ir/rewrite.h"

namespace gshard {

namespace {

using Dims = std::vector<std::int64_t>;

// The shape of a reshape whose operand grew along a dim of size 1: the dim of size 1 at the same place in row-major
// order grows, or, if there is none, the one that the rows are merged into.
Dims widenedReshape(const Dims& before, const Dims& after, const Dims& target) {
  Dims widened = target;
  std::int64_t ahead = 1;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != after[i]) {
      std::int64_t passed = 1;
      std::size_t j = 0;
      while (j + 1 < target.size() && passed < ahead) passed *= target[j++];
      if (j < widened.size()) widened[j] *= after[i] / before[i];
      return widened;
    }
    ahead *= before[i];
  }
  return widened;
}

void widenAttributes(Op& op, const Type& before, const Type& after) {
  if (op.kind == OpKind::Reshape)
    op.attributes.set("shape", widenedReshape(before.shape, after.shape, intsOf(op, "shape")));
  for (std::size_t i = 0; i < before.shape.size(); ++i) {
    if (before.shape[i] == after.shape[i]) continue;
    if (op.kind == OpKind::Broadcast) {
      Dims shape = intsOf(op, "shape");
      std::int64_t& size = shape[static_cast<std::size_t>(intsOf(op, "dims")[i])];
      if (size == before.shape[i]) size = after.shape[i];
      op.attributes.set("shape", std::move(shape));
    }
    if (op.kind == OpKind::Slice) {
      Dims limit = intsOf(op, "limit");
      if (limit[i] == before.shape[i]) limit[i] = after.shape[i];
      op.attributes.set("limit", std::move(limit));
    }
  }
}

}  // namespace

bool widenUnitRows(const Module& module, Function& function) {
  Function widened = function;
  widened.rows = 2;
  for (const Argument& argument : widened.arguments) {
    Value& value = widened.value(argument.value);
    if (value.rowDim >= 0) value.type.shape[static_cast<std::size_t>(value.rowDim)] *= 2;
  }
  CollectingSink sink;  // what does not follow is found out here, not told
  for (Op& op : widened.ops) {
    if (!op.operands.empty()) widenAttributes(op, function.type(op.operands[0]), widened.type(op.operands[0]));
    const std::optional<ResultTypes> types = (*opDef(op.kind).infer)(OpView(module, widened, op), sink);
    if (!types || types->size() != op.results.size()) return false;
    for (std::size_t i = 0; i < op.results.size(); ++i) widened.value(op.results[i]).type = (*types)[i];
  }
  function = std::move(widened);
  return true;
}

}  // namespace gshard
