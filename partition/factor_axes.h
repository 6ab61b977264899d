// Between the dims of tensors and the factors of an op: which axes split which factor, and what that makes of a tensor.
// Propagation and the choice of a partitioning both speak of factors only and translate here.
#pragma once

#include "ir/op_table.h"
#include "partition/axis_list.h"

namespace gshard {

using FactorAxes = std::vector<AxisList>;  // per factor of an op, the axes that split it

// The axes of one dim as they fall on its factors: of as long a prefix of `axes` as factors can express.
std::vector<AxisList> cutAtFactors(const OpFactors& factors, const std::vector<int>& dimFactors, std::int64_t dimSize,
                                   const AxisList& axes);

// The split of a tensor whose dims have these factors.
std::vector<AxisList> dimsOfFactors(const OpFactors::DimFactors& dims, const FactorAxes& axes);

// Drops axes from the ends of factors until every tensor of the op can express the rest: a minor factor of a reshaped
// dim is split only when all before it are, fully and evenly.
void makeExpressible(const OpView& op, const OpFactors& factors, FactorAxes& axes);

// A tensor of an op: operands first, then results.
struct TensorRef {
  bool isResult = false;
  std::size_t index = 0;
};
std::vector<TensorRef> tensorsOf(const OpFactors& factors);
const OpFactors::DimFactors& dimFactorsOf(const OpFactors& factors, TensorRef tensor);
const Type& typeOf(const OpView& op, TensorRef tensor);
ValueId valueOf(const OpView& op, TensorRef tensor);

}  // namespace gshard
