// What the ops of Mixture of Experts share. A route says where tokens go: `expert` and `slot`, i32 [G, S, k], of each
// choice (slot -1: dropped), and the inverse, `source`, i32 [G, E, C]: which choice s * k + j fills a slot, -1 where
// none does. All three are whole over experts, slots and choices, whatever is split around them. moe_dispatch and
// moe_gather move rows to slots and back and are each other's gradient; moe_combine adds what comes back.
#pragma once

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

// Operands of the route in each of these ops, after the tensor that is moved; then the weight, where there is one.
constexpr std::size_t kSourceOperand = 1, kExpertOperand = 2, kSlotOperand = 3, kWeightOperand = 4;

struct RouteSizes {
  std::int64_t groups = 0, tokens = 0, choices = 0, experts = 0, capacity = 0;
};
RouteSizes routeSizes(const OpView& op);
// Shapes and dtypes of the three; reports.
bool checkRoute(const OpView& op, DiagSink& diag);
// Of operand 0, and of the weight if there is one: reports another type.
bool checkRouteOperand(const OpView& op, DiagSink& diag, std::size_t operand, const Type& wanted);

// The factors of the route's operands, with those of G and S that the moved rows have, too.
struct RouteFactors {
  int groups = 0, tokens = 0;
};
RouteFactors routeFactors(const OpView& op, FactorBuilder& factors, FactorKind tokenKind);

// Of moe_gather and moe_combine: operand 0 holds numbers [E, G, C, M] for the slots of the route; reports.
bool checkSlots(const OpView& op, DiagSink& diag);
struct SlotFactors {
  int groups = 0, tokens = 0, width = 0;
};
SlotFactors slotFactors(const OpView& op, FactorBuilder& factors);
bool checkNumbers(const OpView& op, DiagSink& diag);  // operand 0 is not of bools; reports

// Where choice (g, s, j), global indices, lies among the slots; nothing when it is dropped.
struct ExpertSlot {
  std::int64_t expert = 0, slot = 0;
};
std::optional<ExpertSlot> slotOf(const OpView& op, const EvalFrame& frame, std::int64_t g, std::int64_t s,
                                 std::int64_t j);
bool isInside(const std::vector<Tile>& tiles, const Index& global);

}  // namespace gshard
