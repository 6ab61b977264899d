// erf over a math backend. f32: two polynomials, the tail as 1 - exp(p). f64: x + x P(x^2) below 1, 1 - exp(-x^2) G
// above, with P and G = exp(x^2) erfc(x) fitted in 50 digits (weighted least squares at Chebyshev nodes; errors 2e-17
// and 4e-18).
#pragma once

#include "ir/scalar_math.h"

namespace gshard::scalar_math {

template <class B, class F>
F erf32(B& b, F x) {
  const F t = b.abs(x);
  const F s = b.mul(x, x);
  // log(erfc(t)) + t is small and smooth; from 4 on erf rounds to 1, and the polynomial need not hold.
  const F far = b.minimum(t, b.constant(x, 4));
  const F p = polynomial(
      b, far,
      {-1.28717512e-1, -6.34846687e-1, -1.06777877e-1, 2.42546219e-2, -3.88396438e-3, 3.83197126e-4, -1.72853470e-5});
  const F outer = b.sub(b.constant(x, 1), exp(b, b.fma(p, far, b.neg(far))));
  const F q =
      polynomial(b, s, {1.28379166e-1, -3.76125336e-1, 1.12819925e-1, -2.67681349e-2, 4.99119423e-3, -5.96761703e-4});
  const F inner = b.fma(q, x, x);
  return b.select(b.less(b.constant(x, 0.927734375), t), withSignOf(b, outer, x), inner);
}

template <class B, class F>
F erf64(B& b, F x) {
  const F t = b.abs(x);
  const F s = b.mul(x, x);
  const F p =
      polynomial(b, s,
                 {0.12837916709551256, -0.37612638903183543, 0.1128379167094513, -0.026866170643256995,
                  0.005223977607269946, -0.0008548325982543225, 0.00012055295112667001, -1.4924740785377576e-05,
                  1.6447471190594618e-06, -1.6208829856810202e-07, 1.3721520406351094e-08, -7.798543850549947e-10});
  const F inner = b.fma(p, x, x);
  const F far = b.minimum(t, b.constant(x, 6));  // from here on erf rounds to 1
  const F two = b.constant(x, 2);
  const F u = b.div(b.sub(far, two), b.add(far, two));
  const F g = polynomial(
      b, u,
      {0.25539567631050575, -0.4271858474139569, 0.2416581942424757, -0.0789785810163214, 0.0037328923980163072,
       0.006997461772755876, -0.0008471426246477066, -0.0009819761139442803, 4.3538426507017714e-05,
       0.00017428950749313695, 2.7600337279531513e-05, -2.6677083698534772e-05, -1.2700500214536305e-05});
  const F outer = b.fma(b.neg(exp(b, b.neg(b.mul(far, far)))), g, b.constant(x, 1));
  return b.select(b.less(t, b.constant(x, 1)), inner, withSignOf(b, outer, x));
}

template <class B, class F>
F erf(B& b, F x) {
  const F y = b.isDouble(x) ? erf64(b, x) : erf32(b, x);
  return b.select(b.isNan(x), x, y);
}

}  // namespace gshard::scalar_math
