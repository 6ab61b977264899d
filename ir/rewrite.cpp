// Bookkeeping of rewrites, and the few forms into which ops are turned.
#include "ir/rewrite.h"

#include <bit>

#include "ir/recompute.h"
#include "support/check.h"

namespace gshard {

Rewriter::Rewriter(Function& function)
    : function_(&function), replacement_(function.values.size()), definition_(function.values.size(), -1) {}

ValueId Rewriter::resolve(ValueId value) const {
  while (value.index < replacement_.size() && replacement_[value.index].known()) value = replacement_[value.index];
  return value;
}

void Rewriter::replace(ValueId value, ValueId by) {
  GSHARD_CHECK(function_->type(value) == function_->type(by), "a value is replaced by one of another type");
  const ValueId target = resolve(by);
  GSHARD_CHECK(target != value, "a value is replaced by itself");
  replacement_.resize(function_->values.size());
  replacement_[value.index] = target;
}

const Op* Rewriter::definition(ValueId value) const {
  if (value.index >= definition_.size() || definition_[value.index] < 0) return nullptr;
  return &function_->ops[static_cast<std::size_t>(definition_[value.index])];
}

void Rewriter::append(Op op) {
  definition_.resize(function_->values.size(), -1);
  for (const ValueId result : op.results) definition_[result.index] = static_cast<std::int64_t>(function_->ops.size());
  function_->ops.push_back(std::move(op));
}

void Rewriter::finish() {
  for (Result& result : function_->results) result.value = resolve(result.value);
}

std::optional<Splat> splatOf(const Op* op, DType dtype) {
  if (op == nullptr || op->kind != OpKind::Constant) return std::nullopt;
  const auto* literal = std::get_if<Literal>(op->attributes.find("value"));
  GSHARD_CHECK(literal != nullptr, "a constant without its value");
  if (isFloat(dtype)) {
    if (literal->floats.size() != 1) return std::nullopt;
    return Splat{literal->floats[0], 0};
  }
  if (literal->ints.size() != 1) return std::nullopt;
  return Splat{0, literal->ints[0]};
}

bool isNumber(const std::optional<Splat>& splat, DType dtype, double number) {
  if (!splat) return false;
  if (isFloat(dtype)) return std::bit_cast<std::uint64_t>(splat->real) == std::bit_cast<std::uint64_t>(number);
  return splat->integer == static_cast<std::int64_t>(number);
}

void setAttributes(Op& op, Attributes attributes) {
  const std::int64_t id = recomputeIdOf(op);
  op.attributes = std::move(attributes);
  if (id > 0) setRecomputeId(op, id);
}

void becomeConstant(Op& op, const Type& type, Literal literal) {
  op.kind = OpKind::Constant;
  op.operands.clear();
  setAttributes(op, {{"value", std::move(literal)}, {"shape", type.shape}, {"dtype", type.dtype}});
}

void becomeBroadcast(Op& op, const Type& result, ValueId x, std::int64_t rankOfX) {
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < rankOfX; ++i) dims.push_back(result.rank() - rankOfX + i);
  op.kind = OpKind::Broadcast;
  op.operands = {x};
  setAttributes(op, {{"shape", result.shape}, {"dims", std::move(dims)}});
}

const std::vector<std::int64_t>& intsOf(const Op& op, std::string_view name) {
  const auto* ints = std::get_if<std::vector<std::int64_t>>(op.attributes.find(name));
  GSHARD_CHECK(ints != nullptr, "no list of numbers `" + std::string(name) + "`");
  return *ints;
}

bool isAddition(const Op& op) {
  return op.kind == OpKind::Map && fnOf(op) == "add";
}

std::string_view fnOf(const Op& op) {
  const auto* fn = std::get_if<std::string>(op.attributes.find("fn"));
  GSHARD_CHECK(fn != nullptr, "an op without its function");
  return *fn;
}

}  // namespace gshard
