// Reverse-mode differentiation: walks the ops that lie between the xs and y from the last to the first and asks each
// for its vjp. Everything particular to an op is in its OpDef.
#include "ir/autodiff.h"

#include "ir/op_table.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace gshard {

namespace {

class Differentiation {
 public:
  Differentiation(Builder& outer, ValueId y, std::span<const ValueId> xs, const RecomputedRegions& regions)
      : builder_(outer.module(), outer.function(), outer.diag()),
        recomputation_(outer.function(), regions),
        y_(y),
        xs_(xs.begin(), xs.end()) {
    builder_.setPhase(Phase::Backward);
  }

  std::vector<ValueId> run() {
    const std::size_t count = function().ops.size();
    markDependent(count);
    gradients_.assign(function().values.size(), ValueId{});
    const SourceRange range = function().value(y_).range;
    if (dependent_[y_.index]) gradients_[y_.index] = builder_.scalar(function().type(y_).dtype, 1, range);
    for (std::size_t i = count; i-- > 0;) {
      // A copy, since building ops moves the list.
      const Op op = function().ops[i];
      const std::size_t firstNew = function().ops.size();
      visit(op);
      recomputation_.redirect(firstNew, recomputation_.regionOf(i));
    }
    std::vector<ValueId> result;
    for (const ValueId x : xs_) {
      const ValueId gradient = gradients_[x.index];
      const Type type = function().type(x);
      result.push_back(gradient.known() ? gradient
                                        : builder_.constant(type, floatLiteral(0), function().value(x).range));
    }
    return result;
  }

 private:
  Function& function() { return builder_.function(); }

  // Float values that some x reaches: only they can have a gradient that anybody asks for.
  void markDependent(std::size_t count) {
    dependent_.assign(function().values.size(), false);
    for (const ValueId x : xs_) dependent_[x.index] = true;
    for (std::size_t i = 0; i < count; ++i) {
      const Op& op = function().ops[i];
      bool reached = false;
      for (const ValueId operand : op.operands) reached = reached || dependent_[operand.index];
      if (!reached) continue;
      for (const ValueId result : op.results) {
        if (isFloat(function().type(result).dtype)) dependent_[result.index] = true;
      }
    }
  }

  void visit(const Op& op) {
    std::vector<ValueId> resultGradients;
    bool any = false;
    for (const ValueId result : op.results) {
      resultGradients.push_back(gradients_[result.index]);
      any = any || resultGradients.back().known();
    }
    std::vector<bool> wanted;
    bool wantsAny = false;
    for (const ValueId operand : op.operands) {
      wanted.push_back(dependent_[operand.index] && isFloat(function().type(operand).dtype));
      wantsAny = wantsAny || wanted.back();
    }
    if (!any || !wantsAny) return;
    const OpDef& def = opDef(op.kind);
    std::visit(Overloaded{[&](const Vjp& rule) { applyVjp(op, rule, wanted, resultGradients); },
                          [&](const NotDifferentiable& rule) {
                            GSHARD_CHECK(false, "a gradient is asked for through `" + std::string(*def.name) +
                                                    "`: " + std::string(*rule.reason));
                          }},
               *def.gradient);
  }

  void applyVjp(const Op& op, const Vjp& rule, const std::vector<bool>& wanted,
                const std::vector<ValueId>& resultGradients) {
    // A rule may hold references to types while it builds: it creates fewer values than this.
    constexpr std::size_t kRoom = 1024;
    std::vector<Value>& values = function().values;
    if (values.capacity() - values.size() < kRoom) values.reserve(2 * values.size() + kRoom);
    builder_.begin(wanted);
    (*rule.fn)(OpView(builder_.module(), function(), op), resultGradients, builder_);
    const std::vector<std::optional<ValueId>> collected = builder_.collected();
    gradients_.resize(function().values.size());
    for (std::size_t i = 0; i < collected.size(); ++i) {
      if (!collected[i]) continue;
      const ValueId operand = op.operands[i];
      GSHARD_CHECK(function().type(*collected[i]) == function().type(operand),
                   "the vjp of " + std::string(*opDef(op.kind).name) + " gives " +
                       printType(function().type(*collected[i])) + " for " + printType(function().type(operand)));
      ValueId& sum = gradients_[operand.index];
      sum = sum.known() ? builder_.map("add", {sum, *collected[i]}, op.range) : *collected[i];
    }
    gradients_.resize(function().values.size());
  }

  GradBuilder builder_;
  Recomputation recomputation_;
  ValueId y_;
  std::vector<ValueId> xs_;
  std::vector<bool> dependent_;
  std::vector<ValueId> gradients_;  // per value; unknown: none so far
};

}  // namespace

std::vector<ValueId> gradients(Builder& builder, ValueId y, std::span<const ValueId> xs,
                               const RecomputedRegions& regions) {
  GSHARD_CHECK(builder.type(y).isScalar() && isFloat(builder.type(y).dtype),
               "gradients of something that is no float scalar");
  return Differentiation(builder, y, xs, regions).run();
}

}  // namespace gshard
