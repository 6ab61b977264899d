// Table and evaluation of scalar functions: scalar_functions.def joined with the gradients, and emitScalar on plain
// numbers.
#include "ir/scalar_functions.h"

#include <algorithm>
#include <array>

#include "ir/scalar_emit.h"
#include "ir/scalar_gradients.h"

namespace gshard {

namespace {

constexpr ScalarInfo kFunctions[] = {
#define GSHARD_SCALAR(fn, name, arity, operands, result, linearity, gradient, doc) \
  {ScalarFn::fn,                                                                   \
   #name,                                                                          \
   arity,                                                                          \
   ScalarOperands::operands,                                                       \
   ScalarResult::result,                                                           \
   ScalarLinearity::linearity,                                                     \
   scalar_gradients::k##gradient,                                                  \
   doc},
#include "ir/scalar_functions.def"
#undef GSHARD_SCALAR
};

ScalarBackend::Value laneOf(DType dtype, const ScalarNumber& number) {
  switch (dtype) {
    case DType::F32:
    case DType::BF16:
    case DType::F16:
      return static_cast<float>(number.real);
    case DType::F64:
      return number.real;
    case DType::I32:
    case DType::U8:
      return static_cast<std::int32_t>(number.integer);
    case DType::I64:
      return number.integer;
    case DType::Bool:
      return number.integer != 0;
  }
  GSHARD_UNREACHABLE("dtype");
}

ScalarNumber numberOf(const ScalarBackend::Value& lane) {
  return std::visit(
      [](auto value) -> ScalarNumber {
        if constexpr (std::is_floating_point_v<decltype(value)>) {
          return {static_cast<double>(value), 0};
        } else {
          return {0, static_cast<std::int64_t>(value)};
        }
      },
      lane);
}

}  // namespace

const ScalarInfo& scalarInfo(ScalarFn fn) {
  return kFunctions[static_cast<std::size_t>(fn)];
}

std::span<const ScalarInfo> allScalarFunctions() {
  return kFunctions;
}

std::optional<ScalarFn> scalarFromName(std::string_view name) {
  const ScalarInfo* found =
      std::lower_bound(std::begin(kFunctions), std::end(kFunctions), name,
                       [](const ScalarInfo& info, std::string_view wanted) { return info.name < wanted; });
  if (found == std::end(kFunctions) || found->name != name) return std::nullopt;
  return found->fn;
}

bool acceptsDtype(ScalarOperands operands, DType dtype) {
  switch (operands) {
    case ScalarOperands::Floats:
      return isFloat(dtype);
    case ScalarOperands::Numbers:
      return isFloat(dtype) || isInteger(dtype);
    case ScalarOperands::Bools:
      return dtype == DType::Bool;
    case ScalarOperands::Any:
      return true;
  }
  GSHARD_UNREACHABLE("operands");
}

std::string_view scalarOperandsText(ScalarOperands operands) {
  switch (operands) {
    case ScalarOperands::Floats:
      return "float types";
    case ScalarOperands::Numbers:
      return "number types";
    case ScalarOperands::Bools:
      return "bool";
    case ScalarOperands::Any:
      return "any type";
  }
  GSHARD_UNREACHABLE("operands");
}

DType scalarResultDtype(ScalarFn fn, DType operand, DType attribute) {
  switch (scalarInfo(fn).result) {
    case ScalarResult::Same:
      return operand;
    case ScalarResult::Bool:
      return DType::Bool;
    case ScalarResult::Attribute:
      return attribute;
  }
  GSHARD_UNREACHABLE("result");
}

std::variant<NotLinear, Joint, Separate> scalarLinearity(ScalarFn fn, DType operand, DType result) {
  switch (scalarInfo(fn).linearity) {
    case ScalarLinearity::None:
      return NotLinear{};
    case ScalarLinearity::Sum:
      return Joint{.over = only(Reduction::Sum), .which = allOperands};
    case ScalarLinearity::Max:
      return Joint{.over = only(Reduction::Max), .which = allOperands};
    case ScalarLinearity::Min:
      return Joint{.over = only(Reduction::Min), .which = allOperands};
    case ScalarLinearity::AnyOf:
      return Joint{.over = only(Reduction::Any), .which = allOperands};
    case ScalarLinearity::All:
      return Joint{.over = only(Reduction::All), .which = allOperands};
    case ScalarLinearity::AnyFactor:
      return Separate{.which = OperandMask{0b11}};
    case ScalarLinearity::FirstFactor:
      return Separate{.which = OperandMask{0b01}};
    case ScalarLinearity::Branches:
      return Joint{.over = anyReduction, .which = OperandMask{0b110}};
    case ScalarLinearity::Widening: {
      const bool widens =
          isFloat(operand) && (result == operand || (isFloat(result) && byteSize(result) > byteSize(operand)));
      if (!widens) return NotLinear{};
      return Joint{.over = only(Reduction::Sum) | only(Reduction::Max) | only(Reduction::Min), .which = allOperands};
    }
  }
  GSHARD_UNREACHABLE("linearity");
}

bool mayFail(ScalarFn fn, DType operand) {
  return (fn == ScalarFn::Floordiv || fn == ScalarFn::Mod) && isInteger(operand);
}

ScalarNumber evaluateScalar(ScalarFn fn, DType operand, DType result, std::span<const ScalarNumber> operands) {
  std::array<ScalarBackend::Value, 3> lanes;
  const std::size_t count = std::min(operands.size(), lanes.size());
  for (std::size_t i = 0; i < count; ++i) {
    const bool isCondition = fn == ScalarFn::Where && i == 0;
    lanes[i] = laneOf(isCondition ? DType::Bool : operand, operands[i]);
  }
  ScalarBackend backend;
  return numberOf(emitScalar(backend, fn, operand, result, std::span<const ScalarBackend::Value>(lanes.data(), count)));
}

}  // namespace gshard
