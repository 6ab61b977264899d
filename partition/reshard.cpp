// The choice between the cheapest list of named collectives (reshard_search.h) and one exchange: where no named list
// meets the lower bound of the part that moves data, the exchange does, always.
#include "partition/reshard.h"

#include <algorithm>
#include <set>

#include "ir/op_table.h"
#include "partition/reshard_search.h"
#include "support/check.h"
#include "support/text.h"

namespace gshard {

namespace {

ReshardStep exchangeStep(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to) {
  ReshardStep step;
  step.kind = OpKind::Exchange;
  step.to = to;
  const BytesReceived bytes = bytesOfMove(mesh, type, from, to);
  step.bytesMax = bytes.max;
  step.bytesTotal = bytes.total;
  std::int64_t peers = 1;
  std::set<int> axes;
  for (const Sharding* sharding : {&from, &to}) {
    for (const auto& dim : sharding->dims) {
      for (const AxisRef& ref : dim) axes.insert(ref.axis);
    }
  }
  for (const int axis : axes) peers *= mesh.axes[static_cast<std::size_t>(axis)].size;
  step.messages = bytes.max == 0 ? 0 : peers - 1;
  return step;
}

// The reduction first (on the dim where it is cheapest, or in full), then one exchange to the target.
std::vector<ReshardStep> reduceThenExchange(const Mesh& mesh, const Type& type, const Sharding& from,
                                            const Sharding& to, const std::vector<PartialAxis>& pending) {
  if (pending.empty()) return {exchangeStep(mesh, type, from, to)};
  std::vector<AxisRef> axes;
  for (const PartialAxis& partial : pending) axes.push_back(partial.axis);
  Sharding reduced = from;
  reduced.partial = to.partial;
  ReshardStep all;
  all.kind = OpKind::AllReduce;
  all.axes = axes;
  all.reduction = pending.front().reduction;
  all.to = reduced;
  const BytesReceived bytes = bytesOfAllReduce(mesh, type, from, axes);
  all.bytesMax = bytes.max;
  all.bytesTotal = bytes.total;
  all.messages = allReduceMessages(axes);
  std::vector<ReshardStep> best = {all, exchangeStep(mesh, type, reduced, to)};
  for (std::size_t dim = 0; dim < from.dims.size(); ++dim) {
    if (!tilesNest(type.shape[dim], productOf(from.dims[dim]), productOf(axes))) continue;
    Sharding scattered = reduced;
    scattered.dims[dim].insert(scattered.dims[dim].end(), axes.begin(), axes.end());
    ReshardStep scatter = all;
    scatter.kind = OpKind::ReduceScatter;
    scatter.dim = static_cast<std::int64_t>(dim);
    scatter.to = canonical(mesh, scattered);
    const BytesReceived received = bytesOfReduceScatter(mesh, type, scatter.to, productOf(axes));
    scatter.bytesMax = received.max;
    scatter.bytesTotal = received.total;
    scatter.messages = productOf(axes) - 1;
    std::vector<ReshardStep> candidate = {scatter, exchangeStep(mesh, type, scatter.to, to)};
    if (costOf(candidate) < costOf(best)) best = std::move(candidate);
  }
  return best;
}

}  // namespace

std::string describeSteps(const Mesh& mesh, const std::vector<ReshardStep>& steps) {
  std::string text;
  for (const ReshardStep& step : steps) {
    std::string axes;
    for (const AxisRef& ref : step.axes) axes += (axes.empty() ? "" : ", ") + printAxisRef(mesh, ref);
    if (!text.empty()) text += ", then ";
    text += *opDef(step.kind).name;
    if (!axes.empty()) text += " over " + axes;
  }
  return text;
}

ReshardPlan planReshard(const Mesh& mesh, const Type& type, const Sharding& fromGiven, const Sharding& toGiven) {
  const Sharding from = canonical(mesh, fromGiven);
  const Sharding to = canonical(mesh, toGiven);
  ReshardPlan plan;
  if (from == to) return plan;
  std::vector<PartialAxis> pending;
  for (const PartialAxis& partial : from.partial) {
    if (std::find(to.partial.begin(), to.partial.end(), partial) == to.partial.end()) pending.push_back(partial);
  }
  for (const PartialAxis& partial : pending) {
    GSHARD_CHECK(partial.reduction == pending.front().reduction, "a value pends on two reductions");
  }
  for (const PartialAxis& partial : to.partial) {
    GSHARD_CHECK(std::find(from.partial.begin(), from.partial.end(), partial) != from.partial.end(),
                 "target is partial, source is not");
  }

  std::optional<std::vector<ReshardStep>> named = searchNamedSteps(mesh, type, from, to);
  std::vector<ReshardStep> exchanged = reduceThenExchange(mesh, type, from, to, pending);
  const ReshardCost exchangeCost = costOf(exchanged);
  const bool takeNamed = named && costOf(*named).max <= exchangeCost.max && costOf(*named).total <= exchangeCost.total;
  const ReshardCost namedCost = named ? costOf(*named) : ReshardCost{};
  if (named && takeNamed && namedCost.max < exchangeCost.max) {
    plan.rejected.push_back({describeSteps(mesh, exchanged), exchangeCost.max, exchangeCost.messages, "more bytes"});
  } else if (named && !takeNamed) {
    plan.rejected.push_back({describeSteps(mesh, *named), namedCost.max, namedCost.messages, "more bytes"});
  }
  // What people expect a compiler to do, to show what was saved.
  const Sharding whole = Sharding::replicated(type.rank());
  if (pending.empty() && to.partial.empty() && !from.isReplicated() && !to.isReplicated()) {
    const BytesReceived bytes = bytesOfMove(mesh, type, from, whole);
    const std::int64_t chosen = takeNamed ? namedCost.max : exchangeCost.max;
    if (bytes.max > chosen) {
      std::int64_t parts = 1;
      for (const auto& dim : from.dims) parts *= productOf(dim);
      plan.rejected.push_back({"all_gather in full, then slice", bytes.max, parts - 1,
                               "more bytes, and a buffer of " + formatBytes(type.bytes()) + " for the whole"});
    }
  }
  plan.steps = takeNamed ? std::move(*named) : std::move(exchanged);
  const ReshardCost cost = costOf(plan.steps);
  plan.bytesMax = cost.max;
  plan.bytesTotal = cost.total;
  if (pending.empty()) {
    plan.lowerBound = bytesOfMove(mesh, type, from, to).max;
  } else {
    // T (n - 1) / n of the group's whole result, twice when the result is whole on every device of the group.
    std::vector<AxisRef> axes;
    for (const PartialAxis& partial : pending) axes.push_back(partial.axis);
    bool scattered = false;
    for (const AxisRef& axis : axes) scattered = scattered || to.splits(axis);
    const std::int64_t n = productOf(axes);
    std::int64_t tile = type.bytes();
    for (const auto& dim : from.dims) tile /= productOf(dim);
    plan.lowerBound = tile * (n - 1) / n * (scattered ? 1 : 2);
  }
  return plan;
}

}  // namespace gshard
