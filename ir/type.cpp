// Element types and tensor types: names, sizes and printing.
#include "ir/type.h"

#include "support/check.h"
#include "support/checked.h"

namespace gshard {

namespace {
struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::int64_t bytes;
};
constexpr DTypeRow kDTypes[] = {
    {DType::F32, "f32", 4}, {DType::F64, "f64", 8}, {DType::BF16, "bf16", 2}, {DType::F16, "f16", 2},
    {DType::I32, "i32", 4}, {DType::I64, "i64", 8}, {DType::U8, "u8", 1},     {DType::Bool, "bool", 1},
};
const DTypeRow& row(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)];
}
}  // namespace

std::string_view dtypeName(DType dtype) {
  return row(dtype).name;
}

std::optional<DType> dtypeFromName(std::string_view name) {
  for (const DTypeRow& each : kDTypes) {
    if (each.name == name) return each.dtype;
  }
  return std::nullopt;
}

std::int64_t byteSize(DType dtype) {
  return row(dtype).bytes;
}

bool isFloat(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::BF16 || dtype == DType::F16;
}

bool isInteger(DType dtype) {
  return dtype == DType::I32 || dtype == DType::I64 || dtype == DType::U8;
}

DType accumulatorOf(DType dtype) {
  return dtype == DType::BF16 || dtype == DType::F16 ? DType::F32 : dtype;
}

std::int64_t Type::elements() const {
  const std::optional<std::int64_t> product = checkedProduct(shape);
  GSHARD_CHECK(product.has_value(), "the number of elements of " + printType(*this) + " needs more than 64 bits");
  return *product;
}

std::string printShape(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::string printType(const Type& type) {
  std::string text(dtypeName(type.dtype));
  if (!type.isScalar()) text += printShape(type.shape);
  return text;
}

}  // namespace gshard
