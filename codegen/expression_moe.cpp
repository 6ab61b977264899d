// Expressions of moe_dispatch, moe_gather and moe_combine: rows found by index, so that what follows is computed where
// they are read. Members of ExpressionBuilder, apart because no other op looks rows up by two indices.
#include "codegen/expression.h"
#include "ir/moe_op.h"
#include "ir/op_table.h"

namespace gshard {

// A choice of a token, at the loop indices.
struct ExpressionBuilder::Choice {
  int row = -1;   // what lies in its slot; -0 where it was dropped or is on another device
  int kept = -1;  // bool: it was not dropped
};

static DimIndex fixed(std::int64_t index) {
  return DimIndex{-1, 1, index};
}

// A run-time index of `dim` that may be no index of it.
RunTimeDim ExpressionBuilder::maybe(const LocalDim& dim, std::int64_t stride) {
  RunTimeDim move;
  move.stride = stride;
  move.limit = dim.global;
  move.position = zeroIndex();
  move.within = zeroIndex();
  if (dim.split) move.splitArg = extentExtra(dim.extent);
  move.mayMiss = true;
  return move;
}

int ExpressionBuilder::isIndexOf(int node, std::int64_t limit) {
  const DType dtype = work_.kernel.nodes[static_cast<std::size_t>(node)].dtype;
  const int least = apply(ScalarFn::Ge, DType::Bool, {node, constant(dtype, 0)});
  return apply(ScalarFn::And, DType::Bool,
               {least, apply(ScalarFn::Lt, DType::Bool, {node, constant(dtype, static_cast<double>(limit))})});
}

int ExpressionBuilder::slots(std::size_t number, const DimMap& dims) {
  const LowerRule& lower = *opDef(views_.function().ops[number].kind).lower;
  if (std::holds_alternative<LowerDispatch>(lower)) return dispatch(number, dims);
  return std::holds_alternative<LowerGatherSlots>(lower) ? gatherSlots(number, dims) : combine(number, dims);
}

int ExpressionBuilder::dispatch(std::size_t number, const DimMap& dims) {
  const Op& op = views_.function().ops[number];
  const Layout& x = views_.layout(op.operands[0]);
  const Layout& result = views_.layout(op.results[0]);
  const DimIndex& group = dims[1];
  const std::int64_t choices = views_.layout(op.operands[kExpertOperand]).dims[2].size;

  // The whole map lies on each device: its own slots begin where its tile does.
  const ValueId source = op.operands[kSourceOperand];
  Node which;
  which.kind = NodeKind::Load;
  which.dtype = DType::I32;
  which.access = access(source, {group, dims[0], dims[2]});
  const std::vector<std::int64_t> strides = views_.layout(source).strides();
  for (const auto& [dim, stride] : {std::pair{0, strides[1]}, std::pair{2, strides[2]}}) {
    const LocalDim& slot = result.dims[static_cast<std::size_t>(dim)];
    if (slot.split) which.access.index.tileOffsets.emplace_back(extentExtra(slot.extent), stride);
  }
  const int choice = add(std::move(which));
  const int k = choices == 1 ? -1 : constant(DType::I32, static_cast<double>(choices));
  const int token = k < 0 ? choice : apply(ScalarFn::Floordiv, DType::I32, {choice, k});

  const bool isWhole = !x.dims[1].split;
  Node row;
  row.kind = NodeKind::Gather;
  row.op = static_cast<std::int64_t>(number);
  row.dtype = x.dtype;
  row.inputs = {token};
  row.access = access(op.operands[0], {group, fixed(0), dims[3]});
  row.literal = isFloat(x.dtype) ? floatLiteral(isWhole ? 0.0 : -0.0) : intLiteral(0);
  row.moves = {maybe(x.dims[1], x.strides()[1])};
  int value = add(std::move(row));
  if (op.operands.size() > kWeightOperand) {
    const Layout& weights = views_.layout(op.operands[kWeightOperand]);
    Node weight;
    weight.kind = NodeKind::Gather;
    weight.op = static_cast<std::int64_t>(number);
    weight.dtype = weights.dtype;
    weight.inputs = {token, k < 0 ? constant(DType::I32, 0) : apply(ScalarFn::Mod, DType::I32, {choice, k})};
    weight.access = access(op.operands[kWeightOperand], {group, fixed(0), fixed(0)});
    weight.literal = floatLiteral(1);  // keeps the zero that is there
    weight.moves = {maybe(weights.dims[1], weights.strides()[1]), maybe(weights.dims[2], weights.strides()[2])};
    value = apply(ScalarFn::Mul, x.dtype, {value, add(std::move(weight))});
  }
  if (isWhole) return value;
  const int isFilled = isIndexOf(choice, x.dims[1].global * choices);
  return apply(ScalarFn::Where, x.dtype, {isFilled, value, constant(x.dtype, 0)});
}

ExpressionBuilder::Choice ExpressionBuilder::choice(std::size_t number, const DimIndex& j, const DimIndex& group,
                                                    const DimIndex& token, const DimIndex& column) {
  const Op& op = views_.function().ops[number];
  const Layout& y = views_.layout(op.operands[0]);
  const auto part = [&](std::size_t operand) { return load(op.operands[operand], {group, token, j}); };
  Node row;
  row.kind = NodeKind::Gather;
  row.op = static_cast<std::int64_t>(number);
  row.dtype = y.dtype;
  row.inputs = {part(kExpertOperand), part(kSlotOperand)};
  row.access = access(op.operands[0], {fixed(0), group, fixed(0), column});
  row.literal = isFloat(y.dtype) ? floatLiteral(-0.0) : intLiteral(0);
  row.moves = {maybe(y.dims[0], y.strides()[0]), maybe(y.dims[2], y.strides()[2])};
  const std::vector<int> inputs = row.inputs;
  Choice choice;
  choice.row = add(std::move(row));
  if (y.dims[0].split || y.dims[2].split) {
    choice.kept = apply(ScalarFn::And, DType::Bool,
                        {isIndexOf(inputs[0], y.dims[0].global), isIndexOf(inputs[1], y.dims[2].global)});
    return choice;
  }
  Node inside;
  inside.kind = NodeKind::Inside;
  inside.dtype = DType::Bool;
  inside.inputs = {choice.row};
  choice.kept = add(std::move(inside));
  return choice;
}

int ExpressionBuilder::gatherSlots(std::size_t number, const DimMap& dims) {
  const DType dtype = views_.layout(views_.function().ops[number].results[0]).dtype;
  const Choice one = choice(number, dims[2], dims[0], dims[1], dims[3]);
  return apply(ScalarFn::Where, dtype, {one.kept, one.row, constant(dtype, 0)});
}

int ExpressionBuilder::combine(std::size_t number, const DimMap& dims) {
  const Op& op = views_.function().ops[number];
  const Layout& y = views_.layout(op.operands[0]);
  const DType dtype = views_.layout(op.results[0]).dtype;
  const std::int64_t choices = views_.layout(op.operands[kExpertOperand]).dims[2].size;
  std::vector<int> terms;
  int isAny = -1;
  for (std::int64_t j = 0; j < choices; ++j) {
    const Choice one = choice(number, fixed(j), dims[0], dims[1], dims[2]);
    int term = one.row;
    if (y.dtype != dtype) term = apply(ScalarFn::Cast, dtype, {term});
    if (op.operands.size() > kWeightOperand) {
      const int weight = load(op.operands[kWeightOperand], {dims[0], dims[1], fixed(j)});
      Node inside;
      inside.kind = NodeKind::Inside;
      inside.dtype = DType::Bool;
      inside.inputs = {one.row};
      // What is not here is -0, whatever it weighs.
      term = apply(ScalarFn::Mul, dtype,
                   {term, apply(ScalarFn::Where, dtype, {add(std::move(inside)), weight, constant(dtype, 1)})});
    }
    terms.push_back(term);
    isAny = isAny < 0 ? one.kept : apply(ScalarFn::Or, DType::Bool, {isAny, one.kept});
  }
  int sum = isAny < 0 ? constant(dtype, 0)
                      : apply(ScalarFn::Where, dtype, {isAny, constant(dtype, -0.0), constant(dtype, 0)});
  for (const int term : terms) sum = apply(ScalarFn::Add, dtype, {sum, term});
  return sum;
}

}  // namespace gshard
