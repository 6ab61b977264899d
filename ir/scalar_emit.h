// The value of every scalar function, once, over a math backend: emitScalar. The evaluator calls it with ScalarBackend,
// codegen/ with its LLVM backend. Heavy: include it in the .cpp that instantiates it only.
#pragma once

#include "ir/scalar_functions.h"
#include "ir/scalar_math.h"
#include "ir/scalar_math_basic.h"
#include "support/check.h"

namespace gshard {

namespace scalar_math {

// Functions whose result has the type of their float operands (F32 or F64 lanes).
template <class B, class F>
F emitFloat(B& b, ScalarFn fn, const std::array<F, 3>& x) {
  switch (fn) {
    case ScalarFn::Abs:
      return b.abs(x[0]);
    case ScalarFn::Add:
      return b.add(x[0], x[1]);
    case ScalarFn::Ceil:
      return b.ceil(x[0]);
    case ScalarFn::Clamp:
      return b.minimum(b.maximum(x[0], x[1]), x[2]);
    case ScalarFn::Cos:
      return cos(b, x[0]);
    case ScalarFn::Div:
      return b.div(x[0], x[1]);
    case ScalarFn::Erf:
      return erf(b, x[0]);
    case ScalarFn::Exp:
      return exp(b, x[0]);
    case ScalarFn::Expm1:
      return expm1(b, x[0]);
    case ScalarFn::Floor:
      return b.floor(x[0]);
    case ScalarFn::Floordiv:
      return floorDivFloat(b, x[0], x[1]);
    case ScalarFn::Log:
      return log(b, x[0]);
    case ScalarFn::Log1p:
      return log1p(b, x[0]);
    case ScalarFn::Maximum:
      return b.maximum(x[0], x[1]);
    case ScalarFn::Minimum:
      return b.minimum(x[0], x[1]);
    case ScalarFn::Mod:
      return modFloat(b, x[0], x[1]);
    case ScalarFn::Mul:
      return b.mul(x[0], x[1]);
    case ScalarFn::Neg:
      return b.neg(x[0]);
    case ScalarFn::Pow:
      return pow(b, x[0], x[1]);
    case ScalarFn::Relu:
      return b.maximum(x[0], b.constant(x[0], 0));
    case ScalarFn::Round:
      return b.roundEven(x[0]);
    case ScalarFn::Rsqrt:
      return b.div(b.constant(x[0], 1), b.sqrt(x[0]));
    case ScalarFn::Sign:
      return signFloat(b, x[0]);
    case ScalarFn::Sin:
      return sin(b, x[0]);
    case ScalarFn::Sqrt:
      return b.sqrt(x[0]);
    case ScalarFn::Sub:
      return b.sub(x[0], x[1]);
    case ScalarFn::Tan:
      return tan(b, x[0]);
    case ScalarFn::Tanh:
      return tanh(b, x[0]);
    case ScalarFn::And:
    case ScalarFn::Cast:
    case ScalarFn::Eq:
    case ScalarFn::Ge:
    case ScalarFn::Gt:
    case ScalarFn::IsFinite:
    case ScalarFn::IsInf:
    case ScalarFn::IsNan:
    case ScalarFn::Le:
    case ScalarFn::Lt:
    case ScalarFn::Ne:
    case ScalarFn::Not:
    case ScalarFn::Or:
    case ScalarFn::Where:
      break;
  }
  GSHARD_UNREACHABLE("no float value of this scalar function");
}

// The same for integers (I32 or I64 lanes); u8 is wrapped by the caller.
template <class B, class I>
I emitInteger(B& b, ScalarFn fn, const std::array<I, 3>& x, bool isUnsigned) {
  const auto larger = [&](I u, I v) { return b.select(b.lessInt(u, v), v, u); };
  const auto smaller = [&](I u, I v) { return b.select(b.lessInt(v, u), v, u); };
  switch (fn) {
    case ScalarFn::Abs:
      return b.select(b.lessInt(x[0], b.integer(x[0], 0)), b.subInt(b.integer(x[0], 0), x[0]), x[0]);
    case ScalarFn::Add:
      return b.addInt(x[0], x[1]);
    case ScalarFn::Clamp:
      return smaller(larger(x[0], x[1]), x[2]);
    case ScalarFn::Floordiv:
      return divModInt(b, x[0], x[1]).quotient;
    case ScalarFn::Maximum:
      return larger(x[0], x[1]);
    case ScalarFn::Minimum:
      return smaller(x[0], x[1]);
    case ScalarFn::Mod:
      return divModInt(b, x[0], x[1]).remainder;
    case ScalarFn::Mul:
      return b.mulInt(x[0], x[1]);
    case ScalarFn::Neg:
      return b.subInt(b.integer(x[0], 0), x[0]);
    case ScalarFn::Relu:
      return larger(x[0], b.integer(x[0], 0));
    case ScalarFn::Sign: {
      const I zero = b.integer(x[0], 0), one = b.integer(x[0], 1), minusOne = b.integer(x[0], -1);
      const I upper = b.select(b.lessInt(zero, x[0]), one, zero);
      return isUnsigned ? upper : b.select(b.lessInt(x[0], zero), minusOne, upper);
    }
    case ScalarFn::Sub:
      return b.subInt(x[0], x[1]);
    case ScalarFn::And:
    case ScalarFn::Cast:
    case ScalarFn::Ceil:
    case ScalarFn::Cos:
    case ScalarFn::Div:
    case ScalarFn::Eq:
    case ScalarFn::Erf:
    case ScalarFn::Exp:
    case ScalarFn::Expm1:
    case ScalarFn::Floor:
    case ScalarFn::Ge:
    case ScalarFn::Gt:
    case ScalarFn::IsFinite:
    case ScalarFn::IsInf:
    case ScalarFn::IsNan:
    case ScalarFn::Le:
    case ScalarFn::Log:
    case ScalarFn::Log1p:
    case ScalarFn::Lt:
    case ScalarFn::Ne:
    case ScalarFn::Not:
    case ScalarFn::Or:
    case ScalarFn::Pow:
    case ScalarFn::Round:
    case ScalarFn::Rsqrt:
    case ScalarFn::Sin:
    case ScalarFn::Sqrt:
    case ScalarFn::Tan:
    case ScalarFn::Tanh:
    case ScalarFn::Where:
      break;
  }
  GSHARD_UNREACHABLE("no integer value of this scalar function");
}

// Comparisons and tests of floats. `auto`: the backend's bool lanes.
template <class B, class F>
auto compareFloat(B& b, ScalarFn fn, F x, F y) {
  if (fn == ScalarFn::Eq) return b.equal(x, y);
  if (fn == ScalarFn::Ne) return b.logicalNot(b.equal(x, y));
  if (fn == ScalarFn::Lt) return b.less(x, y);
  if (fn == ScalarFn::Le) return b.lessEqual(x, y);
  if (fn == ScalarFn::Gt) return b.less(y, x);
  if (fn == ScalarFn::Ge) return b.lessEqual(y, x);
  if (fn == ScalarFn::IsNan) return b.isNan(x);
  if (fn == ScalarFn::IsInf) return b.equal(b.abs(x), b.constant(x, kInfinity));
  GSHARD_CHECK(fn == ScalarFn::IsFinite, "not a comparison of floats");
  return b.less(b.abs(x), b.constant(x, kInfinity));
}
template <class B, class I>
auto compareInteger(B& b, ScalarFn fn, I x, I y) {
  if (fn == ScalarFn::Eq) return b.equalInt(x, y);
  if (fn == ScalarFn::Ne) return b.logicalNot(b.equalInt(x, y));
  if (fn == ScalarFn::Lt) return b.lessInt(x, y);
  if (fn == ScalarFn::Le) return b.logicalNot(b.lessInt(y, x));
  if (fn == ScalarFn::Gt) return b.lessInt(y, x);
  GSHARD_CHECK(fn == ScalarFn::Ge, "not a comparison of integers");
  return b.logicalNot(b.lessInt(x, y));
}
template <class B, class P>
P emitBool(B& b, ScalarFn fn, P x, P y) {
  if (fn == ScalarFn::And) return b.logicalAnd(x, y);
  if (fn == ScalarFn::Or) return b.logicalOr(x, y);
  if (fn == ScalarFn::Not) return b.logicalNot(x);
  if (fn == ScalarFn::Ne) return b.logicalXor(x, y);
  GSHARD_CHECK(fn == ScalarFn::Eq, "no bool value of this scalar function");
  return b.logicalNot(b.logicalXor(x, y));
}

// F32 lanes rounded to what `dtype` can hold.
template <class B, class F>
F roundToFormat(B& b, DType dtype, F x) {
  if (dtype == DType::BF16) return roundToBf16(b, x);
  if (dtype == DType::F16) return roundToF16(b, x);
  return x;
}

template <class B, class F>
typename B::Value castFromFloat(B& b, F x, DType to) {
  switch (to) {
    case DType::F32:
      return b.toF32(x);
    case DType::F64:
      return b.toF64(x);
    case DType::BF16:
    case DType::F16:
      if (b.isDouble(x)) return roundToFormat(b, to, toF32RoundedToOdd(b, b.toF64(x)));
      return roundToFormat(b, to, b.toF32(x));
    case DType::I32:
      return clampedToI32(b, x, -0x1p31, 0x1p31, 0x7fffffff);
    case DType::U8:
      return clampedToI32(b, x, 0, 256, 255);
    case DType::I64:
      return clampedToI64(b, x);
    case DType::Bool:
      return b.logicalNot(b.equal(x, b.constant(x, 0)));
  }
  GSHARD_UNREACHABLE("dtype");
}
template <class B, class I>
typename B::Value castFromInteger(B& b, I n, DType to) {
  switch (to) {
    case DType::F32:
      return b.toF32(n);
    case DType::F64:
      return b.toF64(n);
    case DType::BF16:
    case DType::F16: {
      // By way of f64, which holds every i32; of an i64 it holds the leading bits, rounded to odd below.
      if (!b.isLong(n)) return roundToFormat(b, to, toF32RoundedToOdd(b, b.toF64(n)));
      const auto sticky = b.andInt(n, b.integer(n, 0x7ff));
      const auto isLarge = b.lessInt(b.integer(n, std::int64_t{1} << 52),
                                     b.select(b.lessInt(n, b.integer(n, 0)), b.subInt(b.integer(n, 0), n), n));
      const auto cleared = b.subInt(n, sticky);
      const auto odd = b.select(b.equalInt(sticky, b.integer(n, 0)), cleared, b.orInt(cleared, b.integer(n, 0x400)));
      return roundToFormat(b, to, toF32RoundedToOdd(b, b.toF64(b.select(isLarge, odd, n))));
    }
    case DType::I32:
      return b.toI32(n);
    case DType::U8: {
      const auto low = b.toI32(n);
      return b.andInt(low, b.integer(low, 0xff));
    }
    case DType::I64:
      return b.toI64(n);
    case DType::Bool:
      return b.logicalNot(b.equalInt(n, b.integer(n, 0)));
  }
  GSHARD_UNREACHABLE("dtype");
}

}  // namespace scalar_math

// `args`: lanes of the operands as ir/scalar_backend.h states for their dtypes (`where`: a Bool first). `operand` is
// the dtype of the operands (of `where`: of its branches), `result` that of the result. Integer division by zero gives
// 0.
template <class B>
typename B::Value emitScalar(B& b, ScalarFn fn, DType operand, DType result, std::span<const typename B::Value> args) {
  using Value = typename B::Value;
  const ScalarInfo& info = scalarInfo(fn);
  const std::size_t last = args.size() - 1;
  const auto at = [&](std::size_t i) -> const Value& { return args[std::min(i, last)]; };

  if (fn == ScalarFn::Where) {
    const auto condition = b.boolean(args[0]);
    switch (operand) {
      case DType::F32:
      case DType::BF16:
      case DType::F16:
        return b.select(condition, b.f32(args[1]), b.f32(args[2]));
      case DType::F64:
        return b.select(condition, b.f64(args[1]), b.f64(args[2]));
      case DType::I32:
      case DType::U8:
        return b.select(condition, b.i32(args[1]), b.i32(args[2]));
      case DType::I64:
        return b.select(condition, b.i64(args[1]), b.i64(args[2]));
      case DType::Bool:
        return b.select(condition, b.boolean(args[1]), b.boolean(args[2]));
    }
  }
  const auto ofFloat = [&](auto x, auto y, auto z) -> Value {
    if (fn == ScalarFn::Cast) return scalar_math::castFromFloat(b, x, result);
    if (info.result == ScalarResult::Bool) return scalar_math::compareFloat(b, fn, x, y);
    return scalar_math::roundToFormat(b, result, scalar_math::emitFloat(b, fn, std::array{x, y, z}));
  };
  const auto ofInteger = [&](auto x, auto y, auto z) -> Value {
    if (fn == ScalarFn::Cast) return scalar_math::castFromInteger(b, x, result);
    if (info.result == ScalarResult::Bool) return scalar_math::compareInteger(b, fn, x, y);
    const auto value = scalar_math::emitInteger(b, fn, std::array{x, y, z}, operand == DType::U8);
    return operand == DType::U8 ? b.andInt(value, b.integer(value, 0xff)) : value;
  };
  switch (operand) {
    case DType::F32:
    case DType::BF16:
    case DType::F16:
      return ofFloat(b.f32(at(0)), b.f32(at(1)), b.f32(at(2)));
    case DType::F64:
      return ofFloat(b.f64(at(0)), b.f64(at(1)), b.f64(at(2)));
    case DType::I32:
    case DType::U8:
      return ofInteger(b.i32(at(0)), b.i32(at(1)), b.i32(at(2)));
    case DType::I64:
      return ofInteger(b.i64(at(0)), b.i64(at(1)), b.i64(at(2)));
    case DType::Bool: {
      const auto x = b.boolean(at(0));
      if (fn != ScalarFn::Cast) return scalar_math::emitBool(b, fn, x, b.boolean(at(1)));
      if (result == DType::Bool) return x;
      return scalar_math::castFromInteger(b, b.boolToI32(x), result);
    }
  }
  GSHARD_UNREACHABLE("dtype");
}

}  // namespace gshard
