// Making the plan: one walk over the collectives of an SPMD module. Bytes come from the same functions that the planner
// of reshards compared with; nothing is estimated twice.
#include "partition/comm_plan.h"

#include <algorithm>

#include "ir/op_table.h"
#include "partition/reshard_search.h"
#include "support/check.h"

namespace gshard {

namespace {

bool movesBytes(OpKind kind) {
  return std::holds_alternative<LowerCollective>(*opDef(kind).lower);
}

const Sharding& shardingOf(const Function& function, ValueId value) {
  return *function.value(value).sharding;
}

// Axes of the group: those of the attribute; of an exchange all that a side names.
std::vector<std::string> axesOf(const OpView& op) {
  const Mesh& mesh = op.mesh();
  std::vector<AxisRef> refs;
  if (const Attribute* axes = op.op().attributes.find("axes")) {
    refs = std::get<std::vector<AxisRef>>(*axes);
  } else {
    const auto collect = [&](ValueId value) {
      for (const auto& dim : shardingOf(op.function(), value).dims) {
        for (const AxisRef& ref : dim) {
          const AxisRef whole = wholeAxis(mesh, ref.axis);
          if (std::find(refs.begin(), refs.end(), whole) == refs.end()) refs.push_back(whole);
        }
      }
    };
    for (const ValueId operand : op.op().operands) collect(operand);
    collect(op.op().results[0]);
    std::sort(refs.begin(), refs.end());
  }
  std::vector<std::string> names;
  for (const AxisRef& ref : refs) names.push_back(printAxisRef(mesh, ref));
  return names;
}

std::int64_t groupSize(const OpView& op) {
  if (const Attribute* axes = op.op().attributes.find("axes")) return productOf(std::get<std::vector<AxisRef>>(*axes));
  std::int64_t n = 1;
  for (const std::string& name : axesOf(op)) {
    if (const auto axis = op.mesh().find(name)) n *= op.mesh().axes[static_cast<std::size_t>(*axis)].size;
  }
  return n;
}

BytesReceived bytesOf(const OpView& op) {
  const Function& function = op.function();
  BytesReceived sum;
  for (std::size_t i = 0; i < op.op().results.size(); ++i) {
    const Type& type = op.resultType(i);
    const Sharding& from = shardingOf(function, op.op().operands[i]);
    const Sharding& to = shardingOf(function, op.op().results[i]);
    BytesReceived bytes;
    if (op.op().kind == OpKind::AllReduce) {
      bytes = bytesOfAllReduce(op.mesh(), type, from, op.axesAttr("axes"));
    } else if (op.op().kind == OpKind::ReduceScatter) {
      bytes = bytesOfReduceScatter(op.mesh(), type, to, groupSize(op));
    } else if (op.op().kind == OpKind::Exchange) {
      bytes = bytesOfExchange(op);
    } else {
      bytes = bytesOfMove(op.mesh(), type, from, to);
    }
    sum.max += bytes.max;
    sum.total += bytes.total;
    sum.perDevice.resize(bytes.perDevice.size());
    for (std::size_t d = 0; d < bytes.perDevice.size(); ++d) sum.perDevice[d] += bytes.perDevice[d];
  }
  // On large meshes the sum of the largest parts bounds the largest sum; on small ones it is exact.
  if (!sum.perDevice.empty()) sum.max = *std::max_element(sum.perDevice.begin(), sum.perDevice.end());
  return sum;
}

// The tile that is moved; of a combined collective all its elements in one row.
std::vector<std::int64_t> shapeOf(const OpView& op) {
  const std::vector<ValueId>& operands = op.op().operands;
  if (op.op().results.size() == 1) return localShape(op.operandType(0), shardingOf(op.function(), operands[0]));
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::int64_t tile = 1;
    for (const std::int64_t size : localShape(op.operandType(i), shardingOf(op.function(), operands[i]))) tile *= size;
    elements += tile;
  }
  return {elements};
}

std::int64_t messagesOf(const OpView& op) {
  const std::int64_t n = groupSize(op);
  if (op.op().kind == OpKind::AllReduce) return allReduceMessages(op.axesAttr("axes"));
  if (op.op().kind == OpKind::CollectivePermute) return 1;
  return n - 1;
}

}  // namespace

CommPlan makeCommPlan(const Module& module, const Platform& platform) {
  CommPlan plan;
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    const Function& function = module.functions[f];
    PlanFunction& planned = plan.functions.emplace_back();
    planned.function = static_cast<std::int64_t>(f);
    std::vector<std::int64_t> perDevice;
    for (std::size_t i = 0; i < function.ops.size(); ++i) {
      const Op& op = function.ops[i];
      if (!movesBytes(op.kind)) continue;
      const OpView view(module, function, op);
      PlanEntry entry;
      entry.function = static_cast<std::int64_t>(f);
      entry.op = static_cast<std::int64_t>(i);
      entry.kind = *opDef(op.kind).name;
      if (const Attribute* reduction = op.attributes.find("reduction"))
        entry.reduction = std::get<std::string>(*reduction);
      entry.axes = axesOf(view);
      entry.dtype = view.resultType().dtype;
      entry.shape = shapeOf(view);
      entry.count = std::max<std::int64_t>(1, function.blocks);
      const BytesReceived bytes = bytesOf(view);
      entry.bytesMax = bytes.max;
      entry.bytesTotal = bytes.total;
      if (bytes.max * module.mesh.devices() != bytes.total) entry.perDevice = bytes.perDevice;
      perDevice.resize(bytes.perDevice.size());
      for (std::size_t d = 0; d < perDevice.size(); ++d) perDevice[d] += bytes.perDevice[d];
      entry.steps = bytes.max == 0 ? 0 : messagesOf(view);
      entry.microseconds = collectiveMicroseconds(platform, entry.steps, entry.bytesMax);
      for (const ValueId operand : op.operands) entry.values.push_back(function.value(operand).name);
      entry.range = op.range;
      entry.reason = op.reason;
      entry.phase = op.phase;
      planned.bytesMax += entry.bytesMax;
      planned.bytesTotal += entry.bytesTotal;
      planned.collectives.push_back(std::move(entry));
    }
    if (!perDevice.empty()) planned.bytesMax = *std::max_element(perDevice.begin(), perDevice.end());
  }
  return plan;
}

}  // namespace gshard
