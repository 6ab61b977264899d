// Shared rules of argmax, argmin and arg_candidates; see arg_reduce.h.
#include "ir/arg_reduce.h"

#include <cmath>

#include "ir/evaluate_loops.h"

namespace gshard {

bool winsOver(bool max, double candidate, double best) {
  if (std::isnan(best)) return false;
  return std::isnan(candidate) || (max ? candidate > best : candidate < best);
}

bool winsOver(bool max, std::int64_t candidate, std::int64_t best) {
  return max ? candidate > best : candidate < best;
}

std::optional<ResultTypes> inferArgReduce(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  const std::int64_t axis = op.intAttr("axis");
  if (!checkAxis(op, diag, axis, x)) return std::nullopt;
  if (x.dtype == DType::Bool) {
    diag.emit(op.range(), diag::DtypeNotAccepted, std::string(*opDef(op.op().kind).name), "numbers", "bool")
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  if (x.shape[static_cast<std::size_t>(axis)] == 0) {
    diag.emit(op.range(), diag::EmptyReduction, std::string(*opDef(op.op().kind).name), axis, printType(x))
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  Type result{DType::I32, x.shape};
  result.shape.erase(result.shape.begin() + axis);
  return ResultTypes{result};
}

void argReduceFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  std::int64_t at = 0;
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const bool isAxis = dim == op.intAttr("axis");
    const int factor =
        factors.add(isAxis ? FactorKind::Candidates : FactorKind::Pass, x.shape[static_cast<std::size_t>(dim)]);
    factors.operandDim(0, dim, factor);
    if (!isAxis) factors.resultDim(0, at++, factor);
  }
}

void evaluateArgReduce(const OpView& op, EvalFrame& frame, bool max) {
  const Tensor& x = frame.in(0);
  const std::int64_t axis = op.intAttr("axis");
  const std::int64_t size = op.operandType(0).shape[static_cast<std::size_t>(axis)];
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    Index index = toGlobal(local, frame.resultTiles[0]);
    index.insert(index.begin() + axis, 0);
    std::int64_t best = 0;
    Number bestNumber = numberAt(x, placeOf(index, x, frame.operandTiles[0]));
    for (std::int64_t i = 1; i < size; ++i) {
      index[static_cast<std::size_t>(axis)] = i;
      const Number number = numberAt(x, placeOf(index, x, frame.operandTiles[0]));
      const bool wins =
          x.isFloat() ? winsOver(max, number.real, bestNumber.real) : winsOver(max, number.integer, bestNumber.integer);
      if (!wins) continue;
      best = i;
      bestNumber = number;
    }
    frame.out().ints[static_cast<std::size_t>(flatOf(local, frame.out().type.shape))] = best;
  });
}

}  // namespace gshard
