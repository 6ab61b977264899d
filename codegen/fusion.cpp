// Grouping of maps: see fusion.h.
#include "codegen/fusion.h"

#include <algorithm>
#include <numeric>

#include "ir/recompute.h"
#include "support/check.h"

namespace gshard {
namespace {

constexpr std::size_t kGroupOps = 40;  // beyond this, registers spill and compile time grows without gain
constexpr std::size_t kInlineOps = 48;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);
constexpr std::size_t kReducers = 2;  // reductions that may each recompute their input

struct Use {
  std::size_t op = 0;
  bool isIdentity = false;  // reads element for element
  bool mayInline = false;   // costs no repeated work
};

struct Edge {
  std::size_t user = 0;
  bool throughMemory = false;
};

class Fuser {
 public:
  Fuser(const FunctionViews& views, const std::vector<bool>& isProduct, bool enabled)
      : views_(views), function_(views.function()), isProduct_(isProduct), enabled_(enabled) {}

  FusionPlan run() {
    const std::size_t ops = function_.ops.size();
    plan_.group.assign(ops, -1);
    plan_.inlined.assign(ops, false);
    plan_.stored.assign(function_.values.size(), false);
    uses_.resize(ops);
    successors_.resize(ops);
    parent_.resize(ops);
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    members_.resize(ops);
    for (std::size_t i = 0; i < ops; ++i) members_[i] = {i};
    for (std::size_t i = 0; i < ops; ++i) collectUses(i);
    orderRecomputation();
    for (const Result& result : function_.results) store(result.value);
    for (const Argument& argument : function_.arguments) plan_.stored[argument.value.index] = true;
    // Views that somebody needs side by side are copied out by kernels of their own.
    for (std::size_t i = 0; i < ops; ++i) {
      const bool isView = views_.info(i).kind == OpClass::View && views_.storage(resultOf(i)) == resultOf(i);
      if (isView && plan_.stored[resultOf(i).index]) readWhole(i, resultOf(i));
    }
    inlinedGroups_.assign(ops, false);
    if (enabled_) {
      mergeGroups();
      for (std::size_t i = 0; i < ops; ++i) inlineCost_.push_back(std::max<std::size_t>(members_[i].size(), 1));
      for (std::size_t i = 0; i < ops; ++i) {
        if (isFusible(i) && find(i) == i) considerInlining(i);
      }
    }
    for (std::size_t i = 0; i < ops; ++i) {
      if (!isFusible(i)) continue;
      plan_.group[i] = static_cast<int>(find(i));
      plan_.inlined[i] = inlinedGroups_[find(i)];
      if (!plan_.inlined[i] && escapes(i)) plan_.stored[resultOf(i).index] = true;
    }
    return std::move(plan_);
  }

 private:
  ValueId resultOf(std::size_t op) const { return function_.ops[op].results[0]; }
  bool isFusible(std::size_t op) const {
    const OpClass kind = views_.info(op).kind;
    return kind == OpClass::Map || kind == OpClass::Take || kind == OpClass::Slots || kind == OpClass::WindowRead;
  }

  // `value` must lie dense in its storage.
  void store(ValueId value) { plan_.stored[views_.storage(value).index] = true; }

  // `throughMemory`: the user reads elements that other indices wrote, so it cannot share a kernel with the writer.
  void depend(std::size_t user, ValueId value, bool throughMemory) {
    for (;;) {
      value = views_.base(value, identityDims(views_.layout(value).rank())).value;
      const std::int64_t op = views_.definition(value);
      if (op < 0) return;
      const OpClass kind = views_.info(static_cast<std::size_t>(op)).kind;
      if (kind == OpClass::Literal) return;
      if (kind != OpClass::Alias) {
        successors_[static_cast<std::size_t>(op)].push_back({user, throughMemory});
        return;
      }
      throughMemory = true;
      value = function_.ops[static_cast<std::size_t>(op)].operands[0];
    }
  }

  void readDense(std::size_t user, ValueId value) {
    store(value);
    depend(user, value, true);
  }

  // The base of `value` is read by the kernel of `user`, whose loops have `iterations` steps; `map` is in terms of
  // them.
  void readThrough(std::size_t user, ValueId value, const DimMap& map, std::int64_t loops, std::int64_t iterations) {
    depend(user, value, false);
    const FunctionViews::Base base = views_.base(value, map);
    const std::int64_t op = views_.definition(base.value);
    if (op >= 0 && views_.info(static_cast<std::size_t>(op)).kind == OpClass::Literal) return;
    if (op < 0 || !isFusible(static_cast<std::size_t>(op))) {
      store(base.value);
      return;
    }
    Use use;
    use.op = user;
    use.isIdentity = isIdentity(base.map, loops) && views_.layout(base.value).rank() == loops;
    use.mayInline = iterations <= views_.layout(base.value).elements();
    uses_[static_cast<std::size_t>(op)].push_back(use);
  }

  void readWhole(std::size_t user, ValueId value) {
    const Layout& layout = views_.layout(value);
    readThrough(user, value, identityDims(layout.rank()), layout.rank(), layout.elements());
  }

  // Read once for all elements.
  void readScalar(std::size_t user, ValueId value) {
    const Layout& result = views_.layout(resultOf(user));
    readThrough(user, value, {}, result.rank(), result.elements());
  }

  void collectUses(std::size_t number) {
    const Op& op = function_.ops[number];
    const auto resultIsStored = [&] {
      for (const ValueId result : op.results) plan_.stored[result.index] = true;
    };
    switch (views_.info(number).kind) {
      case OpClass::View:
      case OpClass::Literal:
        return;
      case OpClass::Alias:
        store(op.operands[0]);
        return;
      case OpClass::Map: {
        const Layout& result = views_.layout(op.results[0]);
        for (const ValueId operand : op.operands) {
          readThrough(number, operand, broadcastDims(views_.layout(operand), result), result.rank(), result.elements());
        }
        return;
      }
      case OpClass::Take:
        readDense(number, op.operands[0]);
        readWhole(number, op.operands[1]);
        return;
      case OpClass::Slots:
        for (const ValueId operand : op.operands) readDense(number, operand);
        return;
      case OpClass::WindowRead:
        readDense(number, op.operands[0]);
        for (std::size_t i = 1; i < op.operands.size(); ++i) readScalar(number, op.operands[i]);
        return;
      case OpClass::WindowWrite:
        resultIsStored();
        for (std::size_t i = 0; i < 2; ++i) readWhole(number, op.operands[i]);
        for (std::size_t i = 2; i < op.operands.size(); ++i) readScalar(number, op.operands[i]);
        return;
      case OpClass::Scan:
        resultIsStored();
        readWhole(number, op.operands[0]);
        for (std::size_t i = 1; i < op.operands.size(); ++i) readDense(number, op.operands[i]);
        return;
      case OpClass::Reduce:
      case OpClass::ArgReduce:
      case OpClass::Placement:
      case OpClass::Scatter:
      case OpClass::Random:
        resultIsStored();
        for (const ValueId operand : op.operands) readWhole(number, operand);
        return;
      case OpClass::Contract:
        resultIsStored();
        for (const ValueId operand : op.operands) readOperand(number, operand);
        return;
      case OpClass::Sort:
      case OpClass::Route:
      case OpClass::Runtime:
        resultIsStored();
        for (const ValueId operand : op.operands) readDense(number, operand);
        return;
    }
  }

  // What backward recomputes runs after what stands before it, the cotangent that needs it: computed with the forward
  // ops whose results it reads, it would lie in memory from there on.
  void orderRecomputation() {
    std::size_t previous = kNone;
    for (std::size_t i = 0; i < function_.ops.size(); ++i) {
      const OpClass kind = views_.info(i).kind;
      if (kind == OpClass::View || kind == OpClass::Alias || kind == OpClass::Literal) continue;
      if (recomputeIdOf(function_.ops[i]) == 0)
        previous = i;
      else if (previous != kNone)
        successors_[previous].push_back({i, true});
    }
  }

  void readOperand(std::size_t number, ValueId operand) {
    const Op& op = function_.ops[number];
    depend(number, operand, true);
    const FunctionViews::Base base = views_.base(operand, identityDims(views_.layout(operand).rank()));
    const std::int64_t definition = views_.definition(base.value);
    const bool isLiteral =
        definition >= 0 && views_.info(static_cast<std::size_t>(definition)).kind == OpClass::Literal;
    // A loop nest that reads each element of this operand many times would compute it as often.
    std::int64_t largest = views_.layout(op.results[0]).elements();
    for (const ValueId other : op.operands) largest = std::max(largest, views_.layout(other).elements());
    if (!isProduct_[number]) {
      readThrough(number, operand, identityDims(views_.layout(operand).rank()), views_.layout(operand).rank(),
                  op.operands.size() == 1 ? views_.layout(operand).elements() : 2 * largest);
    } else {
      store(isLiteral ? operand : base.value);
    }
  }

  // ---- groups

  std::size_t find(std::size_t op) {
    while (parent_[op] != op) op = parent_[op] = parent_[parent_[op]];
    return op;
  }

  // What the backward pass makes of forward values alone would otherwise be made, and kept, as soon as they are there.
  bool samePass(std::size_t a, std::size_t b) const {
    return (function_.ops[a].phase == Phase::Forward) == (function_.ops[b].phase == Phase::Forward);
  }

  bool sameSpace(std::size_t a, std::size_t b) const {
    const Layout& left = views_.layout(resultOf(a));
    const Layout& right = views_.layout(resultOf(b));
    if (left.dims.size() != right.dims.size()) return false;
    for (std::size_t i = 0; i < left.dims.size(); ++i) {
      if (left.dims[i].extent != right.dims[i].extent) return false;
    }
    return true;
  }

  // Marks every group that comes after `from` and not after `to` in running order and depends on `from`. Groups stand
  // in an order in which each comes before its users, so that the search looks at nothing else. True if `to` depends on
  // one of them: then `from` and `to` cannot run as one.
  bool hasDetour(std::size_t from, std::size_t to) {
    ++search_;
    std::vector<std::size_t> pending;
    bool isFound = false;
    const auto follow = [&](std::size_t group) {
      for (const std::size_t op : members_[group]) {
        for (const Edge& edge : successors_[op]) {
          const std::size_t other = find(edge.user);
          if (other == group || place_[other] > place_[to]) continue;
          if (other == to) {
            isFound = isFound || group != from || edge.throughMemory;
            continue;
          }
          if (markedIn_[other] == search_) continue;
          markedIn_[other] = search_;
          pending.push_back(other);
        }
      }
    };
    follow(from);
    while (!pending.empty() && !isFound) {
      const std::size_t group = pending.back();
      pending.pop_back();
      follow(group);
    }
    return isFound;
  }

  // Joins `b` to `a`, which comes before it; the groups that the last search has marked move behind them.
  void merge(std::size_t a, std::size_t b) {
    const std::size_t begin = place_[a], end = place_[b];
    std::vector<std::size_t> before, after;
    for (std::size_t place = begin; place <= end; ++place) {
      const std::size_t group = order_[place];
      if (group == kNone || group == a || group == b) continue;
      (markedIn_[group] == search_ ? after : before).push_back(group);
    }
    const std::size_t keep = std::min(a, b), drop = std::max(a, b);
    parent_[drop] = keep;
    members_[keep].insert(members_[keep].end(), members_[drop].begin(), members_[drop].end());
    std::sort(members_[keep].begin(), members_[keep].end());
    members_[drop].clear();
    std::size_t place = begin;
    const auto put = [&](std::size_t group) {
      order_[place] = group;
      place_[group] = place++;
    };
    for (const std::size_t group : before) put(group);
    put(keep);
    for (const std::size_t group : after) put(group);
    while (place <= end) order_[place++] = kNone;
  }

  void mergeGroups() {
    order_.resize(function_.ops.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    place_ = order_;
    markedIn_.assign(order_.size(), 0);
    for (std::size_t i = 0; i < function_.ops.size(); ++i) {
      if (!isFusible(i)) continue;
      for (const Use& use : uses_[i]) {
        if (!use.isIdentity || !isFusible(use.op) || !samePass(i, use.op) || !sameSpace(i, use.op)) continue;
        const std::size_t a = find(i);
        const std::size_t b = find(use.op);
        if (a == b || members_[a].size() + members_[b].size() > kGroupOps || hasDetour(a, b)) continue;
        merge(a, b);
      }
    }
  }

  bool escapes(std::size_t op) {
    if (plan_.stored[resultOf(op).index]) return true;
    for (const Use& use : uses_[op]) {
      if (!isFusible(use.op) || find(use.op) != find(op)) return true;
    }
    return false;
  }

  void considerInlining(std::size_t group) {
    std::size_t escaping = 0;
    std::size_t root = group;
    for (const std::size_t op : members_[group]) {
      if (plan_.stored[resultOf(op).index]) return;
      if (escapes(op)) {
        ++escaping;
        root = op;
      }
    }
    if (escaping != 1 || inlineCost_[group] > kInlineOps) return;
    std::vector<std::size_t> readers;
    bool onlyReducers = true;
    for (const Use& use : uses_[root]) {
      if (isFusible(use.op) && find(use.op) == group) continue;
      if (!use.mayInline) return;
      readers.push_back(find(use.op));
      onlyReducers = onlyReducers && views_.info(use.op).kind == OpClass::Reduce;
    }
    if (readers.size() > 1 && !(onlyReducers && readers.size() <= kReducers)) return;
    for (const std::size_t reader : readers) {
      if (inlineCost_[reader] + inlineCost_[group] > 2 * kInlineOps) return;
    }
    for (const std::size_t reader : readers) inlineCost_[reader] += inlineCost_[group];
    inlinedGroups_[group] = true;
  }

  const FunctionViews& views_;
  const Function& function_;
  const std::vector<bool>& isProduct_;
  bool enabled_;
  FusionPlan plan_;
  std::vector<std::vector<Use>> uses_;  // per fusible op: who reads its result in a loop nest
  std::vector<std::vector<Edge>> successors_;
  std::vector<std::size_t> parent_;
  std::vector<std::vector<std::size_t>> members_;
  std::vector<std::size_t> order_, place_;  // groups in running order (kNone: gone), and the place of each
  std::vector<std::uint32_t> markedIn_;     // per group: the last search that marked it
  std::uint32_t search_ = 0;
  std::vector<bool> inlinedGroups_;
  std::vector<std::size_t> inlineCost_;  // ops that a kernel of the group computes, with what it inlines
};

}  // namespace

FusionPlan planFusion(const FunctionViews& views, const std::vector<bool>& isProduct, bool enabled) {
  return Fuser(views, isProduct, enabled).run();
}

}  // namespace gshard
