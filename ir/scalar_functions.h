// The table of scalar functions that `map` applies: names, dtypes, linearity and gradients from scalar_functions.def.
// Values are templates over a math backend (ir/scalar_emit.h), kept out of this header because they are long.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "ir/op_def.h"

namespace gshard {

enum class ScalarFn : std::uint8_t {
#define GSHARD_SCALAR(fn, name, arity, operands, result, linearity, gradient, doc) fn,
#include "ir/scalar_functions.def"
#undef GSHARD_SCALAR
};

enum class ScalarOperands : std::uint8_t { Floats, Numbers, Bools, Any };
enum class ScalarResult : std::uint8_t { Same, Bool, Attribute };
enum class ScalarLinearity : std::uint8_t {
  None,         // not linear
  Sum,          // joint over sum, all operands
  Max,          // joint over max
  Min,          // joint over min
  AnyOf,        // joint over any
  All,          // joint over all
  AnyFactor,    // separate: one of the two operands
  FirstFactor,  // separate: operand 0 only
  Branches,     // joint over any reduction, operands 1 and 2
  Widening,     // joint over sum, max and min where it is a cast to a wider float type, else not linear
};

// What a gradient function gets: op `map` with these operands and result, and the gradient of the result.
struct ScalarGradientArgs {
  Builder& builder;
  std::span<const ValueId> operands;
  ValueId result;
  ValueId gradient;
  SourceRange range;
};
// The gradient of operand i in the shape of the result (the map's vjp sums it down to the operand's shape); an unknown
// id when that operand has none (a condition).
using ScalarGradientFn = ValueId (*)(const ScalarGradientArgs& args, std::size_t operand);

struct ScalarInfo {
  ScalarFn fn;
  std::string_view name;
  int arity;
  ScalarOperands operands;
  ScalarResult result;
  ScalarLinearity linearity;
  ScalarGradientFn gradient;  // null: no gradient flows
  std::string_view doc;
};

const ScalarInfo& scalarInfo(ScalarFn fn);
std::span<const ScalarInfo> allScalarFunctions();  // sorted by name
std::optional<ScalarFn> scalarFromName(std::string_view name);

bool acceptsDtype(ScalarOperands operands, DType dtype);
std::string_view scalarOperandsText(ScalarOperands operands);  // "float types"
// Result dtype for operands of `operand` dtype (for `where`: of its branches); `attribute`: cast's `dtype`.
DType scalarResultDtype(ScalarFn fn, DType operand, DType attribute);
std::variant<NotLinear, Joint, Separate> scalarLinearity(ScalarFn fn, DType operand, DType result);
// Can it be a run-time error (integer division by zero)?
bool mayFail(ScalarFn fn, DType operand);

// ---- values, for the evaluator and constant folding
// A number of one dtype as the evaluator holds it: float dtypes in `real`, the others in `integer` (bool: 0 or 1).
struct ScalarNumber {
  double real = 0;
  std::int64_t integer = 0;
};
// `operand`: dtype of the operands (for `where` of its branches), `result`: dtype of the result.
ScalarNumber evaluateScalar(ScalarFn fn, DType operand, DType result, std::span<const ScalarNumber> operands);

// The vjp of op `map` (ir/map_gradient.cpp): the scalar function's gradient, summed over broadcast dims.
void mapVjp(const OpView& op, std::span<const ValueId> resultGradients, GradBuilder& builder);

}  // namespace gshard
