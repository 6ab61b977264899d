// Builder: appends ops to a function, inferring result types. On a user's mistake the diagnostic is emitted and an
// unknown ValueId comes back; callers pass it on silently.
#pragma once

#include "ir/op_def.h"

namespace gshard {

class Builder {
 public:
  Builder(Module& module, Function& function, DiagSink& diag) : module_(&module), function_(&function), diag_(&diag) {}

  // All results; empty on error. Operands must be known.
  std::vector<ValueId> createAll(OpKind kind, std::vector<ValueId> operands, Attributes attributes, SourceRange range,
                                 std::string name = "");
  // The first result.
  ValueId create(OpKind kind, std::vector<ValueId> operands, Attributes attributes, SourceRange range,
                 std::string name = "");

  // Shorthands. Scalars adapt to nothing: dtypes of operands must agree.
  ValueId map(std::string_view scalarFunction, std::vector<ValueId> operands, SourceRange range, std::string name = "");
  ValueId cast(ValueId x, DType to, SourceRange range);
  ValueId constant(Type type, Literal literal, SourceRange range);  // splat or dense
  ValueId scalar(DType dtype, double value, SourceRange range);     // rank 0
  ValueId reduce(Reduction reduction, ValueId x, std::vector<std::int64_t> dims, SourceRange range);
  ValueId contract(std::string spec, std::vector<ValueId> operands, SourceRange range, std::string name = "");
  ValueId reshape(ValueId x, std::vector<std::int64_t> shape, SourceRange range);
  ValueId transpose(ValueId x, std::vector<std::int64_t> permutation, SourceRange range);
  // Operand dim i becomes result dim dims[i]; sizes are equal or 1.
  ValueId broadcast(ValueId x, std::vector<std::int64_t> shape, std::vector<std::int64_t> dims, SourceRange range);
  ValueId broadcastTo(ValueId x, std::vector<std::int64_t> shape, SourceRange range);  // aligned at the end

  void setPhase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  Module& module() { return *module_; }
  Function& function() { return *function_; }
  DiagSink& diag() { return *diag_; }
  const Type& type(ValueId id) const { return function_->type(id); }

 private:
  Module* module_;
  Function* function_;
  DiagSink* diag_;
  Phase phase_ = Phase::Forward;
};

// For Vjp rules: where gradients of operands are handed in.
class GradBuilder : public Builder {
 public:
  using Builder::Builder;
  // Adds to the gradient of operand i of the op at hand. The type must be the operand's.
  void accumulate(std::size_t operand, ValueId gradient);
  // False when no gradient of operand i is wanted: its computation may be skipped.
  bool wants(std::size_t operand) const;
  // Prepares for one op (autodiff.cpp).
  void begin(std::vector<bool> wanted);
  const std::vector<std::optional<ValueId>>& collected() const { return collected_; }

 private:
  std::vector<bool> wanted_;
  std::vector<std::optional<ValueId>> collected_;
};

}  // namespace gshard
