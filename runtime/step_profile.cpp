// Time per step; see step_profile.h.
#include "runtime/step_profile.h"

#include <algorithm>
#include <cstdio>

namespace gshard {

void StepProfile::stepDone(Device&, const gshard_rt_function& function, std::int64_t index, const Span& span) {
  std::vector<double>& seconds = seconds_[&function];
  if (seconds.empty()) seconds.resize(static_cast<std::size_t>(function.step_count), 0.0);
  seconds[static_cast<std::size_t>(index)] += span.end - span.begin;
}

StepProfile::Summary StepProfile::summary(const gshard_rt_program& program) const {
  struct Line {
    double seconds;
    std::string text;
  };
  Summary summary;
  std::vector<Line> lines;
  for (const auto& [function, seconds] : seconds_) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const gshard_rt_step& step = function->steps[i];
      const bool product = step.kind == GSHARD_RT_STEP_GEMM, collective = step.kind == GSHARD_RT_STEP_COLLECTIVE;
      (product ? summary.products : collective ? summary.collectives : summary.kernels) += seconds[i];
      const gshard_rt_site& site = program.sites[step.site];
      lines.push_back({seconds[i], std::string(product      ? "product"
                                               : collective ? "collective"
                                                            : "kernel") +
                                       "  " + site.location + "  " + site.text});
    }
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.seconds > b.seconds; });
  const double total = summary.products + summary.kernels + summary.collectives;
  for (const Line& line : lines) {
    char head[64];
    std::snprintf(head, sizeof head, "%9.3f ms %5.1f %%  ", line.seconds * 1e3,
                  total > 0 ? 100 * line.seconds / total : 0.0);
    summary.lines.push_back(head + line.text);
  }
  return summary;
}

}  // namespace gshard
