// route: which experts a token goes to, in which slots, with which weights (GShard, algorithm 1, per group). The k
// largest gates of a token are its choices. Slots are handed out in the order of tokens, all first choices before all
// second ones; a choice that finds its expert full is dropped. The rules beyond the paper's are those of moe.md
// section 1.
#include <algorithm>
#include <cmath>

#include "ir/moe_op.h"

namespace gshard {

namespace {

constexpr std::string_view kRest[] = {"all", "none", "random", "threshold"};
constexpr std::string_view kNormalise[] = {"after_drop", "before_drop", "none"};

bool isRandom(const OpView& op) {
  return op.stringAttr("rest") == "random";
}
// The operand that says which tokens are padding, if there is one.
std::optional<std::size_t> liveOperand(const OpView& op) {
  const std::size_t at = isRandom(op) ? 2 : 1;
  return op.operandCount() > at ? std::optional(at) : std::nullopt;
}

template <std::size_t N>
bool checkWord(const OpView& op, DiagSink& diag, std::string_view attr, const std::string_view (&words)[N]) {
  const std::string& word = op.stringAttr(attr);
  if (std::find(std::begin(words), std::end(words), word) != std::end(words)) return true;
  diag.emit(op.range(), diag::IrAttribute, std::string(attr), "route", "is `" + word + "`, which is no rule");
  return false;
}

bool checkRange(const OpView& op, DiagSink& diag, std::string_view attr, std::int64_t least, std::int64_t most) {
  const std::int64_t value = op.intAttr(attr);
  if (value >= least && value <= most) return true;
  diag.emit(
      op.range(), diag::IrAttribute, std::string(attr), "route",
      "is " + std::to_string(value) + ", but must lie in " + std::to_string(least) + " to " + std::to_string(most));
  return false;
}

}  // namespace

static std::optional<ResultTypes> inferRoute(const OpView& op, DiagSink& diag) {
  const Type& gates = op.operandType(0);
  if (gates.rank() != 3 || (gates.dtype != DType::F32 && gates.dtype != DType::F64)) {
    diag.emit(op.range(), diag::DtypeNotAccepted, "route", "gates of f32 or f64 in three dimensions", printType(gates))
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  if (!checkWord(op, diag, "rest", kRest) || !checkWord(op, diag, "normalise", kNormalise)) return std::nullopt;
  const std::int64_t groups = gates.shape[0], tokens = gates.shape[1], experts = gates.shape[2];
  constexpr std::int64_t kMost = 0x7fffffff;  // choices and slots are counted in i32
  if (!checkRange(op, diag, "k", 1, experts) || !checkRange(op, diag, "capacity", 1, kMost)) return std::nullopt;
  const std::int64_t k = op.intAttr("k"), capacity = op.intAttr("capacity");
  if (tokens > kMost / k) {
    diag.emit(op.range(), diag::IotaSize, printType(gates), tokens * k).label(op.operandRange(0), "these choices");
    return std::nullopt;
  }
  if (op.operandCount() < (isRandom(op) ? 2u : 1u)) {
    diag.emit(op.range(), diag::OperandCount, "route", "random numbers as second of its", std::int64_t{1});
    return std::nullopt;
  }
  if (isRandom(op) && !checkRouteOperand(op, diag, 1, Type{DType::F32, {groups, tokens}})) return std::nullopt;
  if (const auto live = liveOperand(op);
      live && !checkRouteOperand(op, diag, *live, Type{DType::Bool, {groups, tokens}}))
    return std::nullopt;
  const Type choice{DType::I32, {groups, tokens, k}}, perExpert{DType::I32, {groups, experts}};
  ResultTypes results{
      choice,    choice,   Type{gates.dtype, choice.shape}, Type{DType::I32, {groups, experts, capacity}}, perExpert,
      perExpert, perExpert};
  for (const Type& result : results) {
    if (!checkSizes(op, diag, result)) return std::nullopt;
  }
  return results;
}

static void routeFactorsOf(const OpView& op, FactorBuilder& factors) {
  const Type& gates = op.operandType(0);
  const int groups = factors.add(FactorKind::Pass, gates.shape[0]);
  const std::string reason = "who gets a slot depends on all tokens of the group";
  const int tokens = factors.add(FactorKind::Whole, gates.shape[1], "", reason);
  const int experts = factors.add(FactorKind::Whole, gates.shape[2], "", "a token chooses among all experts");
  const int choices = factors.add(FactorKind::Whole, op.intAttr("k"), "", reason);
  const int slots = factors.add(FactorKind::Whole, op.intAttr("capacity"), "", reason);
  factors.operandDim(0, 0, groups);
  factors.operandDim(0, 1, tokens);
  factors.operandDim(0, 2, experts);
  for (std::size_t i = 1; i < op.operandCount(); ++i) {
    factors.operandDim(i, 0, groups);
    factors.operandDim(i, 1, tokens);
  }
  for (std::size_t r = 0; r < op.op().results.size(); ++r) factors.resultDim(r, 0, groups);
  for (std::size_t r = 0; r < 3; ++r) {
    factors.resultDim(r, 1, tokens);
    factors.resultDim(r, 2, choices);
  }
  factors.resultDim(3, 1, experts);
  factors.resultDim(3, 2, slots);
  for (std::size_t r = 4; r < 7; ++r) factors.resultDim(r, 1, experts);
}

// With T the sum of the gates p that weights are divided by, w_j = p_j / T where j is kept and 0 where not:
// dp_j = (dw_j [kept] - sum of dw_i w_i over kept i) / T, for each j that is in T.
static void routeVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  if (!gradients[2].known() || !b.wants(0)) return;
  const SourceRange range = op.range();
  const std::vector<ValueId>& results = op.op().results;
  const Type gates = op.operandType(0);
  const Type choice{gates.dtype, b.type(results[2]).shape};
  const std::vector<std::int64_t> each = {choice.shape[0], choice.shape[1], choice.shape[2], gates.shape[2]};
  const ValueId zero = b.scalar(gates.dtype, 0, range), one = b.scalar(gates.dtype, 1, range);
  const auto like = [&](ValueId scalar) { return b.broadcastTo(scalar, choice.shape, range); };
  const ValueId experts =
      b.create(OpKind::Iota, {}, {{"shape", each}, {"dtype", DType::I32}, {"dim", std::int64_t{3}}}, range);
  const ValueId isChosen = b.map("eq", {b.broadcast(results[0], each, {0, 1, 2}, range), experts}, range);
  const ValueId nothing = b.broadcastTo(zero, each, range);
  const ValueId noSlot = b.broadcastTo(b.scalar(DType::I32, 0, range), choice.shape, range);
  const ValueId isKept = b.map("ge", {results[1], noSlot}, range);
  ValueId gradient = b.map("where", {isKept, gradients[2], like(zero)}, range);
  if (op.stringAttr("normalise") != "none") {
    ValueId chosen =
        b.reduce(Reduction::Sum,
                 b.map("where", {isChosen, b.broadcast(op.op().operands[0], each, {0, 1, 3}, range), nothing}, range),
                 {3}, range);
    const bool keptOnly = op.stringAttr("normalise") == "after_drop";
    if (keptOnly) chosen = b.map("where", {isKept, chosen, like(zero)}, range);
    const ValueId total = b.reduce(Reduction::Sum, chosen, {2}, range);
    const std::vector<std::int64_t> rows = b.type(total).shape;
    const ValueId isNothing = b.map("eq", {total, b.broadcastTo(zero, rows, range)}, range);
    const ValueId divisor = b.broadcast(b.map("where", {isNothing, b.broadcastTo(one, rows, range), total}, range),
                                        choice.shape, {0, 1}, range);
    const ValueId share = b.reduce(Reduction::Sum, b.map("mul", {gradient, results[2]}, range), {2}, range);
    gradient = b.map("sub", {gradient, b.broadcast(share, choice.shape, {0, 1}, range)}, range);
    gradient = b.map("div", {gradient, divisor}, range);
    if (keptOnly) gradient = b.map("where", {isKept, gradient, like(zero)}, range);
  }
  const ValueId spread = b.map("where", {isChosen, b.broadcast(gradient, each, {0, 1, 2}, range), nothing}, range);
  b.accumulate(0, b.reduce(Reduction::Sum, spread, {2}, range));
}

namespace {

// One group, in plain steps; numbers are rounded to the dtype of the gates one by one.
class GroupRouter {
 public:
  GroupRouter(const OpView& op, EvalFrame& frame, std::int64_t group)
      : op_(op),
        frame_(frame),
        group_(group),
        dtype_(op.operandType(0).dtype),
        tokens_(op.operandType(0).shape[1]),
        experts_(op.operandType(0).shape[2]),
        k_(op.intAttr("k")) {}

  void run() {
    for (std::size_t r = 3; r < 7; ++r) clear(r);
    for (std::int64_t s = 0; s < tokens_; ++s) choose(s);
    for (std::int64_t j = 0; j < k_; ++j) {
      for (std::int64_t s = 0; s < tokens_; ++s) place(s, j);
    }
    for (std::int64_t s = 0; s < tokens_; ++s) weigh(s);
  }

 private:
  std::size_t at(std::size_t result, const Index& index) const {
    return static_cast<std::size_t>(placeOf(index, frame_.results[result], frame_.resultTiles[result]));
  }
  std::int64_t& integer(std::size_t result, const Index& index) { return frame_.out(result).ints[at(result, index)]; }
  double gate(std::int64_t s, std::int64_t e) const {
    const Tensor& gates = frame_.in(0);
    return numberAt(gates, placeOf({group_, s, e}, gates, frame_.operandTiles[0])).real;
  }
  bool isLive(std::int64_t s) const {
    const auto live = liveOperand(op_);
    if (!live) return true;
    const Tensor& tensor = frame_.in(*live);
    return numberAt(tensor, placeOf({group_, s}, tensor, frame_.operandTiles[*live])).integer != 0;
  }

  void clear(std::size_t result) {
    const std::int64_t slots = result == 3 ? op_.intAttr("capacity") : 1;
    for (std::int64_t e = 0; e < experts_; ++e) {
      for (std::int64_t c = 0; c < slots; ++c) {
        if (result == 3) integer(result, {group_, e, c}) = -1;
        if (result > 3) integer(result, {group_, e}) = 0;
      }
    }
  }

  // NaN is the largest; of equals the lowest comes first.
  void choose(std::int64_t s) {
    std::vector<bool> taken(static_cast<std::size_t>(experts_), false);
    for (std::int64_t j = 0; j < k_; ++j) {
      std::int64_t best = -1;
      for (std::int64_t e = 0; e < experts_; ++e) {
        if (taken[static_cast<std::size_t>(e)]) continue;
        const double x = gate(s, e);
        const bool isMore = best < 0 || x > gate(s, best) || (std::isnan(x) && !std::isnan(gate(s, best)));
        if (isMore) best = e;
      }
      taken[static_cast<std::size_t>(best)] = true;
      integer(0, {group_, s, j}) = best;
      integer(1, {group_, s, j}) = -1;
    }
  }

  double total(std::int64_t s, bool keptOnly) {
    double sum = 0;
    for (std::int64_t j = 0; j < k_; ++j) {
      if (keptOnly && integer(1, {group_, s, j}) < 0) continue;
      sum = roundTo(dtype_, sum + gate(s, integer(0, {group_, s, j})));
    }
    return sum;
  }
  double shareOf(double gate, double total) const { return total == 0 ? 0 : roundTo(dtype_, gate / total); }

  // Does choice j ask for a slot that it may have?
  bool mayHave(std::int64_t s, std::int64_t j) {
    const std::string& rest = op_.stringAttr("rest");
    if (j == 0 || rest == "all") return true;
    const double weight = shareOf(gate(s, integer(0, {group_, s, j})), total(s, false));
    if (rest == "threshold") return weight > roundTo(dtype_, op_.floatAttr("threshold"));
    const Tensor& uniform = frame_.in(1);
    const double u = numberAt(uniform, placeOf({group_, s}, uniform, frame_.operandTiles[1])).real;
    return roundTo(dtype_, roundTo(dtype_, op_.floatAttr("scale")) * weight) > u;
  }

  void place(std::int64_t s, std::int64_t j) {
    if (!isLive(s) || (j > 0 && op_.stringAttr("rest") == "none")) return;
    const std::int64_t e = integer(0, {group_, s, j});
    const std::int64_t slot = integer(5, {group_, e})++;  // taken whether or not it is used
    if (j == 0) ++integer(4, {group_, e});
    if (slot < op_.intAttr("capacity") && mayHave(s, j)) {
      integer(1, {group_, s, j}) = slot;
      integer(3, {group_, e, slot}) = s * k_ + j;
    } else {
      ++integer(6, {group_, e});
    }
  }

  void weigh(std::int64_t s) {
    const std::string& normalise = op_.stringAttr("normalise");
    const double sum = total(s, normalise == "after_drop");
    for (std::int64_t j = 0; j < k_; ++j) {
      Number weight;
      if (integer(1, {group_, s, j}) >= 0) {
        const double p = gate(s, integer(0, {group_, s, j}));
        weight.real = normalise == "none" ? p : shareOf(p, sum);
      }
      storeNumber(frame_.out(2), static_cast<std::int64_t>(at(2, {group_, s, j})), weight);
    }
  }

  const OpView& op_;
  EvalFrame& frame_;
  std::int64_t group_;
  DType dtype_;
  std::int64_t tokens_, experts_, k_;
};

}  // namespace

static void evaluateRoute(const OpView& op, EvalFrame& frame) {
  const Tile& groups = frame.operandTiles[0][0];
  for (std::int64_t g = 0; g < groups.live; ++g) GroupRouter(op, frame, groups.offset + g).run();
}

static constexpr AttrSpec kAttributes[] = {{"k", AttrKind::Int},
                                           {"capacity", AttrKind::Int},
                                           {"rest", AttrKind::String},
                                           {"normalise", AttrKind::String},
                                           {"scale", AttrKind::Float, true},
                                           {"threshold", AttrKind::Float, true}};
static constexpr Example kExamples[] = {
    // All tokens prefer expert 0, which has two slots; ties go to the lowest expert.
    {.args = "%g: f32[1, 4, 3]",
     .ir =
         R"(%e, %s, %w, %q, %f, %n, %d = route %g {k = 2, capacity = 2, rest = "all", normalise = "before_drop"} : i32[1, 4, 2], i32[1, 4, 2], f32[1, 4, 2], i32[1, 3, 2], i32[1, 3], i32[1, 3], i32[1, 3])",
     .given = "[[[0.5, 0.25, 0.25], [0.75, 0, 0.25], [0.375, 0.375, 0.25], [0.25, 0.125, 0.125]]]",
     .expected = "[[[0, 1], [0, 2], [0, 1], [0, 1]]]; [[[0, 0], [1, 0], [-1, 1], [-1, -1]]]; "
                 "[[[0.6666667, 0.33333334], [0.75, 0.25], [0, 0.5], [0, 0]]]; [[[0, 2], [1, 5], [3, -1]]]; "
                 "[[4, 0, 0]]; [[4, 3, 1]]; [[2, 1, 0]]"},
    // The paper's rule: a second choice is kept while 2 w > u, and takes its slot all the same.
    {.args = "%g: f32[1, 3, 2], %u: f32[1, 3]",
     .ir =
         R"(%e, %s, %w, %q, %f, %n, %d = route %g, %u {k = 2, capacity = 3, rest = "random", normalise = "after_drop", scale = 2.0} : i32[1, 3, 2], i32[1, 3, 2], f32[1, 3, 2], i32[1, 2, 3], i32[1, 2], i32[1, 2], i32[1, 2])",
     .given = "[[[0.75, 0.25], [0.75, 0.25], [0.75, 0.25]]]; [[0.625, 0.375, 0.5]]",
     .expected = "[[[0, 1], [0, 1], [0, 1]]]; [[[0, -1], [1, 1], [2, -1]]]; [[[1, 0], [0.75, 0.25], [1, 0]]]; "
                 "[[[0, 2, 4], [-1, 3, -1]]]; [[3, 0]]; [[3, 3]]; [[0, 2]]"},
    // Padding takes no slot; NaN is the largest gate.
    {.args = "%g: f64[2, 3, 2], %l: bool[2, 3]",
     .ir =
         R"(%e, %s, %w, %q, %f, %n, %d = route %g, %l {k = 1, capacity = 1, rest = "none", normalise = "none"} : i32[2, 3, 1], i32[2, 3, 1], f64[2, 3, 1], i32[2, 2, 1], i32[2, 2], i32[2, 2], i32[2, 2])",
     .given = "[[[0.5, 0.25], [0.75, 0.125], [0.125, 0.25]], [[0.5, nan], [0, 0], [0.25, 0.5]]]; "
              "[[0, 1, 1], [1, 1, 1]]",
     .expected = "[[[0], [0], [1]], [[1], [0], [1]]]; [[[-1], [0], [0]], [[0], [0], [-1]]]; "
                 "[[[0], [0.75], [0.25]], [[nan], [0], [0]]]; [[[1], [2]], [[1], [0]]]; [[1, 1], [1, 2]]; "
                 "[[1, 1], [1, 2]]; [[0, 0], [0, 1]]"},
    {.args = "%g: f32[5, 7, 4]",
     .ir =
         R"(%e, %s, %w, %q, %f, %n, %d = route %g {k = 3, capacity = 4, rest = "threshold", normalise = "before_drop", threshold = 0.25} : i32[5, 7, 3], i32[5, 7, 3], f32[5, 7, 3], i32[5, 4, 4], i32[5, 4], i32[5, 4], i32[5, 4])",
     .values = {1, 9}},
};

constinit const OpDef kRouteOp = {
    .name = "route",
    .doc =
        "the `k` largest `gates` [G, S, E] of each token, as `expert`, `slot` (-1: dropped) and weight [G, S, k]; "
        "which "
        "choice s k + j fills a slot [G, E, C] (-1: none does); and per group and expert the first choices, all "
        "choices and "
        "the dropped ones. Choices after the first are tried all (`rest`), none, where `scale` w exceeds a random "
        "number "
        "[G, S], or where w exceeds `threshold`. Tokens that are not live have no route",
    .operands = OperandSpec{"gates, uniform, live", 1, 3},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferRoute,
    .factors = &routeFactorsOf,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = Vjp{&routeVjp},
    .localize = SameOp{},
    .evaluate = &evaluateRoute,
    .lower = LowerRoute{},
};

}  // namespace gshard
