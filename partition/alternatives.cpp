// A list is found again by its shape: collectives of one line, each reading the one before.
#include "partition/alternatives.h"

#include <algorithm>

#include "ir/op_table.h"
#include "partition/op_plan.h"

namespace gshard {

namespace {

// Keeps the global value and changes its sharding alone.
bool redistributes(const Op& op) {
  const OwnTiles* own = std::get_if<OwnTiles>(&*opDef(op.kind).localize);
  if (own == nullptr || op.operands.size() != 1 || op.results.size() != 1) return false;
  if (*own->work == TileWork::Redistribute) return true;
  const Attribute* move = op.attributes.find("move");
  return move != nullptr && std::get<std::string>(*move).empty();
}

bool continues(const Op& op, const Op& next) {
  return redistributes(op) && redistributes(next) && next.operands[0] == op.results[0] && next.range == op.range;
}

}  // namespace

std::vector<RejectedPlan> rejectedAt(const Module& module, const Function& function, std::size_t index) {
  const Op& first = function.ops[index];
  if (!redistributes(first)) return {};
  for (std::size_t i = 0; i < index; ++i) {
    if (continues(function.ops[i], first)) return {};
  }
  const Op* last = &first;
  std::vector<OpKind> kinds = {first.kind};
  for (std::size_t i = index + 1; i < function.ops.size(); ++i) {
    if (!continues(*last, function.ops[i])) continue;
    last = &function.ops[i];
    kinds.push_back(last->kind);
  }
  const Value& from = function.value(first.operands[0]);
  ReshardCosts costs(module.mesh);
  const ReshardPlan& plan = costs.plan(from.type, *from.sharding, *function.value(last->results[0]).sharding);
  // A later pass may have changed the list: then these are not its alternatives.
  const bool same = std::equal(kinds.begin(), kinds.end(), plan.steps.begin(), plan.steps.end(),
                               [](OpKind kind, const ReshardStep& step) { return kind == step.kind; });
  return same ? plan.rejected : std::vector<RejectedPlan>{};
}

}  // namespace gshard
