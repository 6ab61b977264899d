// eliminate-common-subexpressions: two ops of one kind with the same operands and attributes give the same values.
// Operands of commutative functions are compared in either order. Annotations stay apart: each is a place where a user
// said something.
#include <algorithm>
#include <bit>
#include <map>

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
    add(text.size());
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
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
  if (op.kind != OpKind::Map) return false;
  constexpr std::string_view kCommutative[] = {"add", "and", "eq", "maximum", "minimum", "mul", "ne", "or"};
  return std::binary_search(std::begin(kCommutative), std::end(kCommutative), fnOf(op));
}

std::vector<ValueId> comparedOperands(const Op& op) {
  std::vector<ValueId> operands = op.operands;
  if (isCommutative(op)) std::sort(operands.begin(), operands.end());
  return operands;
}

using OpKey = std::tuple<OpKind, std::vector<ValueId>, std::uint64_t>;

OpKey keyOf(const Op& op) {
  Hash hash;
  for (const auto& [name, attribute] : op.attributes.items()) {
    hash.add(name);
    addAttribute(hash, attribute);
  }
  return {op.kind, comparedOperands(op), hash.value()};
}

bool agree(const Function& function, const Op& a, const Op& b) {
  if (!(a.attributes == b.attributes)) return false;
  for (std::size_t i = 0; i < a.results.size(); ++i) {
    const Value& x = function.value(a.results[i]);
    const Value& y = function.value(b.results[i]);
    if (!(x.type == y.type) || x.rowDim != y.rowDim || x.sharding != y.sharding) return false;
  }
  return true;
}

// Whether any op was dropped.
bool eliminateIn(Function& function) {
  const std::size_t before = function.ops.size();
  std::map<OpKey, std::vector<Op>> known;
  Rewriter rewriter(function);
  rewriter.run([&](Op& op) {
    if (op.kind == OpKind::Annotate) return true;
    std::vector<Op>& same = known[keyOf(op)];
    for (const Op& earlier : same) {
      if (!agree(function, earlier, op)) continue;
      for (std::size_t i = 0; i < op.results.size(); ++i) rewriter.replace(op.results[i], earlier.results[i]);
      return false;
    }
    same.push_back(op);
    return true;
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
