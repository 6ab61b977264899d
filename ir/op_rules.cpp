// Shared parts of op rules; see op_rules.h.
#include "ir/op_rules.h"

#include <limits>

#include "support/check.h"
#include "support/checked.h"

namespace gshard {

bool contains(const std::vector<std::int64_t>& list, std::int64_t value) {
  for (const std::int64_t each : list) {
    if (each == value) return true;
  }
  return false;
}

bool checkAxis(const OpView& op, DiagSink& diag, std::int64_t axis, const Type& type, std::size_t operand) {
  if (axis >= 0 && axis < type.rank()) return true;
  DiagBuilder builder = diag.emit(op.range(), diag::AxisOutOfRange, axis, printType(type), type.rank());
  if (operand < op.operandCount()) builder.label(op.operandRange(operand), "this operand");
  return false;
}

bool checkDimList(const OpView& op, DiagSink& diag, const std::vector<std::int64_t>& dims, const Type& type) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!checkAxis(op, diag, dims[i], type)) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (dims[i] == dims[j]) {
        diag.emit(op.range(), diag::DimsRepeated, dims[i]);
        return false;
      }
    }
  }
  return true;
}

bool checkSizes(const OpView& op, DiagSink& diag, const Type& type) {
  for (std::int64_t i = 0; i < type.rank(); ++i) {
    const std::int64_t size = type.shape[static_cast<std::size_t>(i)];
    if (size >= 0) continue;
    diag.emit(op.range(), diag::NegativeSize, i, size);
    return false;
  }
  const std::optional<std::int64_t> elements = checkedProduct(type.shape);
  if (elements && checkedMul(*elements, 8)) return true;
  diag.emit(op.range(), diag::SizeOverflow, printType(type));
  return false;
}

bool checkLength(const OpView& op, DiagSink& diag, std::string_view attr, const std::vector<std::int64_t>& list,
                 const Type& type) {
  if (static_cast<std::int64_t>(list.size()) == type.rank()) return true;
  diag.emit(op.range(), diag::DimListLength, std::string(attr), static_cast<std::int64_t>(list.size()), printType(type),
            type.rank());
  return false;
}

bool checkIndexDtype(const OpView& op, DiagSink& diag, std::size_t operand) {
  const DType dtype = op.operandType(operand).dtype;
  if (dtype == DType::I32 || dtype == DType::I64) return true;
  diag.emit(op.range(), diag::IndexDtype, std::string(dtypeName(dtype)))
      .label(op.operandRange(operand), "these indices");
  return false;
}

Type typeOfAttributes(const OpView& op) {
  return {op.dtypeAttr("dtype"), op.intsAttr("shape")};
}

std::int64_t intAttrOr(const OpView& op, std::string_view name, std::int64_t fallback) {
  return op.hasAttr(name) ? op.intAttr(name) : fallback;
}

void passThrough(const OpView& op, FactorBuilder& factors) {
  const std::vector<std::int64_t>& shape = op.operandType(0).shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const int factor = factors.add(FactorKind::Pass, shape[i]);
    factors.operandDim(0, static_cast<std::int64_t>(i), factor);
    factors.resultDim(0, static_cast<std::int64_t>(i), factor);
  }
}

void generatedFactors(const OpView& op, FactorBuilder& factors) {
  const std::vector<std::int64_t>& shape = op.resultType().shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    factors.resultDim(0, static_cast<std::int64_t>(i), factors.add(FactorKind::Pass, shape[i]));
  }
}

ValueId zerosLike(GradBuilder& builder, const Type& type, SourceRange range) {
  return builder.constant(type, isFloat(type.dtype) ? floatLiteral(0) : intLiteral(0), range);
}

ValueId sumTo(GradBuilder& builder, ValueId gradient, std::vector<std::int64_t> dims, DType to, SourceRange range) {
  if (!dims.empty()) gradient = builder.reduce(Reduction::Sum, gradient, std::move(dims), range);
  return builder.cast(gradient, to, range);
}

void noGradient(const OpView&, std::span<const ValueId>, GradBuilder&) {}

std::optional<ResultTypes> inferIdentity(const OpView& op, DiagSink&) {
  return ResultTypes{op.operandType(0)};
}

const Sharding& shardingOf(const OpView& op, ValueId value) {
  const std::optional<Sharding>& sharding = op.function().value(value).sharding;
  GSHARD_CHECK(sharding.has_value(), "a value without a sharding in SPMD form");
  return *sharding;
}

}  // namespace gshard
