// Carrying out reshards: which version of a value to start from, and the ops of the steps.
#include "partition/spmd_writer.h"

#include <algorithm>

#include "support/check.h"

namespace gshard {

SpmdWriter::SpmdWriter(Module& module, Function& function, DiagSink& diag, ReshardCosts& costs, ToldMoves& told)
    : module_(module),
      function_(function),
      costs_(costs),
      warnings_(module, function, diag, told),
      versions_(function.values.size()),
      phases_(function.values.size(), Phase::Forward),
      generators_(function.values.size()),
      readLater_(function.values.size()) {}

void SpmdWriter::setMade(ValueId value, const Sharding& sharding, Phase phase) {
  function_.value(value).sharding = sharding;
  versions_[value.index].clear();
  versions_[value.index].push_back({value, sharding});
  phases_[value.index] = phase;
}

void SpmdWriter::setAlias(ValueId value, ValueId same, const Sharding& sharding, Phase phase) {
  versions_[value.index] = {{same, sharding}};
  phases_[value.index] = phase;
}

void SpmdWriter::setReadLater(ValueId value, ValueId kept, const Sharding& sharding) {
  readLater_[value.index] = ReadLater{kept, sharding};
}

ValueId SpmdWriter::newValue(Value like, const Sharding& sharding) {
  like.sharding = sharding;
  return function_.addValue(std::move(like));
}

void SpmdWriter::append(Op op) {
  placeOf_.resize(function_.values.size(), 0);
  ops_.push_back(std::move(op));
  for (const ValueId result : ops_.back().results) placeOf_[result.index] = ops_.size();
}

std::size_t SpmdWriter::placeOf(ValueId value) const {
  return value.index < placeOf_.size() ? placeOf_[value.index] : 0;
}

void SpmdWriter::appendBehind(ValueId source, Op op) {
  const std::size_t place = placeOf(source);
  placeOf_.resize(function_.values.size(), 0);
  for (const ValueId result : op.results) placeOf_[result.index] = place;
  behind_.push_back({place, std::move(op)});
}

void SpmdWriter::finish() {
  std::stable_sort(behind_.begin(), behind_.end(), [](const Behind& a, const Behind& b) { return a.place < b.place; });
  function_.ops.reserve(ops_.size() + behind_.size());
  auto next = behind_.begin();
  for (std::size_t place = 0; place <= ops_.size(); ++place) {
    if (place > 0) function_.ops.push_back(std::move(ops_[place - 1]));
    for (; next != behind_.end() && next->place == place; ++next) function_.ops.push_back(std::move(next->op));
  }
  ops_.clear();
  behind_.clear();
}

ValueId SpmdWriter::find(ValueId value, const Sharding& sharding) const {
  for (const Version& version : versions_[value.index]) {
    if (version.sharding == sharding) return version.value;
  }
  return {};
}

ValueId SpmdWriter::obtain(ValueId value, const Sharding& sharding, const Request& request) {
  std::vector<Version>& versions = versions_[value.index];
  if (versions.empty() && readLater_[value.index]) {
    const ReadLater read = *readLater_[value.index];
    Request gather = request;
    gather.asked = true;
    versions = {{obtain(read.kept, read.sharding, gather), read.sharding}};
  }
  GSHARD_CHECK(!versions.empty(), "`" + function_.value(value).name + "` is read before it is made");
  if (const ValueId known = find(value, sharding); known.known()) return known;
  if (generators_[value.index]) {
    Op op = *generators_[value.index];
    op.results = {newValue(function_.value(value), sharding)};
    versions.push_back({op.results[0], sharding});
    append(std::move(op));
    return versions.back().value;
  }
  const Type type = function_.type(value);
  std::vector<Sharding> shardings;
  for (const Version& version : versions) shardings.push_back(version.sharding);
  const std::size_t from = costs_.cheapest(type, shardings, sharding);
  const ReshardPlan& plan = costs_.plan(type, shardings[from], sharding);
  if (!request.asked) warnings_.tell({value, versions.front().sharding, sharding, plan}, request);
  ValueId at = versions[from].value;
  for (const ReshardStep& step : plan.steps) {
    at = writeStep(at, step, value, request);
    versions.push_back({at, step.to});
  }
  GSHARD_CHECK(versions.back().sharding == sharding, "a reshard ends elsewhere than it was asked to");
  return at;
}

namespace {

std::string quoted(const Module& module, const Sharding& sharding) {
  const std::string text = printSharding(module.mesh, sharding);
  return text.substr(1, text.size() - 2);  // without the braces
}

}  // namespace

ValueId SpmdWriter::writeStep(ValueId from, const ReshardStep& step, ValueId original, const Request& request) {
  Op op{step.kind, {from}, {}, {}, request.range, request.phase};
  op.reason = request.user + " needs it as " + quoted(module_, step.to);
  if (step.kind == OpKind::AllReduce || step.kind == OpKind::ReduceScatter) {
    // A pending reduction belongs to the line that made it.
    op.phase = phases_[original.index];
    if (function_.value(original).range.known()) op.range = function_.value(original).range;
    op.reason = request.pendingWhy + "; " + request.user + " needs it complete";
    op.attributes.set("reduction", std::string(reductionName(step.reduction)));
    op.attributes.set("axes", step.axes);
    if (step.kind == OpKind::ReduceScatter) op.attributes.set("dim", step.dim);
  } else if (step.kind == OpKind::AllGather || step.kind == OpKind::AllSlice) {
    op.attributes.set("axes", step.axes);
    op.attributes.set("dim", step.dim);
  } else if (step.kind == OpKind::AllToAll) {
    op.attributes.set("axes", step.axes);
    op.attributes.set("split_dim", step.dim);
    op.attributes.set("concat_dim", step.otherDim);
  } else if (step.kind == OpKind::CollectivePermute) {
    op.attributes.set("axes", step.axes);
  } else {
    op.attributes.set("move", std::string());
  }
  op.results = {newValue(function_.value(original), step.to)};
  const ValueId result = op.results[0];
  if (step.kind == OpKind::AllReduce || step.kind == OpKind::ReduceScatter) {
    appendBehind(from, std::move(op));
  } else {
    append(std::move(op));
  }
  return result;
}

}  // namespace gshard
