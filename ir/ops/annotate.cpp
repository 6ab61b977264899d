// annotate: the same value with what the source says of its sharding. Never merged or moved; removed after propagation.
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferAnnotate(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  if (const std::optional<std::string> fault = checkSharding(op.mesh(), x, op.annotationAttr("annotation").sharding)) {
    diag.emit(op.range(), diag::IrAttribute, "annotation", "annotate", "does not fit: " + *fault);
    return std::nullopt;
  }
  return ResultTypes{x};
}

static bool isParameter(const OpView& op) {
  for (const Argument& argument : op.function().arguments) {
    if (argument.value == op.op().operands[0]) return argument.kind == ArgumentKind::Parameter;
  }
  return false;
}

// The gradient of an intermediate may be split alike, but need not be; of a parameter, nothing is suggested.
static void annotateVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  if (isParameter(op)) {
    b.accumulate(0, gradients[0]);
    return;
  }
  Annotation annotation = op.annotationAttr("annotation");
  annotation.open = true;
  annotation.sharding.partial.clear();
  b.accumulate(0, b.create(OpKind::Annotate, {gradients[0]}, {{"annotation", annotation}}, op.range()));
}

static constexpr AttrSpec kAttributes[] = {{"annotation", AttrKind::AnnotationText}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[3]",
     .ir = "%y = annotate %x {annotation = {[_]} open} : f32[3]",
     .given = "[1, 2, 3]",
     .expected = "[1, 2, 3]",
     .differentiable = true},
};

constinit const OpDef kAnnotateOp = {
    .name = "annotate",
    .doc = "`x`, with the sharding that the source states for it",
    .operands = OperandSpec{"x"},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferAnnotate,
    .factors = &passThrough,
    .linearity = Joint{.over = anyReduction, .which = allOperands},
    .tails = TailsIgnored{},
    .gradient = Vjp{&annotateVjp},
    .localize = SameOp{},
    .evaluate = &evaluateIdentity,
    .lower = LowerAlias{},
};

}  // namespace gshard
