// Builder functions of the builtins, one per row kind of builtins.def, by group: each turns a checked call into ops, or
// folds compile-time values.
#pragma once

#include "sema/builtin_call.h"

namespace gshard::sema {

// elementwise (builtins_elementwise.cpp)
Datum buildUnary(BuiltinCall& call);
Datum buildMaximum(BuiltinCall& call);
Datum buildIntegerDivision(BuiltinCall& call);
Datum buildWhere(BuiltinCall& call);
Datum buildClamp(BuiltinCall& call);
Datum buildCast(BuiltinCall& call);
Datum buildStopGradient(BuiltinCall& call);

// about values (builtins_inquiry.cpp)
Datum buildInt(BuiltinCall& call);
Datum buildFloat(BuiltinCall& call);
Datum buildLen(BuiltinCall& call);
Datum buildRank(BuiltinCall& call);
Datum buildShape(BuiltinCall& call);
Datum buildDType(BuiltinCall& call);
Datum buildGrad(BuiltinCall& call);
Datum buildNotSupported(BuiltinCall& call);

// reductions (builtins_reduce.cpp)
Datum buildReduction(BuiltinCall& call);
Datum buildMinMax(BuiltinCall& call);
Datum buildMean(BuiltinCall& call);
Datum buildVariance(BuiltinCall& call);
Datum buildArgReduction(BuiltinCall& call);

// products (builtins_products.cpp)
Datum buildMatmul(BuiltinCall& call);
Datum buildEinsum(BuiltinCall& call);

// shape (builtins_shape.cpp)
Datum buildReshape(BuiltinCall& call);
Datum buildTranspose(BuiltinCall& call);
Datum buildBroadcast(BuiltinCall& call);
Datum buildConcat(BuiltinCall& call);
Datum buildStack(BuiltinCall& call);
Datum buildSplit(BuiltinCall& call);
Datum buildPad(BuiltinCall& call);
Datum buildReverse(BuiltinCall& call);
Datum buildRoll(BuiltinCall& call);

// made from nothing, and indexing (builtins_index.cpp)
Datum buildConstantTensor(BuiltinCall& call);
Datum buildFull(BuiltinCall& call);
Datum buildLike(BuiltinCall& call);
Datum buildIota(BuiltinCall& call);
Datum buildTake(BuiltinCall& call);
Datum buildScatterAdd(BuiltinCall& call);
Datum buildOneHot(BuiltinCall& call);
Datum buildDynamicSlice(BuiltinCall& call);
Datum buildDynamicUpdate(BuiltinCall& call);

// order along an axis (builtins_order.cpp)
Datum buildCumsum(BuiltinCall& call);
Datum buildSort(BuiltinCall& call);
Datum buildTopK(BuiltinCall& call);

// Mixture of Experts (builtins_moe.cpp)
Datum buildRoute(BuiltinCall& call);
Datum buildMoeDispatch(BuiltinCall& call);
Datum buildMoeCombine(BuiltinCall& call);

// random (builtins_random.cpp)
Datum buildRandom(BuiltinCall& call);
Datum buildRandomInt(BuiltinCall& call);
Datum buildDropout(BuiltinCall& call);

}  // namespace gshard::sema
