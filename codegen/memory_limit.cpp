// Telling what is over the limit; see memory_limit.h.
#include "codegen/memory_limit.h"

#include "codegen/diagnostics.h"
#include "support/text.h"

namespace gshard {

namespace {

constexpr std::size_t kShown = 3;

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

bool exceedsMemory(const Module& module, const std::vector<MemoryReport>& reports, std::int64_t limit, DiagSink& diag) {
  bool exceeds = false;
  for (const MemoryReport& report : reports) {
    if (report.peakBytes <= limit) continue;
    exceeds = true;
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
