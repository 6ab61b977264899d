// What the simplification passes share: walking a function's ops in order while values are replaced by others, and
// asking for the op that defines a value.
#pragma once

#include "ir/module.h"

namespace gshard {

class Rewriter {
 public:
  explicit Rewriter(Function& function);

  Function& function() { return *function_; }
  const Function& function() const { return *function_; }
  ValueId resolve(ValueId value) const;  // what stands for it now
  // From here on `by` stands for `value`, which must have been defined before.
  void replace(ValueId value, ValueId by);
  // Hands every op to `visit`, operands resolved; visit may change it, and returns whether to keep it. Results of the
  // function are resolved at the end.
  template <class Visit>
  void run(Visit visit) {
    std::vector<Op> old = std::move(function_->ops);
    function_->ops.clear();
    function_->ops.reserve(old.size());
    for (Op& op : old) {
      for (ValueId& operand : op.operands) operand = resolve(operand);
      if (visit(op)) append(std::move(op));
    }
    finish();
  }
  // The op among those already kept that defines `value`, or null (an argument). Good until the next op is kept.
  const Op* definition(ValueId value) const;
  void append(Op op);

 private:
  void finish();

  Function* function_;
  std::vector<ValueId> replacement_;      // per value; unknown: itself
  std::vector<std::int64_t> definition_;  // per value: index of the op that defines it, or -1
};

// The one number that all elements of a constant have; nothing if `op` is null, no constant, or has several.
struct Splat {
  double real = 0;           // float dtypes
  std::int64_t integer = 0;  // the others
};
std::optional<Splat> splatOf(const Op* op, DType dtype);
// Whether it is this number, to the bit: -0 is not 0.
bool isNumber(const std::optional<Splat>& splat, DType dtype, double number);

// In place of those that it has; it stays recomputed if it was.
void setAttributes(Op& op, Attributes attributes);
// Makes `op` the constant `literal` of its result's type.
void becomeConstant(Op& op, const Type& type, Literal literal);
// Makes `op` give `x`, which differs from its result in being smaller: NumPy broadcasting.
void becomeBroadcast(Op& op, const Type& result, ValueId x, std::int64_t rankOfX);

// The attributes of an op that is being rewritten, typed (an OpView without a module).
const std::vector<std::int64_t>& intsOf(const Op& op, std::string_view name);
std::string_view fnOf(const Op& op);  // of a map
bool isAddition(const Op& op);        // elementwise

}  // namespace gshard
