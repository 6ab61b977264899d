// group-pending-sums: a sum of many terms completes what is pending on each. Terms that are pending over the same axes
// are added first, so that each set of axes costs one completion: the squares of all gradients in a global norm, the
// contributions of several uses of a weight. A pass of its own, since it needs shardings, and partition must find the
// sums in the order in which it completes them.
#include <algorithm>

#include "ir/op_signature.h"
#include "ir/rewrite.h"
#include "partition/factor_axes.h"
#include "partition/passes.h"

namespace gshard {

namespace {

using PendingSet = std::vector<PartialAxis>;  // sorted by axis

bool has(const PendingSet& set, const AxisRef& axis) {
  return std::any_of(set.begin(), set.end(), [&](const PartialAxis& each) { return overlaps(each.axis, axis); });
}

// What begins in ops, by signature: equal layers are looked at once.
struct KnownBeginnings {
  ValueNumbers values{/*sharded=*/true};
  KeyNumbers signatures;
  std::vector<PendingSet> begin;  // by number of signature
};

// What each value of a function will be pending over, as far as the shardings that it should have tell.
class ExpectedPending {
 public:
  ExpectedPending(const Module& module, const Function& function, KnownBeginnings& known)
      : module_(module), function_(function), known_(known), signatures_(function, known.values) {
    pending_.resize(function.values.size());
    for (const Op& op : function.ops) follow(op);
  }

  const PendingSet& of(ValueId value) const { return pending_[value.index]; }

 private:
  void follow(const Op& op) {
    const OpView view(module_, function_, op);
    signature_.clear();
    signatures_.add(signature_, op);
    const std::size_t number = known_.signatures.of(signature_);
    if (number == known_.begin.size()) begin(view, factorsOf(view), known_.begin.emplace_back());
    PendingSet result = known_.begin[number];
    pass(view, result);
    std::sort(result.begin(), result.end(), [](const PartialAxis& a, const PartialAxis& b) { return a.axis < b.axis; });
    for (const ValueId value : op.results) pending_[value.index] = result;
  }

  void begin(const OpView& view, const OpFactors& factors, PendingSet& result) const {
    for (std::size_t i = 0; i < factors.operands.size(); ++i) {
      const OpFactors::DimFactors& dims = factors.operands[i];
      const Sharding& sharding = *function_.value(view.op().operands[i]).sharding;
      for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        if (dims[dim].empty() || sharding.dims[dim].empty()) continue;
        const std::vector<AxisList> cut =
            cutAtFactors(factors, dims[dim], view.operandType(i).shape[dim], sharding.dims[dim]);
        for (std::size_t k = 0; k < cut.size(); ++k) {
          const Factor& factor = factors.factors[static_cast<std::size_t>(dims[dim][k])];
          if (factor.kind != FactorKind::Reduce && factor.kind != FactorKind::Lookup) continue;
          for (const AxisRef& axis : cut[k]) {
            if (!has(result, axis)) result.push_back({axis, factor.reduction});
          }
        }
      }
    }
  }

  void pass(const OpView& view, PendingSet& result) const {
    const std::vector<ValueId>& operands = view.op().operands;
    for (const ValueId operand : operands) {
      for (const PartialAxis& each : of(operand)) {
        if (has(result, each.axis)) continue;
        std::vector<std::optional<Reduction>> reductions;
        for (const ValueId other : operands) {
          const PendingSet& set = of(other);
          const auto same =
              std::find_if(set.begin(), set.end(), [&](const PartialAxis& own) { return own.axis == each.axis; });
          reductions.push_back(same == set.end() ? std::nullopt : std::optional(same->reduction));
        }
        if (const auto kept = acceptPartial(view, reductions)) result.push_back({each.axis, *kept});
      }
    }
  }

  const Module& module_;
  const Function& function_;
  KnownBeginnings& known_;
  OpSignatures signatures_;
  Key signature_;  // of the op at hand
  std::vector<PendingSet> pending_;
};

class Grouping {
 public:
  Grouping(const Module& module, Function& function, KnownBeginnings& known)
      : function_(function),
        expected_(module, function, known),
        uses_(useCounts(function)),
        definitions_(definitionsOf(function)),
        users_(usersOf(function)) {}

  // Whether any sum was written anew.
  bool run() {
    bool isChanged = false;
    const std::size_t count = function_.ops.size();
    std::vector<bool> dropped(count, false);
    std::vector<std::vector<Op>> instead(count);
    std::vector<SoFar> soFar(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!isAddition(i)) continue;
      soFar[i] = addUp(i, soFar);
      if (isInner(i)) continue;
      const int completions = soFar[i].completions + (soFar[i].pending.empty() ? 0 : 1);
      const Sum sum = collect(i);
      const Groups groups = groupsOf(sum.terms);
      if (completions <= groups.pending) continue;
      for (const std::size_t addition : sum.additions) dropped[addition] = true;
      instead[i] = additionsOf(function_.ops[i], groups);
      isChanged = true;
    }
    if (!isChanged) return false;
    std::vector<Op> ops;
    for (std::size_t i = 0; i < count; ++i) {
      std::move(instead[i].begin(), instead[i].end(), std::back_inserter(ops));
      if (!dropped[i]) ops.push_back(std::move(function_.ops[i]));
    }
    function_.ops = std::move(ops);
    return true;
  }

 private:
  struct SoFar {  // a sum as written, up to an addition
    PendingSet pending;
    int completions = 0;
  };
  struct Sum {
    std::vector<ValueId> terms;  // in order
    std::vector<std::size_t> additions;
  };
  struct Groups {
    std::vector<std::pair<PendingSet, std::vector<ValueId>>> all;  // by first term
    int pending = 0;                                               // those that have something to complete
  };

  // Of equal types: a term that is stretched is not added before it is.
  bool isAddition(std::size_t index) const {
    const Op& op = function_.ops[index];
    if (!gshard::isAddition(op)) return false;
    const Type& type = function_.type(op.results[0]);
    return function_.type(op.operands[0]) == type && function_.type(op.operands[1]) == type;
  }

  // Is it a term of a larger sum, and of nothing else?
  bool isInner(std::size_t index) const {
    const ValueId result = function_.ops[index].results[0];
    const std::vector<std::int64_t>& users = users_[result.index];
    return uses_[result.index] == 1 && users.size() == 1 && isAddition(static_cast<std::size_t>(users[0]));
  }

  bool isInnerSum(ValueId value) const {
    const std::int64_t definition = definitions_[value.index];
    return definition >= 0 && isAddition(static_cast<std::size_t>(definition)) &&
           isInner(static_cast<std::size_t>(definition));
  }

  SoFar addUp(std::size_t index, const std::vector<SoFar>& earlier) const {
    SoFar result;
    std::vector<PendingSet> sides;
    for (const ValueId operand : function_.ops[index].operands) {
      if (!isInnerSum(operand)) {
        sides.push_back(expected_.of(operand));
        continue;
      }
      const SoFar& inner = earlier[static_cast<std::size_t>(definitions_[operand.index])];
      sides.push_back(inner.pending);
      result.completions += inner.completions;
    }
    for (const PartialAxis& each : sides[0]) {
      if (std::find(sides[1].begin(), sides[1].end(), each) != sides[1].end()) result.pending.push_back(each);
    }
    for (const PendingSet& side : sides) result.completions += side.size() > result.pending.size() ? 1 : 0;
    return result;
  }

  // Without recursion: a program may hold a sum of very many terms.
  Sum collect(std::size_t root) const {
    Sum sum;
    std::vector<ValueId> open = {function_.ops[root].results[0]};
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (value != function_.ops[root].results[0] && !isInnerSum(value)) {
        sum.terms.push_back(value);
        continue;
      }
      const auto addition = static_cast<std::size_t>(definitions_[value.index]);
      sum.additions.push_back(addition);
      open.push_back(function_.ops[addition].operands[1]);
      open.push_back(function_.ops[addition].operands[0]);
    }
    return sum;
  }

  Groups groupsOf(const std::vector<ValueId>& terms) const {
    Groups groups;
    for (const ValueId term : terms) {
      const PendingSet& set = expected_.of(term);
      const auto same =
          std::find_if(groups.all.begin(), groups.all.end(), [&](const auto& group) { return group.first == set; });
      if (same != groups.all.end()) {
        same->second.push_back(term);
        continue;
      }
      groups.all.push_back({set, {term}});
      groups.pending += set.empty() ? 0 : 1;
    }
    return groups;
  }

  std::vector<Op> additionsOf(const Op& root, const Groups& groups) {
    std::vector<Op> ops;
    const auto add = [&](ValueId a, ValueId b) {
      Op op = root;
      op.operands = {a, b};
      op.results = {function_.addValue(function_.value(root.results[0]))};
      ops.push_back(op);
      return op.results[0];
    };
    ValueId total;
    for (const auto& [set, terms] : groups.all) {
      ValueId sum = terms.front();
      for (std::size_t i = 1; i < terms.size(); ++i) sum = add(sum, terms[i]);
      total = total.known() ? add(total, sum) : sum;
    }
    ops.back().results = root.results;
    return ops;
  }

  Function& function_;
  ExpectedPending expected_;
  std::vector<std::int64_t> uses_, definitions_;
  std::vector<std::vector<std::int64_t>> users_;
};

}  // namespace

void groupPendingSums(Module& module, PassContext& context) {
  KnownBeginnings known;
  for (Function& function : module.functions) {
    if (!Grouping(module, function, known).run()) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
