// Shape rule of random ops; see random_op.h.
#include "ir/random_op.h"

namespace gshard {

std::optional<ResultTypes> inferRandom(const OpView& op, DiagSink& diag) {
  const Type result = typeOfAttributes(op);
  const std::string name(*opDef(op.op().kind).name);
  if (!isFloat(result.dtype)) {
    diag.emit(op.range(), diag::DtypeNotAccepted, name, "float types", std::string(dtypeName(result.dtype)));
    return std::nullopt;
  }
  if (op.operandType(0) != Type{DType::I32, {}}) {
    diag.emit(op.range(), diag::DtypeNotAccepted, name, "an `i32` as step", printType(op.operandType(0)))
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  if (op.operandCount() > 1 && op.operandType(1) != Type{DType::I64, {}}) {
    diag.emit(op.range(), diag::DtypeNotAccepted, name, "an `i64` as first element", printType(op.operandType(1)))
        .label(op.operandRange(1), "this operand");
    return std::nullopt;
  }
  return checkSizes(op, diag, result) ? std::optional(ResultTypes{result}) : std::nullopt;
}

}  // namespace gshard
