// The minimal cut between forward and backward, and the copies: see recompute.h.
#include "codegen/recompute.h"

#include <algorithm>

#include "codegen/lowering.h"
#include "codegen/min_cut.h"
#include "ir/scalar_functions.h"
#include "support/check.h"

namespace gshard {
namespace {

// Below this share of the largest value that is kept, bytes count as nothing: a row's mean is kept as it is.
constexpr std::int64_t kSmallShare = 64;

// A chain of maps as long as this is kept at its end: it would be work that no kernel does beside.
constexpr int kLongestChain = 24;

enum class Need : std::uint8_t {
  Nothing,
  Elements,
  Buffer
};  // of a value by later phases: through a map, or in memory

class Recomputation {
 public:
  explicit Recomputation(const FunctionViews& views) : views_(views), function_(views.function()) {}

  std::optional<Function> run() {
    const auto isBackward = [](const Op& op) { return op.phase == Phase::Backward; };
    if (std::none_of(function_.ops.begin(), function_.ops.end(), isBackward)) return std::nullopt;
    findNeeds();
    findRepeatable();
    cut();
    return copied();
  }

 private:
  std::int64_t definition(ValueId value) const { return views_.definition(value); }
  bool isLate(std::size_t op) const { return function_.ops[op].phase != Phase::Forward; }
  bool isEarly(ValueId value) const {
    return definition(value) < 0 || !isLate(static_cast<std::size_t>(definition(value)));
  }
  bool isSeenThrough(std::size_t op) const {
    return views_.info(op).kind == OpClass::View || views_.info(op).kind == OpClass::Alias;
  }

  void findRepeatable() {
    mayRepeat_.assign(function_.values.size(), false);
    std::vector<int> chain(function_.values.size(), 0);  // maps since the last value that has to be kept
    for (std::size_t i = 0; i < function_.ops.size(); ++i) {
      const Op& op = function_.ops[i];
      const bool isView = isSeenThrough(i);
      if (isLate(i) || (!isView && !isHarmlessMap(i))) continue;
      int longest = 0;
      for (const ValueId operand : op.operands) longest = std::max(longest, chain[operand.index]);
      if (!isView && ++longest > kLongestChain) continue;
      chain[op.results[0].index] = longest;
      mayRepeat_[op.results[0].index] = isView || needs_[op.results[0].index] != Need::Buffer;
    }
  }

  bool isHarmlessMap(std::size_t op) const {
    if (views_.info(op).kind != OpClass::Map) return false;
    // What may be a run-time error is looked for once.
    const std::optional<ScalarFn> fn = scalarFromName(views_.view(op).stringAttr("fn"));
    return fn && !mayFail(*fn, views_.layout(function_.ops[op].operands[0]).dtype);
  }

  // What the users of later phases ask of each value, through views.
  void findNeeds() {
    needs_.assign(function_.values.size(), Need::Nothing);
    const std::vector<bool> products = chooseProducts(views_);
    for (std::size_t i = function_.ops.size(); i-- > 0;) {
      const Op& op = function_.ops[i];
      if (!isLate(i) && !isSeenThrough(i)) continue;
      for (std::size_t o = 0; o < op.operands.size(); ++o) {
        Need& need = needs_[op.operands[o].index];
        need = std::max(need, needOf(i, o, products[i]));
      }
    }
    isResult_.assign(function_.values.size(), false);
    for (const Result& result : function_.results) {
      isResult_[result.value.index] = true;
      if (isEarly(result.value)) needBuffer(result.value);
    }
    for (std::size_t i = function_.ops.size(); i-- > 0;) {
      // A view that has to lie in memory is what lies there, or copied from it.
      if (isSeenThrough(i) && needs_[function_.ops[i].results[0].index] == Need::Buffer)
        needBuffer(function_.ops[i].operands[0]);
    }
  }

  void needBuffer(ValueId value) { needs_[value.index] = Need::Buffer; }

  Need needOf(std::size_t number, std::size_t operand, bool isProduct) const {
    switch (views_.info(number).kind) {
      case OpClass::View:
      case OpClass::Alias:
        return needs_[function_.ops[number].results[0].index];
      case OpClass::Literal:
      case OpClass::Random:
        return Need::Nothing;
      case OpClass::Map:
      case OpClass::Reduce:
      case OpClass::ArgReduce:
      case OpClass::Placement:
        return Need::Elements;
      case OpClass::Take:
      case OpClass::WindowRead:
        return operand == 0 ? Need::Buffer : Need::Elements;
      case OpClass::Scan:
        return operand == 0 ? Need::Elements : Need::Buffer;
      case OpClass::Scatter:
      case OpClass::WindowWrite:
        return Need::Elements;
      case OpClass::Contract:
        return isProduct ? Need::Buffer : Need::Elements;
      case OpClass::Slots:
      case OpClass::Sort:
      case OpClass::Route:
      case OpClass::Runtime:
        return Need::Buffer;
    }
    GSHARD_UNREACHABLE("OpClass");
  }

  // ---- what is kept

  static std::int32_t entry(ValueId value) { return static_cast<std::int32_t>(2 + 2 * value.index); }
  static std::int32_t exit(ValueId value) { return entry(value) + 1; }

  void cut() {
    std::int64_t largest = 0;
    for (std::uint32_t v = 0; v < function_.values.size(); ++v) {
      if (isEarly(ValueId{v}) && needs_[v] != Need::Nothing)
        largest = std::max(largest, views_.layout(ValueId{v}).bytes());
    }
    MinCut graph(2 + 2 * function_.values.size());
    for (std::uint32_t v = 0; v < function_.values.size(); ++v) {
      const ValueId value{v};
      if (!isEarly(value)) continue;
      if (needs_[v] != Need::Nothing) graph.addEdge(exit(value), MinCut::kSink, MinCut::kEndless);
      const std::int64_t at = definition(value);
      if (at >= 0 && views_.info(static_cast<std::size_t>(at)).kind == OpClass::Literal) continue;
      graph.addEdge(entry(value), exit(value), costOf(value, largest));
      if (!mayRepeat_[v]) {
        graph.addEdge(MinCut::kSource, entry(value), MinCut::kEndless);
        continue;
      }
      for (const ValueId operand : function_.ops[static_cast<std::size_t>(at)].operands)
        graph.addEdge(exit(operand), entry(value), MinCut::kEndless);
    }
    sinkSide_ = graph.sinkSide();
  }

  // Of keeping it: a view is no memory of its own, arguments and results lie there anyway.
  std::int64_t costOf(ValueId value, std::int64_t largest) const {
    if (definition(value) < 0 || isResult_[value.index]) return 0;
    if (isSeenThrough(static_cast<std::size_t>(definition(value)))) return MinCut::kEndless;
    const std::int64_t bytes = views_.layout(value).bytes();
    return bytes * kSmallShare < largest ? 0 : bytes;
  }

  bool isRepeated(ValueId value) const {
    return mayRepeat_[value.index] && sinkSide_[static_cast<std::size_t>(entry(value))];
  }

  // ---- the copies

  std::optional<Function> copied() {
    const auto isRead = [&](std::size_t op) {
      const std::vector<ValueId>& operands = function_.ops[op].operands;
      return isLate(op) &&
             std::any_of(operands.begin(), operands.end(), [&](ValueId value) { return isRepeated(value); });
    };
    bool any = false;
    for (std::size_t i = 0; i < function_.ops.size() && !any; ++i) any = isRead(i);
    if (!any) return std::nullopt;
    again_.assign(function_.values.size(), ValueId{});
    result_ = function_;
    std::vector<Op> ops = std::move(result_.ops);
    result_.ops.clear();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (isLate(i)) {
        for (ValueId& operand : ops[i].operands) operand = repeated(operand, ops[i]);
      }
      result_.ops.push_back(std::move(ops[i]));
    }
    return std::move(result_);
  }

  // The value to read instead of `value` by `user`, before which missing copies are put, operands first.
  ValueId repeated(ValueId value, const Op& user) {
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const ValueId next = open.back();
      if (again_[next.index].known()) {
        open.pop_back();
        continue;
      }
      if (!isRepeated(next)) {
        again_[next.index] = next;
        open.pop_back();
        continue;
      }
      const Op& op = function_.ops[static_cast<std::size_t>(definition(next))];
      const std::size_t before = open.size();
      for (const ValueId operand : op.operands) {
        if (!again_[operand.index].known()) open.push_back(operand);
      }
      if (open.size() > before) continue;
      open.pop_back();
      again_[next.index] = copyOf(op, next, user);
    }
    return again_[value.index];
  }

  ValueId copyOf(const Op& op, ValueId value, const Op& user) {
    Op copy = op;
    bool differs = !isSeenThrough(static_cast<std::size_t>(definition(value)));
    for (ValueId& operand : copy.operands) {
      differs = differs || again_[operand.index] != operand;
      operand = again_[operand.index];
    }
    if (!differs) return value;  // a view of what is kept
    copy.phase = user.phase;
    const ValueId made = result_.addValue(function_.value(value));
    copy.results = {made};
    result_.ops.push_back(std::move(copy));
    return made;
  }

  const FunctionViews& views_;
  const Function& function_;
  std::vector<Need> needs_;  // per value, by later phases
  std::vector<bool> isResult_, mayRepeat_;
  std::vector<bool> sinkSide_;  // per node of the cut
  std::vector<ValueId> again_;  // per value: itself if it is kept, else its copy
  Function result_;
};

}  // namespace

std::optional<Function> recomputeInBackward(const FunctionViews& views) {
  return Recomputation(views).run();
}

}  // namespace gshard
