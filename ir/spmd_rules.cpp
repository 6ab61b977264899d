// Shared rules of SPMD ops; see spmd_rules.h.
#include "ir/spmd_rules.h"

#include "support/check.h"

namespace gshard {

bool tilesNestIn(std::int64_t dim, std::int64_t a, std::int64_t b) {
  return a == 1 || b == 1 || b * partSize(dim, a * b) == partSize(dim, a);  // any part of an unsplit dim lies in it
}

std::optional<std::string> checkMinorAxes(const OpView& op, const Sharding& whole, const Sharding& split,
                                          std::int64_t dim, const std::vector<AxisRef>& axes, std::size_t operand) {
  const std::size_t at = static_cast<std::size_t>(dim);
  if (at >= whole.dims.size()) return "operand " + std::to_string(operand) + " has no dim " + std::to_string(dim);
  Sharding expected = whole;
  expected.dims[at].insert(expected.dims[at].end(), axes.begin(), axes.end());
  expected = canonical(op.mesh(), expected);
  if (expected.dims != split.dims) {
    return "dims are `" + printSharding(op.mesh(), split) + "`, but `" + printSharding(op.mesh(), expected) +
           "` follows";
  }
  const std::int64_t size = op.operandType(operand).shape[at];
  if (!tilesNestIn(size, productOf(whole.dims[at]), productOf(axes))) {
    return "tiles of dim " + std::to_string(dim) + " of size " + std::to_string(size) + " do not nest";
  }
  return std::nullopt;
}

std::optional<std::string> checkPending(const OpView& op, const Sharding& done, const Sharding& pending,
                                        const std::vector<AxisRef>& axes, Reduction reduction) {
  Sharding expected = done;
  for (const AxisRef& axis : axes) expected.partial.push_back({axis, reduction});
  expected = canonical(op.mesh(), expected);
  if (expected.partial == pending.partial) return std::nullopt;
  return "pending reductions are `" + printSharding(op.mesh(), pending) + "`, but `" +
         printSharding(op.mesh(), expected) + "` follows";
}

Reduction reductionAttr(const OpView& op) {
  const std::optional<Reduction> reduction = reductionFromName(op.stringAttr("reduction"));
  GSHARD_CHECK(reduction.has_value(), "`" + op.stringAttr("reduction") + "` is no reduction");
  return *reduction;
}

std::optional<ResultTypes> inferCollective(const OpView& op, DiagSink& diag) {
  for (const char* name : {"dim", "split_dim", "concat_dim"}) {
    if (op.hasAttr(name) && !checkAxis(op, diag, op.intAttr(name), op.operandType(0))) return std::nullopt;
  }
  if (op.hasAttr("reduction") && !reductionFromName(op.stringAttr("reduction"))) {
    diag.emit(op.range(), diag::IrAttribute, "reduction", std::string(*opDef(op.op().kind).name),
              "is none of sum, prod, max, min, any, all");
    return std::nullopt;
  }
  ResultTypes types;
  for (std::size_t i = 0; i < op.operandCount(); ++i) types.push_back(op.operandType(i));
  return types;
}

}  // namespace gshard
