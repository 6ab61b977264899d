// Equal collectives of one value move the same bytes twice. A pass of its own, because they arise only once reshards
// have become collectives. Local copies (all_slice, make_partial) are shared likewise: they cost memory traffic.
#include <map>

#include "ir/op_table.h"
#include "ir/text.h"
#include "partition/passes.h"

namespace gshard {

namespace {

bool isShardingChange(const Op& op) {
  const LocalizeRule& rule = *opDef(op.kind).localize;
  return std::holds_alternative<OwnTiles>(rule) && !op.operands.empty();
}

}  // namespace

void eliminateCommonCollectives(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    // Keyed by kind, operands and target sharding: attributes follow from the two shardings, but for the move of an
    // exchange.
    struct Key {
      OpKind kind;
      std::vector<ValueId> operands;
      Attributes attributes;
      std::string target;
    };
    std::vector<std::pair<Key, const Op*>> seen;
    std::vector<std::pair<ValueId, ValueId>> replaced;
    for (Op& op : function.ops) {
      for (ValueId& operand : op.operands) {
        for (const auto& [from, to] : replaced) {
          if (operand == from) operand = to;
        }
      }
      if (!isShardingChange(op)) continue;
      Key key{op.kind, op.operands, op.attributes, printSharding(module.mesh, *function.value(op.results[0]).sharding)};
      const auto same = std::find_if(seen.begin(), seen.end(), [&](const auto& item) {
        return item.first.kind == key.kind && item.first.operands == key.operands &&
               item.first.attributes == key.attributes && item.first.target == key.target;
      });
      if (same == seen.end()) {
        seen.emplace_back(std::move(key), &op);
        continue;
      }
      for (std::size_t r = 0; r < op.results.size(); ++r)
        replaced.emplace_back(op.results[r], same->second->results[r]);
    }
    for (const auto& [from, to] : replaced) replaceUses(function, from, to);
    const std::size_t ops = function.ops.size();
    eraseUnused(function);
    if (replaced.empty() && function.ops.size() == ops) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
