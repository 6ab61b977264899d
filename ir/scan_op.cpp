// Shared rules of cumsum and cumsum_parts; see scan_op.h.
#include "ir/scan_op.h"

namespace gshard {

std::optional<ResultTypes> inferScan(const OpView& op, DiagSink& diag) {
  const Type& x = op.operandType(0);
  if (!checkAxis(op, diag, op.intAttr("axis"), x)) return std::nullopt;
  if (x.dtype == DType::Bool) {
    diag.emit(op.range(), diag::DtypeNotAccepted, std::string(*opDef(op.op().kind).name), "numbers", "bool")
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  return ResultTypes{Type{accumulatorOf(x.dtype), x.shape}};
}

void scanFactors(const OpView& op, FactorBuilder& factors) {
  const Type& x = op.operandType(0);
  for (std::int64_t dim = 0; dim < x.rank(); ++dim) {
    const FactorKind kind = dim == op.intAttr("axis") ? FactorKind::Scan : FactorKind::Pass;
    const int factor = factors.add(kind, x.shape[static_cast<std::size_t>(dim)]);
    factors.operandDim(0, dim, factor);
    factors.resultDim(0, dim, factor);
  }
}

void evaluateScan(const OpView& op, EvalFrame& frame, const std::function<Number(const Index&)>& start) {
  const Tensor& x = frame.in(0);
  const std::size_t axis = static_cast<std::size_t>(op.intAttr("axis"));
  const bool reverse = op.boolAttr("reverse"), exclusive = op.boolAttr("exclusive");
  const std::vector<Tile>& tiles = frame.resultTiles[0];
  const std::int64_t count = tiles[axis].live;
  if (count == 0) return;
  std::vector<std::int64_t> lanes = liveSizes(tiles);
  lanes[axis] = 1;
  forEachIndex(lanes, [&](const Index& lane) {
    Index local = lane;
    Number sum = start(toGlobal(lane, tiles));
    for (std::int64_t k = 0; k < count; ++k) {
      local[axis] = reverse ? count - 1 - k : k;
      const Number element = numberAt(x, placeOf(toGlobal(local, tiles), x, frame.operandTiles[0]));
      const Number next = reduceStep(Reduction::Sum, frame.out().type.dtype, sum, element, true);
      storeNumber(frame.out(), flatOf(local, frame.out().type.shape), exclusive ? sum : next);
      sum = next;
    }
  });
}

}  // namespace gshard
