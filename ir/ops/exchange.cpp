// exchange: a move or a mere reshard with ANY shardings. Each device fetches the intersections of its result tile with
// the tiles of others: the fallback when no named collective fits, and never a gather in full.
#include "ir/spmd_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferExchange(const OpView& op, DiagSink& diag) {
  const std::string& move = op.stringAttr("move");
  if (move.empty()) return ResultTypes{op.operandType(0)};
  const std::optional<OpKind> kind = opFromName(move);
  if (!kind || !isMove(*kind)) {
    diag.emit(op.range(), diag::IrAttribute, "move", "exchange", "names no move: `" + move + "`");
    return std::nullopt;
  }
  for (const AttrSpec& spec : *opDef(*kind).attributes) {
    if (op.hasAttr(spec.name)) continue;
    diag.emit(op.range(), diag::IrAttribute, std::string(spec.name), "exchange",
              "is missing for its move `" + move + "`");
    return std::nullopt;
  }
  const OperandSpec& operands = *opDef(*kind).operands;
  const int count = static_cast<int>(op.operandCount());
  if (count < operands.least || (operands.most >= 0 && count > operands.most)) {
    diag.emit(op.range(), diag::OperandCount, move, std::to_string(operands.least), count);
    return std::nullopt;
  }
  return (*opDef(*kind).infer)(op, diag);
}

// Which dims belong together is the move's own knowledge.
static void exchangeFactors(const OpView& op, FactorBuilder& factors) {
  const std::optional<OpKind> move = moveKindOf(op);
  if (move) {
    (*opDef(*move).factors)(op, factors);
  } else {
    passThrough(op, factors);
  }
}

static std::optional<std::string> checkExchange(const OpView& op) {
  for (const ValueId operand : op.op().operands) {
    if (!shardingOf(op, operand).partial.empty()) return "an operand is partial";
  }
  if (!shardingOf(op, op.op().results[0]).partial.empty()) return "the result is partial";
  const std::optional<OpKind> move = moveKindOf(op);
  const bool isPad = move && *opDef(*move).name == "pad";
  if (isPad && !shardingOf(op, op.op().operands[1]).isReplicated()) return "the padding value is not replicated";
  return std::nullopt;
}

static void evaluateExchange(const OpView& op, EvalFrame& frame) {
  const std::optional<OpKind> move = moveKindOf(op);
  if (move) {
    (*opDef(*move).evaluate)(op, frame);
  } else {
    evaluateIdentity(op, frame);
  }
}

// `move` and, beside it, whatever attributes that move has.
static constexpr AttrSpec kAttributes[] = {
    {"move", AttrKind::String},         {"perm", AttrKind::Ints, true},  {"shape", AttrKind::Ints, true},
    {"dims", AttrKind::Ints, true},     {"start", AttrKind::Ints, true}, {"limit", AttrKind::Ints, true},
    {"step", AttrKind::Ints, true},     {"low", AttrKind::Ints, true},   {"high", AttrKind::Ints, true},
    {"interior", AttrKind::Ints, true}, {"dim", AttrKind::Int, true},    {"shift", AttrKind::Int, true}};
static constexpr Example kExamples[] = {
    {.args = "%x: f32[2, 3] {[a, _]}",
     .ir = "%y = exchange %x {move = \"\"} : f32[2, 3] {[_, a]}",
     .given = "[[1, 2, 3], [4, 5, 6]]",
     .expected = "[[1, 2, 3], [4, 5, 6]]"},
    {.args = "%x: f32[7] {[a]}",
     .ir = "%y = exchange %x {move = \"slice\", start = [2], limit = [7], step = [1]} : f32[5] {[a]}",
     .given = "[0, 1, 2, 3, 4, 5, 6]",
     .expected = "[2, 3, 4, 5, 6]"},
    {.args = "%x: f32[4, 3] {[a, _]}",
     .ir = "%y = exchange %x {move = \"reshape\", shape = [2, 6]} : f32[2, 6] {[_, a]}",
     .given = "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]",
     .expected = "[[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]"},
    {.args = "%x: f32[3] {[a]}, %z: f32[2] {[a]}",
     .ir = "%y = exchange %x, %z {move = \"concat\", dim = 0} : f32[5] {[a]}",
     .given = "[1, 2, 3]; [4, 5]",
     .expected = "[1, 2, 3, 4, 5]"},
    {.args = "%x: f32[5] {[a]}",
     .ir = "%y = exchange %x {move = \"roll\", dim = 0, shift = -2} : f32[5] {[a]}",
     .given = "[0, 1, 2, 3, 4]",
     .expected = "[2, 3, 4, 0, 1]"},
};

constinit const OpDef kExchangeOp = {
    .name = "exchange",
    .doc =
        "the result of `move` (or `x` itself) under any sharding: devices fetch what their tile needs from those that "
        "hold it",
    .operands = OperandSpec{"x…", 1, -1},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferExchange,
    .factors = &exchangeFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkExchange, .work = TileWork::Whole},
    .evaluate = &evaluateExchange,
    .lower = LowerCollective{},
};

}  // namespace gshard
