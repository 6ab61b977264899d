// Time per step; see step_profile.h.
#include "runtime/step_profile.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>

namespace gshard::runtime {

void StepProfile::stepDone(Device&, const gshard_rt_function& function, std::int64_t index, const Span& span) {
  std::vector<double>& seconds = seconds_[&function];
  if (seconds.empty()) seconds.resize(static_cast<std::size_t>(function.step_count), 0.0);
  seconds[static_cast<std::size_t>(index)] += span.end - span.begin;
}

StepProfile::Summary StepProfile::summary(const gshard_rt_program& program) const {
  // Layers share their lines of the source: steps of one kind, place and op are one line of the report.
  struct Line {
    double seconds = 0;
    std::int64_t steps = 0;
    std::set<std::string> texts;
  };
  Summary summary;
  std::map<std::tuple<std::string, std::string, std::string>, Line> merged;
  for (const auto& [function, seconds] : seconds_) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const gshard_rt_step& step = function->steps[i];
      const bool product = step.kind == GSHARD_RT_STEP_GEMM, collective = step.kind == GSHARD_RT_STEP_COLLECTIVE;
      (product ? summary.products : collective ? summary.collectives : summary.kernels) += seconds[i];
      const gshard_rt_site& site = program.sites[step.site];
      const std::string text = site.text, op = text.substr(0, text.find(' '));
      Line& line = merged[{product ? "product" : collective ? "collective" : "kernel", site.location, op}];
      line.seconds += seconds[i];
      ++line.steps;
      line.texts.insert(text);
    }
  }
  std::vector<std::pair<double, std::string>> lines;
  for (const auto& [key, line] : merged) {
    const auto& [kind, location, op] = key;
    std::string text = kind + "  " + location + "  " + (line.texts.size() == 1 ? *line.texts.begin() : op);
    if (line.steps > 1) text += " (" + std::to_string(line.steps) + " steps)";
    lines.emplace_back(line.seconds, std::move(text));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const double total = summary.products + summary.kernels + summary.collectives;
  for (const auto& [seconds, text] : lines) {
    char head[64];
    std::snprintf(head, sizeof head, "%9.3f ms %5.1f %%  ", seconds * 1e3, total > 0 ? 100 * seconds / total : 0.0);
    summary.lines.push_back(head + text);
  }
  return summary;
}

}  // namespace gshard::runtime
