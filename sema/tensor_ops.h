// TensorOps: what operators and builtins share when they emit ops: numbers that adapt to a dtype, NumPy broadcasting
// with messages in the user's words, moves. Everything returns an error datum after having reported.
#pragma once

#include "sema/datum.h"
#include "sema/function_build.h"

namespace gshard::sema {

class TensorOps {
 public:
  TensorOps(FunctionBuild& build, DiagSink& sink) : build_(&build), sink_(&sink) {}

  FunctionBuild& build() { return *build_; }
  Builder& builder() { return build_->builder(); }
  DiagSink& sink() { return *sink_; }

  // The datum of a value that was just made; checks that its size stays within 64 bits.
  Datum make(ValueId id, SourceRange range);
  Datum create(OpKind kind, const std::vector<TensorDatum>& operands, Attributes attributes, SourceRange range,
               std::string name = "");

  // The tuple of all results.
  Datum createTuple(OpKind kind, const std::vector<TensorDatum>& operands, Attributes attributes, SourceRange range);

  // A tensor of dtype `dtype`: numbers and choices adapt, other tensors must have it already. Null after an error.
  std::optional<TensorDatum> adapt(const Datum& datum, DType dtype, SourceRange range);
  // A compile-time value as the literal of a constant, or a report.
  std::optional<Literal> literal(const Datum& value, DType dtype, SourceRange range);
  // A scalar constant; `value` must fit (int to any number type, float to float types, bool to bool).
  std::optional<TensorDatum> constant(const Datum& value, DType dtype, SourceRange range);
  // Brings operands to the one dtype that the tensors among them have; reports when they disagree, or when none has
  // one.
  std::optional<std::vector<TensorDatum>> unify(const std::vector<Datum>& operands,
                                                const std::vector<SourceRange>& ranges, std::string_view what,
                                                SourceRange range);

  Datum map(std::string_view function, const std::vector<TensorDatum>& operands, SourceRange range);
  Datum cast(const TensorDatum& x, DType to, SourceRange range);
  Datum reduce(Reduction reduction, const TensorDatum& x, const std::vector<std::int64_t>& dims, bool keepDims,
               SourceRange range);
  Datum reshape(const TensorDatum& x, const std::vector<std::int64_t>& shape, SourceRange range);
  Datum transpose(const TensorDatum& x, const std::vector<std::int64_t>& permutation, SourceRange range);
  Datum broadcastTo(const TensorDatum& x, const std::vector<std::int64_t>& shape, SourceRange range);
  Datum slice(const TensorDatum& x, std::int64_t dim, std::int64_t start, std::int64_t limit, std::int64_t step,
              SourceRange range);
  Datum reverse(const TensorDatum& x, const std::vector<std::int64_t>& dims, SourceRange range);
  Datum concat(const std::vector<TensorDatum>& parts, std::int64_t dim, SourceRange range);
  Datum take(const TensorDatum& x, const TensorDatum& index, std::int64_t axis, std::int64_t batch, SourceRange range);
  // All elements `value`.
  Datum full(const std::vector<std::int64_t>& shape, const Datum& value, DType dtype, SourceRange range);
  Datum iota(const std::vector<std::int64_t>& shape, std::int64_t dim, SourceRange range);

  // How many elements `dims` of x hold: a constant, or dim_size where rows are set at run time.
  Datum count(const TensorDatum& x, const std::vector<std::int64_t>& dims, DType dtype, SourceRange range);
  // The size of a dim as a compile-time number that knows whether it counts rows.
  Datum dimSize(const TensorDatum& x, std::int64_t dim);

  // The result shape by NumPy's rule, or a report that names both shapes.
  std::optional<std::vector<std::int64_t>> broadcastShape(const std::vector<TensorDatum>& operands, SourceRange range);

 private:
  FunctionBuild* build_;
  DiagSink* sink_;
};

// Reports sizes beyond 64 bits. False after a report.
bool checkSize(const Type& type, SourceRange range, DiagSink& sink);

}  // namespace gshard::sema
