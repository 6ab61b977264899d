// What rules of several ops share: checks of attributes that a user can get wrong, factors and gradients of common
// form.
#pragma once

#include "ir/builder.h"
#include "ir/diagnostics.h"
#include "ir/evaluator.h"
#include "ir/op_table.h"

namespace gshard {

// ---- infer. Each emits and returns false on a user's mistake.
bool checkAxis(const OpView& op, DiagSink& diag, std::int64_t axis, const Type& type, std::size_t operand = 0);
bool checkDimList(const OpView& op, DiagSink& diag, const std::vector<std::int64_t>& dims,
                  const Type& type);                                  // in range, once
bool checkSizes(const OpView& op, DiagSink& diag, const Type& type);  // no negative size, elements fit 63 bits
bool checkLength(const OpView& op, DiagSink& diag, std::string_view attr, const std::vector<std::int64_t>& list,
                 const Type& type);
bool checkIndexDtype(const OpView& op, DiagSink& diag, std::size_t operand);
Type typeOfAttributes(const OpView& op);  // `shape` and `dtype`
std::int64_t intAttrOr(const OpView& op, std::string_view name, std::int64_t fallback);
bool contains(const std::vector<std::int64_t>& list, std::int64_t value);

// ---- factors
void passThrough(const OpView& op, FactorBuilder& factors);       // result dim i is operand 0's dim i
void generatedFactors(const OpView& op, FactorBuilder& factors);  // result dims that no operand has

// ---- gradient
ValueId zerosLike(GradBuilder& builder, const Type& type, SourceRange range);
// Sums `gradient` over `dims` and casts it to `to`.
ValueId sumTo(GradBuilder& builder, ValueId gradient, std::vector<std::int64_t> dims, DType to, SourceRange range);
void noGradient(const OpView& op, std::span<const ValueId> gradients, GradBuilder& builder);

// ---- evaluate
void evaluateMove(const OpView& op, EvalFrame& frame);      // from the move map
void evaluateIdentity(const OpView& op, EvalFrame& frame);  // result i is operand i

// ---- SPMD ops
const Sharding& shardingOf(const OpView& op, ValueId value);
std::optional<ResultTypes> inferIdentity(const OpView& op, DiagSink& diag);

}  // namespace gshard
