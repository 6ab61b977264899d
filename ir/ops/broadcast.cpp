// broadcast: operand dim i becomes result dim dims[i]; dims of size 1 stretch, result dims that no operand dim names
// repeat.
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferBroadcast(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const std::vector<std::int64_t>& dims = op.intsAttr("dims");
  const Type result{x.dtype, op.intsAttr("shape")};
  if (!checkSizes(op, diag, result) || !checkLength(op, diag, "dims", dims, x) ||
      !checkDimList(op, diag, dims, result)) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t target = result.shape[static_cast<std::size_t>(dims[i])];
    if (x.shape[i] == target || x.shape[i] == 1) continue;
    diag.emit(op.range(), diag::BroadcastDims, printType(x), printShape(result.shape),
              "dimension " + std::to_string(i) + " is " + std::to_string(x.shape[i]) + " and would become " +
                  std::to_string(target))
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  return ResultTypes{result};
}

static std::vector<MoveDim> broadcastMap(const OpView& op, std::size_t, std::size_t) {
  const std::vector<std::int64_t>& shape = op.intsAttr("shape");
  const std::vector<std::int64_t>& dims = op.intsAttr("dims");
  std::vector<MoveDim> map(shape.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t place = static_cast<std::size_t>(dims[i]);
    if (op.operandType(0).shape[i] == shape[place]) map[place].operandDim = static_cast<std::int64_t>(i);
  }
  return map;
}

static void broadcastFactors(const OpView& op, FactorBuilder& factors) {
  const std::vector<MoveDim> map = broadcastMap(op, 0, 0);
  for (std::size_t i = 0; i < map.size(); ++i) {
    const int factor = factors.add(FactorKind::Pass, op.intsAttr("shape")[i]);
    factors.resultDim(0, static_cast<std::int64_t>(i), factor);
    if (map[i].operandDim >= 0) factors.operandDim(0, map[i].operandDim, factor);
  }
}

static void broadcastVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const Type& x = op.operandType(0);
  const std::vector<MoveDim> map = broadcastMap(op, 0, 0);
  std::vector<std::int64_t> summed;
  std::vector<std::int64_t> kept;  // operand dims that the sum keeps, in result order
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i].operandDim < 0) {
      summed.push_back(static_cast<std::int64_t>(i));
    } else {
      kept.push_back(map[i].operandDim);
    }
  }
  ValueId gradient = sumTo(b, gradients[0], summed, x.dtype, op.range());
  // `kept` need not be sorted: bring the dims into operand order, then give the stretched ones their size 1 back.
  std::vector<std::int64_t> perm;
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] == dim) perm.push_back(static_cast<std::int64_t>(i));
    }
  }
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] == static_cast<std::int64_t>(i)) continue;
    gradient = b.transpose(gradient, perm, op.range());
    break;
  }
  if (static_cast<std::int64_t>(kept.size()) < x.rank()) gradient = b.reshape(gradient, x.shape, op.range());
  b.accumulate(0, gradient);
}

static constexpr AttrSpec kAttributes[] = {{"shape", AttrKind::Ints, false, AttrPlace::ResultShape},
                                           {"dims", AttrKind::Ints}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[3]",
     .ir = "%y = broadcast %x {dims = [1]} : f32[2, 3]",
     .given = "[1, 2, 3]",
     .expected = "[[1, 2, 3], [1, 2, 3]]",
     .differentiable = true},
    {.args = "%x: f32[3, 1]",
     .ir = "%y = broadcast %x {dims = [0, 1]} : f32[3, 2]",
     .given = "[[1], [2], [3]]",
     .expected = "[[1, 1], [2, 2], [3, 3]]",
     .differentiable = true},
    {.args = "%x: f32[7, 5]",
     .ir = "%y = broadcast %x {dims = [2, 0]} : f32[5, 3, 7]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: i32", .ir = "%y = broadcast %x {dims = []} : i32[5, 7]", .values = {-9, 9}},
};

constinit const OpDef kBroadcastOp = {
    .name = "broadcast",
    .doc = "dim i of `x` becomes dim `dims[i]` of `shape`; dims of size 1 stretch, new dims repeat",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferBroadcast,
    .factors = &broadcastFactors,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = Vjp{&broadcastVjp},
    .localize = SameOp{},
    .evaluate = &evaluateMove,
    .lower = LowerMove{&broadcastMap},
};

}  // namespace gshard
