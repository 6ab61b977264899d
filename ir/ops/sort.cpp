// sort: the elements of each row along one axis in order.
#include "ir/sort_op.h"

namespace gshard {

static std::optional<ResultTypes> inferSort(const OpView& op, DiagSink& diag) {
  if (!checkSort(op, diag)) return std::nullopt;
  return ResultTypes{op.operandType(0)};
}

static void sortVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const Type x = op.operandType(0);
  const std::int64_t axis = op.intAttr("axis");
  const ValueId places = b.create(OpKind::Argsort, {op.op().operands[0]},
                                  {{"axis", axis}, {"descending", op.boolAttr("descending")}}, op.range());
  b.accumulate(0, scatterAlong(b, gradients[0], places, x, axis, op.range()));
}

static void evaluateSort(const OpView& op, EvalFrame& frame) {
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  forEachSorted(op, frame, op.boolAttr("descending"), [&](Index index, const std::vector<std::int64_t>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      index[axis] = order[i];
      const std::int64_t from = placeOf(index, frame.in(0), frame.operandTiles[0]);
      index[axis] = static_cast<std::int64_t>(i);
      copyElement(frame.in(0), from, frame.out(), placeOf(index, frame.out(), frame.resultTiles[0]));
    }
  });
}

static constexpr AttrSpec kAttributes[] = {{"axis", AttrKind::Int}, {"descending", AttrKind::Bool, true}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3]",
     .ir = "%y = sort %x {axis = 1} : f32[2, 3]",
     .given = "[[2, 3, 1], [-6, 5, -7]]",
     .expected = "[[1, 2, 3], [-7, -6, 5]]",
     .differentiable = true},
    {.args = "%x: f32[5]",
     .ir = "%y = sort %x {axis = 0} : f32[5]",
     .given = "[nan, 0, inf, -0, -inf]",
     .expected = "[-inf, 0, -0, inf, nan]"},
    {.args = "%x: f32[5]",
     .ir = "%y = sort %x {axis = 0, descending = true} : f32[5]",
     .given = "[-0, 1, nan, 0, inf]",
     .expected = "[nan, inf, 1, -0, 0]"},
    {.args = "%x: f32[5, 7]",
     .ir = "%y = sort %x {axis = 0, descending = true} : f32[5, 7]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: f64[2, 5, 3]",
     .ir = "%y = sort %x {axis = 1} : f64[2, 5, 3]",
     .values = {-9, 9},
     .differentiable = true},
    {.args = "%x: i32[7, 11]", .ir = "%y = sort %x {axis = 1} : i32[7, 11]", .values = {-3, 3}},
    {.args = "%x: i64[9]", .ir = "%y = sort %x {axis = 0, descending = true} : i64[9]", .values = {-90, 90}},
    {.args = "%x: u8[9]", .ir = "%y = sort %x {axis = 0} : u8[9]", .values = {100, 200}},
    {.args = "%x: i32[3, 0]", .ir = "%y = sort %x {axis = 1} : i32[3, 0]", .values = {-9, 9}},
};

constinit const OpDef kSortOp = {
    .name = "sort",
    .doc = "`x` in ascending order along `axis`, or descending; NaN is the largest, equals keep their order",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferSort,
    .factors = &sortFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = Vjp{&sortVjp},
    .localize = SameOp{},
    .evaluate = &evaluateSort,
    .lower = LowerSort{},
};

}  // namespace gshard
