// Derivatives of the scalar functions: one builder function per name in the `gradient` column of scalar_functions.def.
// Apart from the table so that it reads as a page of formulas.
#pragma once

#include "ir/scalar_functions.h"

namespace gshard::scalar_gradients {

constexpr ScalarGradientFn kNone = nullptr;

#define GSHARD_GRADIENT(name)                                                  \
  ValueId gradient##name(const ScalarGradientArgs& args, std::size_t operand); \
  constexpr ScalarGradientFn k##name = &gradient##name;
GSHARD_GRADIENT(Abs)
GSHARD_GRADIENT(Add)
GSHARD_GRADIENT(Cast)
GSHARD_GRADIENT(Clamp)
GSHARD_GRADIENT(Cos)
GSHARD_GRADIENT(Div)
GSHARD_GRADIENT(Erf)
GSHARD_GRADIENT(Exp)
GSHARD_GRADIENT(Expm1)
GSHARD_GRADIENT(Log)
GSHARD_GRADIENT(Log1p)
GSHARD_GRADIENT(Maximum)
GSHARD_GRADIENT(Minimum)
GSHARD_GRADIENT(Mod)
GSHARD_GRADIENT(Mul)
GSHARD_GRADIENT(Neg)
GSHARD_GRADIENT(Pow)
GSHARD_GRADIENT(Relu)
GSHARD_GRADIENT(Rsqrt)
GSHARD_GRADIENT(Sin)
GSHARD_GRADIENT(Sqrt)
GSHARD_GRADIENT(Sub)
GSHARD_GRADIENT(Tan)
GSHARD_GRADIENT(Tanh)
GSHARD_GRADIENT(Where)
#undef GSHARD_GRADIENT

}  // namespace gshard::scalar_gradients
