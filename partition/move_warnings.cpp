// What is told of a move, from the op's factors, the views that lost, and the origins of splits.
#include "partition/move_warnings.h"

#include <algorithm>

#include "partition/diagnostics.h"
#include "support/text.h"

namespace gshard {

namespace {

// As written behind a type.
std::string annotationText(const Mesh& mesh, const Sharding& sharding) {
  if (sharding.isReplicated()) return "@replicate";
  const std::string text = printSharding(mesh, sharding.withoutPartial());
  return "@shard(" + text.substr(1, text.size() - 2) + ")";
}

bool usesAxis(const Sharding& sharding, const AxisRef& axis) {
  return std::any_of(sharding.dims.begin(), sharding.dims.end(),
                     [&](const AxisList& dim) { return overlapsAny(dim, axis); });
}

std::int64_t tileBytes(const Type& type, const Sharding& sharding) {
  std::int64_t bytes = byteSize(type.dtype);
  for (const std::int64_t size : localShape(type, sharding)) bytes *= size;
  return bytes;
}

std::string bytesOf(double bytes) {
  return formatBytes(static_cast<std::int64_t>(bytes));
}

}  // namespace

std::string MoveWarnings::nameOf(ValueId value) const {
  return "`" + function_.value(value).name + "`";
}

bool MoveWarnings::isParameter(ValueId value) const {
  return std::any_of(function_.arguments.begin(), function_.arguments.end(), [&](const Argument& argument) {
    return argument.value == value && argument.kind == ArgumentKind::Parameter;
  });
}

const SplitOrigin* MoveWarnings::fixedOrigin(ValueId value) const {
  for (const SplitOrigin& origin : function_.value(value).origins) {
    if (origin.how == "fixed") return &origin;
  }
  return nullptr;
}

// Of the other tensors of the op, the first that uses an axis which this one has to give up; else the first that splits
// a letter which this one splits otherwise.
MoveWarnings::Rival MoveWarnings::rivalOf(const Move& move, const Asker& asker) const {
  if (asker.operands == nullptr) return {};
  const OpFactors::DimFactors& mine = asker.factors->operands[asker.operand];
  const auto givesWay = [&](std::size_t dim, const Sharding& tiles, const OpFactors::DimFactors& dims,
                            const SplitOrigin& origin, bool byLetter) {
    if (!byLetter) {
      const auto& given = move.made.dims[dim];
      return usesAxis(tiles, origin.axis) && overlapsAny(given, origin.axis) &&
             !overlapsAny(move.to.dims[dim], origin.axis);
    }
    const std::vector<int>& theirs = dims[static_cast<std::size_t>(origin.dim)];
    return !move.made.dims[dim].empty() && move.made.dims[dim] != move.to.dims[dim] &&
           std::any_of(theirs.begin(), theirs.end(), [&](int factor) {
             return std::find(mine[dim].begin(), mine[dim].end(), factor) != mine[dim].end();
           });
  };
  const auto find = [&](const std::vector<ValueId>& values, const std::vector<Sharding>& tiles,
                        const std::vector<OpFactors::DimFactors>& factors, bool operands, bool byLetter) -> Rival {
    for (std::size_t i = 0; i < values.size() && i < tiles.size(); ++i) {
      if (values[i] == move.value || (operands && i == asker.operand)) continue;
      for (std::size_t dim = 0; dim < mine.size(); ++dim) {
        for (const SplitOrigin& origin : function_.value(values[i]).origins) {
          if (givesWay(dim, tiles[i], factors[i], origin, byLetter)) return {values[i], &origin};
        }
      }
    }
    return {};
  };
  for (const bool byLetter : {false, true}) {
    Rival rival = find(*asker.operands, asker.plan->operands, asker.factors->operands, true, byLetter);
    if (rival.origin == nullptr)
      rival = find(*asker.results, asker.plan->results, asker.factors->results, false, byLetter);
    if (rival.origin != nullptr) return rival;
  }
  return {};
}

void MoveWarnings::tell(const Move& move, const Request& request) {
  const Value& tensor = function_.value(move.value);
  const Sharding made = move.made.withoutPartial(), to = move.to.withoutPartial();
  if (move.plan.bytesMax == 0 || made.isReplicated() || made.dims == to.dims) return;
  const SplitOrigin* annotation = fixedOrigin(move.value);
  if (annotation == nullptr) return;
  const bool gathered = to.isReplicated();
  const Rival rival = rivalOf(move, request.asker);
  // Split anew for a split that somebody else asked for; what inference alone decided is shown by explain.
  if (!gathered && (rival.origin == nullptr || rival.origin->how != "fixed")) return;
  if (!told_.emplace(request.range, annotation->range).second) return;
  const std::string bytes = formatBytes(move.plan.bytesMax);
  DiagBuilder told = gathered ? diag_.emit(request.range, diag::GatheredInFull, tensor.name, bytes)
                              : diag_.emit(request.range, diag::SplitAnew, tensor.name, bytes);
  told.label(annotation->range,
             nameOf(move.value) + " is split here: " + printShardedType(module_.mesh, tensor.type, made));
  addCause(told, move, request, rival);
  addChoice(told, move, request, rival);
  addPlans(told, move.plan);
  addHelp(told, move, rival, gathered);
  told.group("reshard");
}

void MoveWarnings::addCause(DiagBuilder& told, const Move& move, const Request& request, const Rival& rival) const {
  const Value& tensor = function_.value(move.value);
  const bool whole = move.to.withoutPartial().isReplicated();
  std::string cause = request.user + " needs it " +
                      (whole ? "whole" : "as " + printShardedType(module_.mesh, tensor.type, move.to.withoutPartial()));
  if (request.asker.factors != nullptr) {
    const OpFactors::DimFactors& dims = request.asker.factors->operands[request.asker.operand];
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
      if (move.made.dims[dim].empty()) continue;
      for (const int f : dims[dim]) {
        const Factor& factor = request.asker.factors->factors[static_cast<std::size_t>(f)];
        if (!factor.reason.empty() && move.to.dims[dim] != move.made.dims[dim])
          cause = request.user + " needs its dim " + std::to_string(dim) + " whole: " + factor.reason;
      }
    }
  }
  told.note(cause + "; on each device it then takes " + formatBytes(tileBytes(tensor.type, move.to.withoutPartial())));
  if (rival.origin == nullptr || !rival.origin->range.known()) return;
  const std::string axis = printAxisRef(module_.mesh, rival.origin->axis);
  told.label(rival.origin->range, rival.origin->how == "fixed"
                                      ? "`" + axis + "` splits " + nameOf(rival.value) + " here"
                                      : "`" + axis + "` splits " + nameOf(rival.value) + ", " + rival.origin->how);
}

// Which of the two gave way, and by how much.
void MoveWarnings::addChoice(DiagBuilder& told, const Move& move, const Request& request, const Rival& rival) const {
  if (request.asker.plan == nullptr || rival.origin == nullptr) return;
  const LostView* kept = nullptr;  // the cheapest view in which this tensor would have stayed
  for (const LostView& lost : request.asker.plan->lost) {
    if (request.asker.operand >= lost.operands.size() || lost.repeated >= kNeverTaken) continue;
    const Sharding stays = canonical(module_.mesh, lost.operands[request.asker.operand]);
    if (stays.dims != move.made.dims) continue;
    if (kept == nullptr || lost.bytes + lost.repeated < kept->bytes + kept->repeated) kept = &lost;
  }
  if (kept == nullptr) return;
  const OpPlan& plan = *request.asker.plan;
  std::string why = "the split of " + nameOf(rival.value) + " won: with that of " + nameOf(move.value) + " " +
                    request.user + " would receive " + bytesOf(kept->bytes) + " instead of " + bytesOf(plan.bytes);
  const double work = plan.cost - plan.bytes;
  if (kept->repeated - work >= 1) why += ", and repeat work of " + bytesOf(kept->repeated - work);
  if (kept->bytes + kept->repeated <= plan.cost) why += ", which is no less, and the first of equals is taken";
  told.note(why);
}

void MoveWarnings::addPlans(DiagBuilder& told, const ReshardPlan& plan) const {
  std::int64_t messages = 0;
  for (const ReshardStep& step : plan.steps) messages += step.messages;
  told.note("chosen: " + describeSteps(module_.mesh, plan.steps) + ": " + formatBytes(plan.bytesMax) + " received, " +
            plural(messages, "step") + (plan.bytesMax <= plan.lowerBound ? "; no list of collectives moves less" : ""));
  for (const RejectedPlan& rejected : plan.rejected) {
    told.note("rejected: " + rejected.what + ": " + formatBytes(rejected.bytesMax) + " received, " +
              plural(rejected.messages, "step") + "; " + rejected.reason);
  }
}

void MoveWarnings::addHelp(DiagBuilder& told, const Move& move, const Rival& rival, bool gathered) const {
  const std::string name = nameOf(move.value);
  if (gathered && isParameter(move.value)) {
    told.help("if the split is only how " + name + " is kept, say so: `@stored` behind it asks for the gather");
    return;
  }
  if (rival.origin == nullptr) {
    told.note("no other split of it is known that avoids this");
    return;
  }
  const SplitOrigin* annotation = fixedOrigin(move.value);
  if (function_.type(rival.value).shape == function_.type(move.value).shape) {
    // Tiles that the op wants are those of the other, where they have the same dims.
    const std::string text = annotationText(module_.mesh, move.to);
    told.fix("split " + name + " as the other is: `" + text + "`; then nothing moves here", false,
             {{annotation->range, text}});
  } else {
    told.help("split " + name + " or " + nameOf(rival.value) + " over another axis, or on a dim that both have");
  }
}

}  // namespace gshard
