// Dims to factors and back; see the header.
#include "partition/factor_axes.h"

#include <algorithm>

namespace gshard {

std::vector<AxisList> cutAtFactors(const OpFactors& factors, const std::vector<int>& dimFactors, std::int64_t dimSize,
                                   const AxisList& axes) {
  AxisList prefix = axes;
  for (;;) {
    if (auto cut = axesOfFactors(factors, dimFactors, dimSize, prefix)) return *std::move(cut);
    prefix.pop_back();
  }
}

std::vector<AxisList> dimsOfFactors(const OpFactors::DimFactors& dims, const FactorAxes& axes) {
  std::vector<AxisList> result;
  for (const std::vector<int>& dimFactors : dims) {
    AxisList list;
    for (const int factor : dimFactors) {
      for (const AxisRef& ref : axes[static_cast<std::size_t>(factor)]) appendAxis(list, ref);
    }
    result.push_back(std::move(list));
  }
  return result;
}

namespace {

// Trims the factors of one dim; true when something was dropped.
bool trimDim(const OpFactors& factors, const std::vector<int>& dimFactors, std::int64_t dimSize, FactorAxes& axes) {
  if (dimFactors.size() < 2) return false;
  AxisList list;
  for (const int factor : dimFactors) {
    for (const AxisRef& ref : axes[static_cast<std::size_t>(factor)]) appendAxis(list, ref);
  }
  const std::vector<AxisList> cut = cutAtFactors(factors, dimFactors, dimSize, list);
  bool changed = false;
  for (std::size_t i = 0; i < dimFactors.size(); ++i) {
    AxisList& own = axes[static_cast<std::size_t>(dimFactors[i])];
    AxisList kept = commonPrefix(own, cut[i]);
    if (productOf(kept) == productOf(own)) continue;
    own = std::move(kept);
    changed = true;
  }
  return changed;
}

}  // namespace

void makeExpressible(const OpView& op, const OpFactors& factors, FactorAxes& axes) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const TensorRef& tensor : tensorsOf(factors)) {
      const OpFactors::DimFactors& dims = dimFactorsOf(factors, tensor);
      for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        changed = trimDim(factors, dims[dim], typeOf(op, tensor).shape[dim], axes) || changed;
      }
    }
  }
}

std::vector<TensorRef> tensorsOf(const OpFactors& factors) {
  std::vector<TensorRef> result;
  for (std::size_t i = 0; i < factors.operands.size(); ++i) result.push_back({false, i});
  for (std::size_t i = 0; i < factors.results.size(); ++i) result.push_back({true, i});
  return result;
}

const OpFactors::DimFactors& dimFactorsOf(const OpFactors& factors, TensorRef tensor) {
  return tensor.isResult ? factors.results[tensor.index] : factors.operands[tensor.index];
}

const Type& typeOf(const OpView& op, TensorRef tensor) {
  return tensor.isResult ? op.resultType(tensor.index) : op.operandType(tensor.index);
}

ValueId valueOf(const OpView& op, TensorRef tensor) {
  return tensor.isResult ? op.op().results[tensor.index] : op.op().operands[tensor.index];
}

}  // namespace gshard
