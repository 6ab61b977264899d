// Builder: appends an op after inferring its result types.
#include "ir/builder.h"

#include "ir/op_table.h"
#include "ir/scalar_functions.h"
#include "support/check.h"

namespace gshard {

std::vector<ValueId> Builder::createAll(OpKind kind, std::vector<ValueId> operands, Attributes attributes,
                                        SourceRange range, std::string name) {
  for (const ValueId operand : operands) {
    if (!operand.known()) return {};  // an error that was reported before
  }
  Op op{.kind = kind,
        .operands = std::move(operands),
        .results = {},
        .attributes = std::move(attributes),
        .range = range,
        .phase = phase_};
  const std::optional<ResultTypes> types = (*opDef(kind).infer)(OpView(*module_, *function_, op), *diag_);
  if (!types) return {};
  if (name.empty()) {
    name = *opDef(kind).name;
    if (kind == OpKind::Map) name = OpView(*module_, *function_, op).stringAttr("fn");
  }
  for (const Type& type : *types) {
    op.results.push_back(function_->addValue({.type = type, .name = name, .range = range}));
  }
  function_->ops.push_back(std::move(op));
  return function_->ops.back().results;
}

ValueId Builder::create(OpKind kind, std::vector<ValueId> operands, Attributes attributes, SourceRange range,
                        std::string name) {
  const std::vector<ValueId> results =
      createAll(kind, std::move(operands), std::move(attributes), range, std::move(name));
  return results.empty() ? ValueId{} : results.front();
}

ValueId Builder::map(std::string_view scalarFunction, std::vector<ValueId> operands, SourceRange range,
                     std::string name) {
  return create(OpKind::Map, std::move(operands), {{"fn", std::string(scalarFunction)}}, range, std::move(name));
}

ValueId Builder::cast(ValueId x, DType to, SourceRange range) {
  if (!x.known() || type(x).dtype == to) return x;
  return create(OpKind::Map, {x}, {{"fn", std::string("cast")}, {"dtype", to}}, range);
}

ValueId Builder::constant(Type type, Literal literal, SourceRange range) {
  return create(OpKind::Constant, {}, {{"value", std::move(literal)}, {"shape", type.shape}, {"dtype", type.dtype}},
                range);
}

ValueId Builder::scalar(DType dtype, double value, SourceRange range) {
  return constant({dtype, {}}, isFloat(dtype) ? floatLiteral(value) : intLiteral(static_cast<std::int64_t>(value)),
                  range);
}

ValueId Builder::reduce(Reduction reduction, ValueId x, std::vector<std::int64_t> dims, SourceRange range) {
  return create(OpKind::Reduce, {x}, {{"fn", std::string(reductionName(reduction))}, {"dims", std::move(dims)}}, range);
}

ValueId Builder::contract(std::string spec, std::vector<ValueId> operands, SourceRange range, std::string name) {
  return create(OpKind::Contract, std::move(operands), {{"spec", std::move(spec)}}, range, std::move(name));
}

ValueId Builder::reshape(ValueId x, std::vector<std::int64_t> shape, SourceRange range) {
  return create(OpKind::Reshape, {x}, {{"shape", std::move(shape)}}, range);
}

ValueId Builder::transpose(ValueId x, std::vector<std::int64_t> permutation, SourceRange range) {
  return create(OpKind::Transpose, {x}, {{"perm", std::move(permutation)}}, range);
}

ValueId Builder::broadcast(ValueId x, std::vector<std::int64_t> shape, std::vector<std::int64_t> dims,
                           SourceRange range) {
  return create(OpKind::Broadcast, {x}, {{"shape", std::move(shape)}, {"dims", std::move(dims)}}, range);
}

ValueId Builder::broadcastTo(ValueId x, std::vector<std::int64_t> shape, SourceRange range) {
  if (!x.known() || type(x).shape == shape) return x;
  const std::int64_t rank = type(x).rank();
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < rank; ++i) dims.push_back(static_cast<std::int64_t>(shape.size()) - rank + i);
  return broadcast(x, std::move(shape), std::move(dims), range);
}

void GradBuilder::begin(std::vector<bool> wanted) {
  wanted_ = std::move(wanted);
  collected_.assign(wanted_.size(), std::nullopt);
}

bool GradBuilder::wants(std::size_t operand) const {
  return operand < wanted_.size() && wanted_[operand];
}

void GradBuilder::accumulate(std::size_t operand, ValueId gradient) {
  GSHARD_CHECK(operand < collected_.size(), "a gradient of an operand that the op does not have");
  if (!wanted_[operand] || !gradient.known()) return;
  std::optional<ValueId>& sum = collected_[operand];
  sum = sum ? map("add", {*sum, gradient}, function().value(gradient).range) : gradient;
}

}  // namespace gshard
