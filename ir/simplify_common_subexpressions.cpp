// eliminate-common-subexpressions: two ops of one kind with the same operands and attributes give the same values.
// Operands of commutative functions are compared in either order. Annotations stay apart: each is a place where a user
// said something.
#include <algorithm>
#include <bit>
#include <utility>

#include "ir/passes.h"
#include "ir/rewrite.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace gshard {

namespace {

// Deterministic across runs: only for finding candidates, which are then compared in full.
class Hash {
 public:
  void add(std::uint64_t word) { state_ = (state_ ^ word) * 0x9e3779b97f4a7c15u + (state_ >> 29); }
  void add(std::string_view text) {
    std::uint64_t word = text.size();
    for (std::size_t i = 0; i < text.size(); ++i) {
      word = word << 8 | static_cast<unsigned char>(text[i]);
      if (i % 4 == 3) add(std::exchange(word, 0));
    }
    add(word);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243f6a8885a308d3u;
};

void addAttribute(Hash& hash, const Attribute& attribute) {
  std::visit(Overloaded{[&](std::int64_t v) { hash.add(static_cast<std::uint64_t>(v)); },
                        [&](double v) { hash.add(std::bit_cast<std::uint64_t>(v)); },
                        [&](bool v) { hash.add(std::uint64_t{v}); }, [&](const std::string& v) { hash.add(v); },
                        [&](const std::vector<std::int64_t>& v) {
                          hash.add(v.size());
                          for (const std::int64_t item : v) hash.add(static_cast<std::uint64_t>(item));
                        },
                        [&](DType v) { hash.add(static_cast<std::uint64_t>(v)); },
                        [&](const std::vector<AxisRef>& v) { hash.add(v.size()); }, [&](const Annotation&) {},
                        [&](const Literal& v) {
                          for (const std::int64_t item : v.ints) hash.add(static_cast<std::uint64_t>(item));
                          for (const double item : v.floats) hash.add(std::bit_cast<std::uint64_t>(item));
                        }},
             attribute);
}

bool isCommutative(const Op& op) {
  if (op.kind != OpKind::Map || op.operands.size() != 2) return false;
  constexpr std::string_view kCommutative[] = {"add", "and", "eq", "maximum", "minimum", "mul", "ne", "or"};
  return std::binary_search(std::begin(kCommutative), std::end(kCommutative), fnOf(op));
}

// The ops of a function that were kept so far, by a hash of what they compute.
class KeptOps {
 public:
  explicit KeptOps(const Function& function)
      : function_(function), slots_(std::bit_ceil(2 * function.ops.size() + 1)) {}

  // The first that gives the same as `op`; null if there is none, and then `op` is kept next.
  const Op* findOrKeep(const Op& op) {
    const bool isEitherWay = isCommutative(op);
    const std::uint64_t hash = hashOf(op, isEitherWay);
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].number != 0; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].hash != hash) continue;
      const Op& earlier = function_.ops[slots_[at].number - 1];
      if (isSame(earlier, op, isEitherWay)) return &earlier;
    }
    slots_[at] = {hash, function_.ops.size() + 1};
    return nullptr;
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::size_t number = 0;  // of the op, from 1; 0: free
  };

  static std::uint64_t hashOf(const Op& op, bool isEitherWay) {
    Hash hash;
    hash.add(static_cast<std::uint64_t>(op.kind));
    if (isEitherWay) {
      hash.add(std::min(op.operands[0], op.operands[1]).index);
      hash.add(std::max(op.operands[0], op.operands[1]).index);
    } else {
      for (const ValueId operand : op.operands) hash.add(operand.index);
    }
    for (const auto& [name, attribute] : op.attributes.items()) addAttribute(hash, attribute);
    return hash.value();
  }

  bool isSame(const Op& a, const Op& b, bool isEitherWay) const {
    if (a.kind != b.kind || a.attributes != b.attributes) return false;
    const bool isTurned =
        isEitherWay && a.operands.size() == 2 && a.operands[0] == b.operands[1] && a.operands[1] == b.operands[0];
    if (a.operands != b.operands && !isTurned) return false;
    for (std::size_t i = 0; i < a.results.size(); ++i) {
      const Value& x = function_.value(a.results[i]);
      const Value& y = function_.value(b.results[i]);
      if (x.type != y.type || x.rowDim != y.rowDim || x.sharding != y.sharding) return false;
    }
    return true;
  }

  const Function& function_;
  std::vector<Slot> slots_;  // linear probing, so that of several with one hash the first is found first
};

// Whether any op was dropped.
bool eliminateIn(Function& function) {
  const std::size_t before = function.ops.size();
  KeptOps kept(function);
  Rewriter rewriter(function);
  rewriter.run([&](Op& op) {
    if (op.kind == OpKind::Annotate) return true;
    const Op* earlier = kept.findOrKeep(op);
    if (earlier == nullptr) return true;
    for (std::size_t i = 0; i < op.results.size(); ++i) rewriter.replace(op.results[i], earlier->results[i]);
    return false;
  });
  return function.ops.size() != before;
}

}  // namespace

void eliminateCommonSubexpressions(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    if (!eliminateIn(function)) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
