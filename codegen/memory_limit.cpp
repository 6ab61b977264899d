// Telling what is over the limit; see memory_limit.h.
#include "codegen/memory_limit.h"

#include <algorithm>

#include "codegen/diagnostics.h"
#include "support/text.h"

namespace gshard {

namespace {

constexpr std::size_t kShown = 3;

// Bytes of one device while a function runs, at the moment when most is alive.
struct MemoryReport {
  std::string function;
  std::int64_t peakBytes = 0;  // highest arena byte that is touched
  std::int64_t parameters = 0, states = 0, accumulators = 0, inputs = 0, values = 0, workspace = 0;
  std::string peakOp;  // "contract `h`"
  SourceRange peakRange;
  // Parameters and states are alive throughout; of all that is alive at the peak, the largest first.
  struct Alive {
    std::string name, type;  // "net.w1", "f32[64@data, 256]"
    std::int64_t bytes = 0;
    SourceRange range;
    bool whole = false;  // on every device: a split would shrink it
  };
  std::vector<Alive> alive;
};

void addAlive(MemoryReport& report, const Module& module, const PlannedFunction& planned, ExtentTable& extents) {
  const auto add = [&](const std::string& name, const Type& type, const std::optional<Sharding>& sharding,
                       std::int64_t bytes, SourceRange range) {
    const Sharding split = sharding ? sharding->withoutPartial() : Sharding::replicated(type.rank());
    report.alive.push_back({name, printShardedType(module.mesh, type, split), bytes, range, split.isReplicated()});
  };
  for (const Parameter& each : module.parameters)
    add(each.name, each.type, each.sharding, layoutOf(each.type, each.sharding, extents).bytes(), each.range);
  for (const State& each : module.states)
    add(each.name, each.type, each.sharding, layoutOf(each.type, each.sharding, extents).bytes(), each.range);
  const Function& function = planned.views->function();
  for (const ValueId value : planned.memory.alive) {
    const Value& each = function.value(value);
    add(each.name, each.type, each.sharding, planned.views->layout(value).bytes(), each.range);
  }
  std::stable_sort(report.alive.begin(), report.alive.end(),
                   [](const MemoryReport::Alive& a, const MemoryReport::Alive& b) { return a.bytes > b.bytes; });
}

MemoryReport reportMemory(const Module& module, const PlannedFunction& planned, const FixedMemory& fixed,
                          ExtentTable& extents) {
  const Function& function = planned.views->function();
  MemoryReport report;
  report.function = function.name;
  report.peakBytes = planned.memory.peakBytes;
  for (const Parameter& parameter : module.parameters)
    report.parameters += layoutOf(parameter.type, parameter.sharding, extents).bytes();
  for (const State& state : module.states) report.states += layoutOf(state.type, state.sharding, extents).bytes();
  report.accumulators = planned.accumulators.end - fixed.bytes;
  report.inputs = planned.memory.inputs;
  report.values = planned.memory.values;
  report.workspace = planned.memory.workspace;
  report.peakRange = function.range;
  if (planned.memory.peakUnit >= 0) {
    const Op& op =
        function
            .ops[static_cast<std::size_t>(planned.lowered.units[static_cast<std::size_t>(planned.memory.peakUnit)].op)];
    report.peakRange = op.range;
    report.peakOp = describeOp(function, op);
  }
  addAlive(report, module, planned, extents);
  return report;
}

std::string shares(const MemoryReport& report) {
  std::string text;
  const auto add = [&](std::int64_t bytes, const char* what) {
    if (bytes > 0) text += (text.empty() ? "" : ", ") + formatBytes(bytes) + " " + what;
  };
  add(report.parameters, "parameters");
  add(report.states, "states");
  add(report.accumulators, "accumulators");
  add(report.inputs, "inputs");
  add(report.values, "values");
  add(report.workspace, "workspace");
  return text;
}

}  // namespace

bool exceedsMemory(const Module& module, const std::vector<PlannedFunction>& functions, const FixedMemory& fixed,
                   ExtentTable& extents, std::int64_t limit, DiagSink& diag) {
  bool exceeds = false;
  for (const PlannedFunction& planned : functions) {
    if (planned.memory.peakBytes <= limit) continue;
    exceeds = true;
    const MemoryReport report = reportMemory(module, planned, fixed, extents);
    DiagBuilder told = diag.emit(report.peakRange, diag::OverMemoryLimit, report.function,
                                 formatBytes(report.peakBytes), formatBytes(limit));
    if (!report.peakOp.empty()) told.primaryLabel("most is alive at " + report.peakOp);
    told.note("there: " + shares(report));
    bool whole = false;
    for (std::size_t i = 0; i < report.alive.size() && i < kShown; ++i) {
      const MemoryReport::Alive& each = report.alive[i];
      const std::string text = "`" + each.name + "`: " + each.type + " takes " + formatBytes(each.bytes) +
                               (each.whole && module.mesh.devices() > 1 ? ", whole on every device" : "");
      whole = whole || each.whole;
      if (each.range.known()) {
        told.note(each.range, text);
      } else {
        told.note(text);
      }
    }
    if (whole && module.mesh.devices() > 1) {
      told.help("split what is whole over an axis of the mesh, or run on smaller blocks: `microbatches`, `--rows`");
    } else {
      told.help("split over more devices, or run on smaller blocks: `microbatches`, `--rows`");
    }
  }
  return exceeds;
}

}  // namespace gshard
