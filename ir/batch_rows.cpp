// Rows are followed forward, factor by factor.
#include "ir/batch_rows.h"

#include "ir/factors.h"

namespace gshard {

namespace {

// The one factor of `op` that holds rows; -1 if none does, nothing if rows are not followed further.
std::optional<int> rowFactorOf(const Function& function, const Op& op, const OpFactors& factors) {
  int rows = -1;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const std::int64_t dim = function.value(op.operands[i]).rowDim;
    if (dim < 0) continue;
    const std::vector<int>& list = factors.operands[i][static_cast<std::size_t>(dim)];
    if (list.empty() || (rows >= 0 && rows != list.front())) return std::nullopt;
    rows = list.front();
    if (factors.factors[static_cast<std::size_t>(rows)].size % function.rows != 0) return std::nullopt;
  }
  return rows;
}

bool markResults(Function& function, const Op& op, const OpFactors& factors, int rows) {
  const FactorKind kind = factors.factors[static_cast<std::size_t>(rows)].kind;
  if (kind != FactorKind::Pass && kind != FactorKind::Reduce) return false;
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    for (std::size_t dim = 0; dim < factors.results[r].size(); ++dim) {
      const std::vector<int>& list = factors.results[r][dim];
      for (std::size_t k = 0; k < list.size(); ++k) {
        if (list[k] != rows) continue;
        if (k != 0) return false;
        function.value(op.results[r]).rowDim = static_cast<std::int64_t>(dim);
      }
    }
  }
  return true;
}

}  // namespace

bool markBatchRows(const Module& module, Function& function) {
  Function marked = function;
  for (const Op& op : marked.ops) {
    if (op.kind == OpKind::DimSize) continue;
    const OpFactors factors = factorsOf(OpView(module, marked, op));
    const std::optional<int> rows = rowFactorOf(marked, op, factors);
    if (!rows) return false;
    if (*rows >= 0 && !markResults(marked, op, factors, *rows)) return false;
  }
  function = std::move(marked);
  return true;
}

}  // namespace gshard
