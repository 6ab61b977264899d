// argsort: where the elements of each sorted row come from.
#include "ir/sort_op.h"

namespace gshard {

static std::optional<ResultTypes> inferArgsort(const OpView& op, DiagSink& diag) {
  if (!checkSort(op, diag)) return std::nullopt;
  return ResultTypes{Type{DType::I32, op.operandType(0).shape}};
}

static void evaluateArgsort(const OpView& op, EvalFrame& frame) {
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  forEachSorted(op, frame, op.boolAttr("descending"), [&](Index index, const std::vector<std::int64_t>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      index[axis] = static_cast<std::int64_t>(i);
      frame.out().ints[static_cast<std::size_t>(placeOf(index, frame.out(), frame.resultTiles[0]))] = order[i];
    }
  });
}

static constexpr AttrSpec kAttributes[] = {{"axis", AttrKind::Int}, {"descending", AttrKind::Bool, true}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 4]",
     .ir = "%y = argsort %x {axis = 1} : i32[2, 4]",
     .given = "[[2, 3, 1, 2], [nan, 5, -7, 5]]",
     .expected = "[[2, 0, 3, 1], [2, 1, 3, 0]]"},
    {.args = "%x: i32[2, 4]",
     .ir = "%y = argsort %x {axis = 1, descending = true} : i32[2, 4]",
     .given = "[[2, 3, 1, 2], [7, 7, 7, 7]]",
     .expected = "[[1, 0, 3, 2], [0, 1, 2, 3]]"},
    {.args = "%x: f32[7, 5]", .ir = "%y = argsort %x {axis = 0} : i32[7, 5]", .values = {-9, 9}},
    {.args = "%x: i64[5, 7, 2]", .ir = "%y = argsort %x {axis = 1} : i32[5, 7, 2]", .values = {-3, 3}},
};

constinit const OpDef kArgsortOp = {
    .name = "argsort",
    .doc =
        "indices along `axis` that put `x` in ascending order, or descending; NaN is the largest, of equals the lowest "
        "index comes first",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferArgsort,
    .factors = &sortFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"an index does not change with the values"},
    .localize = SameOp{},
    .evaluate = &evaluateArgsort,
    .lower = LowerSort{},
};

}  // namespace gshard
