// Index maps of moves: each op file says its own; here an `exchange` reads that of the move it carries.
#include "ir/op_table.h"
#include "support/check.h"

namespace gshard {

std::vector<MoveDim> identityMap(const OpView& op) {
  std::vector<MoveDim> dims(op.operandType(0).shape.size());
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i].operandDim = static_cast<std::int64_t>(i);
  return dims;
}

std::optional<OpKind> moveKindOf(const OpView& op) {
  if (!op.hasAttr("move")) return op.op().kind;
  if (op.stringAttr("move").empty()) return std::nullopt;
  const std::optional<OpKind> kind = opFromName(op.stringAttr("move"));
  GSHARD_CHECK(kind && isMove(*kind), "`" + op.stringAttr("move") + "` is no move");
  return kind;
}

std::vector<MoveDim> moveMap(const OpView& op, std::size_t operand, std::size_t piece) {
  const std::optional<OpKind> kind = moveKindOf(op);
  if (!kind) return identityMap(op);
  const LowerMove* move = std::get_if<LowerMove>(&*opDef(*kind).lower);
  GSHARD_CHECK(move != nullptr && move->map != nullptr, "`" + std::string(*opDef(*kind).name) + "` has no move map");
  return move->map(op, operand, piece);
}

std::size_t movePieces(const OpView& op) {
  const std::optional<OpKind> kind = moveKindOf(op);
  return kind ? std::get<LowerMove>(*opDef(*kind).lower).pieces : 1;
}

}  // namespace gshard
