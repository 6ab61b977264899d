// The op table, and what is derived from it for all ops alike.
#pragma once

#include "ir/op_def.h"

namespace gshard {

#define GSHARD_OP(kind, file) extern const OpDef k##kind##Op;
#include "ir/ops/ops.def"
#undef GSHARD_OP

const OpDef& opDef(OpKind kind);
std::span<const OpKind> allOps();
std::optional<OpKind> opFromName(std::string_view name);  // name of ops.def; scalar functions are `map`

// Ops that exist in SPMD form only: collectives and the like.
bool isSpmdOnly(OpKind kind);

// May this op run with these operands partial along ONE mesh axis (absent: whole along it)? The reduction that its
// results are then partial with, or nothing: the pending reduction has to be completed first.
std::optional<Reduction> acceptPartial(const OpView& op, std::span<const std::optional<Reduction>> operands);

// Index maps of a move (ops whose lower is LowerMove, but reshape), one per result dim, for a piece of operand
// `operand`.
bool isMove(OpKind kind);
// Of an `exchange`: the move that it carries, nothing for a mere reshard; of a move: itself.
std::optional<OpKind> moveKindOf(const OpView& op);
std::vector<MoveDim> identityMap(const OpView& op);  // result dim i reads operand dim i
std::vector<MoveDim> moveMap(const OpView& op, std::size_t operand = 0, std::size_t piece = 0);
std::size_t movePieces(const OpView& op);  // per operand

}  // namespace gshard
