// Operators of the language on datums: folded on compile-time values, ops on tensors. Builtins with the same meaning
// (minimum, floordiv …) come here too.
#pragma once

#include <optional>

#include "sema/tensor_ops.h"

namespace gshard::sema {

struct OperandRanges {
  SourceRange left, right, whole, op;
};

// `ops` is null where there is no function to emit into; tensors cannot occur there.
Datum applyBinary(ast::BinaryOp op, const Datum& left, const Datum& right, const OperandRanges& ranges, TensorOps* ops,
                  DiagSink& sink);
Datum applyUnary(ast::UnaryOp op, const Datum& operand, SourceRange operandRange, SourceRange range, TensorOps* ops,
                 DiagSink& sink);

enum class IntegerDivision : std::uint8_t { Floor, Ceil };
// Compile-time `floordiv` and `ceildiv`.
Datum foldDivision(IntegerDivision kind, const Datum& left, const Datum& right, SourceRange range, DiagSink& sink);

// Equality of compile-time values; nullopt when the two kinds cannot be compared.
std::optional<bool> equalDatums(const Datum& left, const Datum& right);

}  // namespace gshard::sema
