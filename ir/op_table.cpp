// The op table: one row per line of ops.def; names; when an op may run on pending reductions.
#include "ir/op_table.h"

#include <array>

#include "support/check.h"

namespace gshard {

namespace {
constexpr const OpDef* kTable[] = {
#define GSHARD_OP(kind, file) &k##kind##Op,
#include "ir/ops/ops.def"
#undef GSHARD_OP
};
constexpr OpKind kKinds[] = {
#define GSHARD_OP(kind, file) OpKind::kind,
#include "ir/ops/ops.def"
#undef GSHARD_OP
};

using Operands = std::span<const std::optional<Reduction>>;

bool selects(OperandMask mask, std::size_t operand) {
  return operand < 32 && (mask >> operand & 1) != 0;
}

std::optional<Reduction> acceptJoint(const Joint& rule, Operands operands) {
  std::optional<Reduction> common;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!selects(*rule.which, i)) {
      if (operands[i]) return std::nullopt;
      continue;
    }
    if (!operands[i] || (common && *common != *operands[i])) return std::nullopt;
    common = operands[i];
  }
  return common && (*rule.over & only(*common)) != 0 ? common : std::nullopt;
}

std::optional<Reduction> acceptSeparate(const Separate& rule, Operands operands) {
  std::optional<Reduction> one;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    if (one || !selects(*rule.which, i) || *operands[i] != Reduction::Sum) return std::nullopt;
    one = operands[i];
  }
  return one;
}

}  // namespace

const OpDef& opDef(OpKind kind) {
  return *kTable[static_cast<std::size_t>(kind)];
}

std::span<const OpKind> allOps() {
  return kKinds;
}

std::optional<OpKind> opFromName(std::string_view name) {
  for (const OpKind kind : kKinds) {
    if (*opDef(kind).name == name) return kind;
  }
  return std::nullopt;
}

bool isSpmdOnly(OpKind kind) {
  return std::holds_alternative<OwnTiles>(*opDef(kind).localize);
}

namespace {
struct AcceptVisitor {
  const OpView& op;
  Operands operands;
  std::optional<Reduction> operator()(const NotLinear&) const { return std::nullopt; }
  std::optional<Reduction> operator()(const Joint& rule) const { return acceptJoint(rule, operands); }
  std::optional<Reduction> operator()(const Separate& rule) const { return acceptSeparate(rule, operands); }
  std::optional<Reduction> operator()(const LinearityFn& rule) const { return std::visit(*this, rule.fn(op)); }
};
}  // namespace

std::optional<Reduction> acceptPartial(const OpView& op, std::span<const std::optional<Reduction>> operands) {
  return std::visit(AcceptVisitor{op, operands}, *opDef(op.op().kind).linearity);
}

bool isMove(OpKind kind) {
  return std::holds_alternative<LowerMove>(*opDef(kind).lower);
}

}  // namespace gshard
