// Shared rules of dynamic_slice and dynamic_update; see window_op.h.
#include "ir/window_op.h"

#include <algorithm>

namespace gshard {

bool checkWindow(const OpView& op, DiagSink& diag, const std::vector<std::int64_t>& size, std::size_t first) {
  const Type& x = op.operandType(0);
  if (!checkLength(op, diag, "size", size, x)) return false;
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (size[i] >= 0 && size[i] <= x.shape[i]) continue;
    diag.emit(op.range(), diag::SliceBounds, std::int64_t{0}, size[i], static_cast<std::int64_t>(i), x.shape[i])
        .label(op.operandRange(0), "this operand");
    return false;
  }
  const std::int64_t starts = static_cast<std::int64_t>(op.operandCount() - first);
  if (starts != x.rank()) {
    diag.emit(op.range(), diag::DimListLength, "start", starts, printType(x), x.rank());
    return false;
  }
  for (std::size_t i = first; i < op.operandCount(); ++i) {
    if (!checkIndexDtype(op, diag, i)) return false;
    if (op.operandType(i).isScalar()) continue;
    diag.emit(op.range(), diag::StartNoScalar, static_cast<std::int64_t>(i - first), printType(op.operandType(i)))
        .label(op.operandRange(i), "this start");
    return false;
  }
  return true;
}

Index windowStart(const OpView& op, EvalFrame& frame, const std::vector<std::int64_t>& size, std::size_t first) {
  Index start(size.size());
  for (std::size_t i = 0; i < size.size(); ++i) {
    const std::int64_t wanted = frame.in(first + i).ints[0];
    const std::int64_t last = op.operandType(0).shape[i] - size[i];
    start[i] = std::clamp<std::int64_t>(wanted, 0, last);
    if (start[i] == wanted) continue;
    frame.fault(static_cast<std::int64_t>(i), "start " + std::to_string(wanted) + " of dim " + std::to_string(i) +
                                                  " lies outside 0 to " + std::to_string(last));
  }
  return start;
}

std::vector<ValueId> startsOf(const OpView& op, std::size_t first) {
  return {op.op().operands.begin() + static_cast<std::ptrdiff_t>(first), op.op().operands.end()};
}

}  // namespace gshard
