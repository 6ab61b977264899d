// Derivatives of the scalar functions, each as the ops that compute it. g is the gradient of the result, y the result.
#include "ir/scalar_gradients.h"

#include <numbers>

#include "ir/builder.h"

namespace gshard::scalar_gradients {

namespace {

// Formulas in a few letters: every operation is a `map`.
class Formula {
 public:
  explicit Formula(const ScalarGradientArgs& args) : args_(&args), dtype_(args.builder.type(args.gradient).dtype) {}

  ValueId g() const { return args_->gradient; }
  ValueId y() const { return args_->result; }
  ValueId x(std::size_t i = 0) const { return args_->operands[i]; }
  ValueId map(std::string_view fn, std::vector<ValueId> operands) const {
    return args_->builder.map(fn, std::move(operands), args_->range);
  }
  ValueId number(double value) const { return args_->builder.scalar(dtype_, value, args_->range); }
  ValueId add(ValueId a, ValueId b) const { return map("add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) const { return map("sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) const { return map("mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) const { return map("div", {a, b}); }
  ValueId neg(ValueId a) const { return map("neg", {a}); }
  ValueId square(ValueId a) const { return mul(a, a); }
  ValueId where(ValueId condition, ValueId a, ValueId b) const { return map("where", {condition, a, b}); }

 private:
  const ScalarGradientArgs* args_;
  DType dtype_;
};

// g where operand `operand` alone is the result, half of it at a tie, else nothing. `better`: "gt" or "lt".
ValueId gradientOfExtreme(const ScalarGradientArgs& args, std::size_t operand, std::string_view better) {
  const Formula f(args);
  const ValueId mine = f.x(operand), other = f.x(1 - operand), zero = f.number(0);
  const ValueId atTie = f.where(f.map("eq", {mine, other}), f.mul(f.g(), f.number(0.5)), zero);
  // A NaN wins, and so takes the gradient; two of them share it.
  const ValueId mineIsNan = f.map("is_nan", {mine}), otherIsNan = f.map("is_nan", {other});
  const ValueId share = f.where(otherIsNan, f.mul(f.g(), f.number(0.5)), f.g());
  const ValueId numbers = f.where(f.map(better, {mine, other}), f.g(), atTie);
  return f.where(mineIsNan, share, numbers);
}

}  // namespace

ValueId gradientAbs(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.mul(f.g(), f.map("sign", {f.x()}));
}

ValueId gradientAdd(const ScalarGradientArgs& args, std::size_t) {
  return args.gradient;
}

ValueId gradientCast(const ScalarGradientArgs& args, std::size_t) {
  return args.builder.cast(args.gradient, args.builder.type(args.operands[0]).dtype, args.range);
}

// minimum(maximum(x, low), high), but a bound that x just reaches leaves x the whole gradient.
ValueId gradientClamp(const ScalarGradientArgs& args, std::size_t operand) {
  const Formula f(args);
  const ValueId isLow = f.map("lt", {f.x(0), f.x(1)});
  const ValueId isHigh = f.map("gt", {f.x(0), f.x(2)});
  const ValueId boundsCross = f.map("gt", {f.x(1), f.x(2)});  // then high is the result
  const ValueId zero = f.number(0);
  if (operand == 0) return f.where(f.map("or", {f.map("or", {isLow, isHigh}), boundsCross}), zero, f.g());
  if (operand == 1) return f.where(f.map("and", {isLow, f.map("not", {boundsCross})}), f.g(), zero);
  return f.where(f.map("or", {isHigh, boundsCross}), f.g(), zero);
}

ValueId gradientCos(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.neg(f.mul(f.g(), f.map("sin", {f.x()})));
}

ValueId gradientDiv(const ScalarGradientArgs& args, std::size_t operand) {
  const Formula f(args);
  if (operand == 0) return f.div(f.g(), f.x(1));
  return f.neg(f.div(f.mul(f.g(), f.y()), f.x(1)));
}

ValueId gradientErf(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  const ValueId bell = f.map("exp", {f.neg(f.square(f.x()))});
  return f.mul(f.g(), f.mul(bell, f.number(2 * std::numbers::inv_sqrtpi)));
}

ValueId gradientExp(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.mul(f.g(), f.y());
}

ValueId gradientExpm1(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.mul(f.g(), f.map("exp", {f.x()}));
}

ValueId gradientLog(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.div(f.g(), f.x());
}

ValueId gradientLog1p(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.div(f.g(), f.add(f.x(), f.number(1)));
}

ValueId gradientMaximum(const ScalarGradientArgs& args, std::size_t operand) {
  return gradientOfExtreme(args, operand, "gt");
}

ValueId gradientMinimum(const ScalarGradientArgs& args, std::size_t operand) {
  return gradientOfExtreme(args, operand, "lt");
}

// x - floordiv(x, y) y, the quotient being constant between its steps.
ValueId gradientMod(const ScalarGradientArgs& args, std::size_t operand) {
  const Formula f(args);
  if (operand == 0) return f.g();
  return f.neg(f.mul(f.g(), f.map("floordiv", {f.x(0), f.x(1)})));
}

ValueId gradientMul(const ScalarGradientArgs& args, std::size_t operand) {
  const Formula f(args);
  return f.mul(f.g(), f.x(1 - operand));
}

ValueId gradientNeg(const ScalarGradientArgs& args, std::size_t) {
  return Formula(args).neg(args.gradient);
}

// d/dx = y x^(y-1), 0 where the exponent is 0; d/dy = log(x) x^y, 0 where the base is 0 and the result with it.
ValueId gradientPow(const ScalarGradientArgs& args, std::size_t operand) {
  const Formula f(args);
  const ValueId base = f.x(0), exponent = f.x(1), zero = f.number(0);
  if (operand == 0) {
    const ValueId slope = f.mul(exponent, f.map("pow", {base, f.sub(exponent, f.number(1))}));
    return f.where(f.map("eq", {exponent, zero}), zero, f.mul(f.g(), slope));
  }
  const ValueId isZero = f.map("and", {f.map("eq", {base, zero}), f.map("ge", {exponent, zero})});
  const ValueId logarithm = f.map("log", {f.where(isZero, f.number(1), base)});
  return f.where(isZero, zero, f.mul(f.g(), f.mul(f.y(), logarithm)));
}

// From the result, which is positive where x is: then x need not be kept.
ValueId gradientRelu(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  const ValueId zero = f.number(0);
  return f.where(f.map("gt", {f.y(), zero}), f.g(), zero);
}

ValueId gradientRsqrt(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.mul(f.g(), f.mul(f.number(-0.5), f.div(f.y(), f.x())));
}

ValueId gradientSin(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.mul(f.g(), f.map("cos", {f.x()}));
}

ValueId gradientSqrt(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.div(f.mul(f.g(), f.number(0.5)), f.y());
}

ValueId gradientSub(const ScalarGradientArgs& args, std::size_t operand) {
  return operand == 0 ? args.gradient : Formula(args).neg(args.gradient);
}

ValueId gradientTan(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.mul(f.g(), f.add(f.number(1), f.square(f.y())));
}

ValueId gradientTanh(const ScalarGradientArgs& args, std::size_t) {
  const Formula f(args);
  return f.mul(f.g(), f.sub(f.number(1), f.square(f.y())));
}

ValueId gradientWhere(const ScalarGradientArgs& args, std::size_t operand) {
  const Formula f(args);
  if (operand == 0) return ValueId{};
  const ValueId zero = f.number(0);
  return operand == 1 ? f.where(f.x(0), f.g(), zero) : f.where(f.x(0), zero, f.g());
}

}  // namespace gshard::scalar_gradients
