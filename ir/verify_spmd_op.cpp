// When an op can run on tiles: every factor is split alike wherever it occurs, a split reduction leaves a pending one,
// and pending operands are only where the op's linearity takes them, for each piece of a mesh axis by itself.
#include <algorithm>

#include "ir/axis_pieces.h"
#include "ir/op_table.h"
#include "ir/verifier.h"
#include "support/check.h"

namespace gshard {

namespace {
using Complaint = std::optional<std::string>;
using Axes = std::vector<AxisRef>;

bool hasFactor(const OpFactors::DimFactors& dims, int factor) {
  return std::any_of(dims.begin(), dims.end(), [&](const std::vector<int>& each) {
    return std::find(each.begin(), each.end(), factor) != each.end();
  });
}

class TileRule {
 public:
  explicit TileRule(const OpView& op) : op_(op), factors_(factorsOf(op)), axes_(factors_.factors.size()) {}

  Complaint check() {
    for (std::size_t i = 0; i < factors_.operands.size(); ++i) {
      if (Complaint fault = assign(op_.op().operands[i], factors_.operands[i], "operand " + std::to_string(i)))
        return fault;
    }
    for (std::size_t i = 0; i < factors_.results.size(); ++i) {
      if (Complaint fault = assign(op_.op().results[i], factors_.results[i], "result " + std::to_string(i)))
        return fault;
    }
    if (Complaint fault = checkKinds()) return fault;
    return checkPartials();
  }

 private:
  const Sharding& shardingOf(ValueId id) const { return *op_.function().value(id).sharding; }
  std::string printAxes(const Axes& axes) const {
    std::string text;
    for (const AxisRef& ref : axes) text += (text.empty() ? "" : ", ") + printAxisRef(op_.mesh(), ref);
    return axes.empty() ? "nothing" : text;
  }

  // Axes of each factor, the same wherever it occurs.
  Complaint assign(ValueId id, const OpFactors::DimFactors& dims, const std::string& what) {
    const Sharding& sharding = shardingOf(id);
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
      const std::string place = what + " dim " + std::to_string(dim);
      const std::int64_t size = op_.function().type(id).shape[dim];
      const auto perFactor = axesOfFactors(factors_, dims[dim], size, sharding.dims[dim]);
      if (!perFactor)
        return place + " is split over " + printAxes(sharding.dims[dim]) + ", which does not fall on its factors";
      for (std::size_t k = 0; k < dims[dim].size(); ++k) {
        std::optional<Axes>& known = axes_[static_cast<std::size_t>(dims[dim][k])];
        if (known && *known != (*perFactor)[k]) {
          return place + ": factor `" + factors_.factors[static_cast<std::size_t>(dims[dim][k])].letter +
                 "` is split over " + printAxes((*perFactor)[k]) + " here and over " + printAxes(*known) + " elsewhere";
        }
        known = (*perFactor)[k];
      }
    }
    return std::nullopt;
  }

  Complaint checkKinds() const {
    Axes used;
    for (std::size_t f = 0; f < factors_.factors.size(); ++f) {
      const Factor& factor = factors_.factors[f];
      if (!axes_[f] || axes_[f]->empty()) continue;
      switch (factor.kind) {
        case FactorKind::Pass:
        case FactorKind::Reduce:
        case FactorKind::Lookup:
          break;
        case FactorKind::Window:
        case FactorKind::Whole:
        case FactorKind::Scan:
        case FactorKind::Candidates:
          return "factor `" + factor.letter + "` (" + std::string(factorKindName(factor.kind)) + ") is split over " +
                 printAxes(*axes_[f]);
      }
      for (const AxisRef& ref : *axes_[f]) {
        if (covers(used, ref)) return "`" + printAxisRef(op_.mesh(), ref) + "` splits two factors";
      }
      used.insert(used.end(), axes_[f]->begin(), axes_[f]->end());
    }
    return std::nullopt;
  }

  Complaint checkPartials() const {
    AxisPieces pieces;
    for (const std::optional<Axes>& axes : axes_) {
      if (axes) pieces.add(*axes);
    }
    const auto addPartials = [&](ValueId id) {
      for (const PartialAxis& each : shardingOf(id).partial) pieces.add(each.axis);
    };
    for (const ValueId id : op_.op().operands) addPartials(id);
    for (const ValueId id : op_.op().results) addPartials(id);
    for (const AxisRef& piece : pieces.all()) {
      if (Complaint fault = checkPiece(piece)) return "over `" + printAxisRef(op_.mesh(), piece) + "`: " + *fault;
    }
    return std::nullopt;
  }

  Complaint checkPiece(const AxisRef& piece) const {
    std::vector<std::optional<Reduction>> operands;
    bool anyPartial = false;
    for (const ValueId id : op_.op().operands) {
      operands.push_back(partialOver(shardingOf(id), piece));
      anyPartial = anyPartial || operands.back().has_value();
    }
    int split = -1;
    for (std::size_t f = 0; f < axes_.size(); ++f) {
      if (axes_[f] && covers(*axes_[f], piece)) split = static_cast<int>(f);
    }
    if (split < 0) {
      if (!anyPartial) return checkResults(piece, std::nullopt, split);
      const std::optional<Reduction> accepted = acceptPartial(op_, operands);
      if (!accepted) return "the op does not run on these pending operands";
      return checkResults(piece, accepted, split);
    }
    const Factor& factor = factors_.factors[static_cast<std::size_t>(split)];
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool has = hasFactor(factors_.operands[i], split);
      const bool wantsShare = factor.othersPartial && !has;
      if (wantsShare && operands[i] != factor.reduction)
        return "operand " + std::to_string(i) + " is no pending `" + std::string(reductionName(factor.reduction)) + "`";
      if (!wantsShare && operands[i])
        return "operand " + std::to_string(i) + " is pending where factor `" + factor.letter + "` is split";
    }
    const bool leavesPending = factor.kind == FactorKind::Reduce || factor.kind == FactorKind::Lookup;
    return checkResults(piece, leavesPending ? std::optional(factor.reduction) : std::nullopt, split);
  }

  Complaint checkResults(const AxisRef& piece, std::optional<Reduction> reduction, int split) const {
    for (std::size_t i = 0; i < op_.op().results.size(); ++i) {
      const std::optional<Reduction> is = partialOver(shardingOf(op_.op().results[i]), piece);
      const bool keepsFactor = split >= 0 && hasFactor(factors_.results[i], split);
      const std::optional<Reduction> wanted = keepsFactor ? std::nullopt : reduction;
      if (is == wanted) continue;
      const auto name = [](const std::optional<Reduction>& r) {
        return r ? "a pending `" + std::string(reductionName(*r)) + "`" : std::string("whole");
      };
      return "result " + std::to_string(i) + " is " + name(is) + ", but " + name(wanted) + " follows";
    }
    return std::nullopt;
  }

  const OpView& op_;
  OpFactors factors_;
  std::vector<std::optional<Axes>> axes_;  // per factor; absent: in no tensor
};
}  // namespace

std::optional<std::string> verifySpmdOp(const OpView& op) {
  if (const OwnTiles* own = std::get_if<OwnTiles>(&*opDef(op.op().kind).localize)) return (*own->check)(op);
  return TileRule(op).check();
}

}  // namespace gshard
