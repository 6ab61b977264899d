// Shared rules of route, moe_dispatch, moe_gather and moe_combine; see moe_op.h.
#include "ir/moe_op.h"

namespace gshard {

RouteSizes routeSizes(const OpView& op) {
  const Type& source = op.operandType(kSourceOperand);
  const Type& expert = op.operandType(kExpertOperand);
  return {expert.shape[0], expert.shape[1], expert.shape[2], source.shape[1], source.shape[2]};
}

bool checkRouteOperand(const OpView& op, DiagSink& diag, std::size_t operand, const Type& wanted) {
  if (op.operandType(operand) == wanted) return true;
  diag.emit(op.range(), diag::RouteOperand, std::string(*opDef(op.op().kind).name), printType(op.operandType(operand)),
            printType(wanted))
      .label(op.operandRange(operand), "this operand");
  return false;
}

bool checkRoute(const OpView& op, DiagSink& diag) {
  const Type& source = op.operandType(kSourceOperand);
  const Type& expert = op.operandType(kExpertOperand);
  for (const std::size_t operand : {kSourceOperand, kExpertOperand}) {
    const Type& type = op.operandType(operand);
    if (type.dtype == DType::I32 && type.rank() == 3) continue;
    diag.emit(op.range(), diag::RouteOperand, std::string(*opDef(op.op().kind).name), printType(type),
              std::string("i32 of three dimensions"))
        .label(op.operandRange(operand), "this operand");
    return false;
  }
  if (!checkRouteOperand(op, diag, kSlotOperand, expert)) return false;
  return checkRouteOperand(op, diag, kSourceOperand,
                           Type{DType::I32, {expert.shape[0], source.shape[1], source.shape[2]}});
}

RouteFactors routeFactors(const OpView& op, FactorBuilder& factors, FactorKind tokenKind) {
  const RouteSizes sizes = routeSizes(op);
  RouteFactors made;
  made.groups = factors.add(FactorKind::Pass, sizes.groups);
  made.tokens = factors.add(tokenKind, sizes.tokens);
  const int choices = factors.add(FactorKind::Whole, sizes.choices, "", "the choices of a token stand side by side");
  const std::string reason = "any part may look for any slot";
  factors.operandDim(kSourceOperand, 0, made.groups);
  factors.operandDim(kSourceOperand, 1, factors.add(FactorKind::Whole, sizes.experts, "", reason));
  factors.operandDim(kSourceOperand, 2, factors.add(FactorKind::Whole, sizes.capacity, "", reason));
  for (std::size_t operand = kExpertOperand; operand < op.operandCount(); ++operand) {
    factors.operandDim(operand, 0, made.groups);
    factors.operandDim(operand, 1, made.tokens);
    factors.operandDim(operand, 2, choices);
  }
  return made;
}

bool checkNumbers(const OpView& op, DiagSink& diag) {
  const Type& moved = op.operandType(0);
  if (moved.dtype != DType::Bool) return true;
  diag.emit(op.range(), diag::DtypeNotAccepted, std::string(*opDef(op.op().kind).name), "numbers", printType(moved))
      .label(op.operandRange(0), "this operand");
  return false;
}

bool checkSlots(const OpView& op, DiagSink& diag) {
  if (!checkRoute(op, diag)) return false;
  const RouteSizes sizes = routeSizes(op);
  const Type& y = op.operandType(0);
  const std::int64_t width = y.rank() == 4 ? y.shape[3] : 0;
  return checkRouteOperand(op, diag, 0, Type{y.dtype, {sizes.experts, sizes.groups, sizes.capacity, width}}) &&
         checkNumbers(op, diag);
}

SlotFactors slotFactors(const OpView& op, FactorBuilder& factors) {
  const RouteSizes sizes = routeSizes(op);
  const RouteFactors route = routeFactors(op, factors, FactorKind::Pass);
  const int width = factors.add(FactorKind::Pass, op.operandType(0).shape[3]);
  factors.operandDim(0, 0, factors.add(FactorKind::Lookup, sizes.experts));
  factors.operandDim(0, 1, route.groups);
  factors.operandDim(0, 2, factors.add(FactorKind::Lookup, sizes.capacity));
  factors.operandDim(0, 3, width);
  return {route.groups, route.tokens, width};
}

std::optional<ExpertSlot> slotOf(const OpView& op, const EvalFrame& frame, std::int64_t g, std::int64_t s,
                                 std::int64_t j) {
  const RouteSizes sizes = routeSizes(op);
  const auto at = [&](std::size_t operand) {
    const Tensor& tensor = frame.in(operand);
    return tensor.ints[static_cast<std::size_t>(placeOf({g, s, j}, tensor, frame.operandTiles[operand]))];
  };
  const ExpertSlot slot{at(kExpertOperand), at(kSlotOperand)};
  const bool isKept = slot.expert >= 0 && slot.expert < sizes.experts && slot.slot >= 0 && slot.slot < sizes.capacity;
  return isKept ? std::optional(slot) : std::nullopt;
}

bool isInside(const std::vector<Tile>& tiles, const Index& global) {
  for (std::size_t i = 0; i < global.size(); ++i) {
    if (global[i] < tiles[i].offset || global[i] >= tiles[i].offset + tiles[i].live) return false;
  }
  return true;
}

}  // namespace gshard
