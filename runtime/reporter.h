// What a run says: log lines and progress on stderr, metrics as JSON lines, results on stdout. Only device 0 has one
// that speaks. Apart from the loops that compute, which know nothing of terminals.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/array.h"
#include "runtime/file_bytes.h"
#include "runtime/options.h"

namespace gshard::runtime {

// A number that a step or an evaluation says by name, or a vector of them.
struct Metric {
  std::string name;
  std::vector<double> numbers;
  bool isVector = false;
};

// In program order: loss first, then reports by path.
using Metrics = std::vector<Metric>;

struct StepRecord {
  std::int64_t step = 0, lastStep = 0, samples = 0, bytes = 0;
  Metrics metrics;
  double seconds = 0, compute = 0, communication = 0, wait = 0;
};

class Reporter {
 public:
  // `speaks`: false on every device but 0. Throws Failure when the metrics file cannot be opened.
  Reporter(std::string program, const Options& options, bool speaks);
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void log(const std::string& line);  // level info
  void debug(const std::string& line);
  void runRecord(const std::string& infoJson, std::uint64_t seed);
  void step(const StepRecord& record);  // metrics and progress
  void evaluation(std::int64_t step, std::int64_t samples, std::int64_t bytes, const Metrics& metrics);
  void peak(std::int64_t planned, std::int64_t measured);
  // --profile: seconds per kind of step, and the lines of the table.
  void profile(double products, double kernels, double collectives, const std::vector<std::string>& lines);
  void clear();  // ends the bar before other output

 private:
  void writeMetrics(const std::string& line);  // throws Failure where it cannot
  void showBar(const StepRecord& record);
  void showPlain(const StepRecord& record);
  std::string summary(const StepRecord& record) const;

  std::string program_;
  bool speaks_ = false;
  bool info_ = true;
  bool debug_ = false;
  bool bar_ = false;
  bool plain_ = false;
  bool barShown_ = false;
  std::FILE* metrics_ = nullptr;
  std::string metricsPath_;
  std::int64_t step_ = -1;  // the last one that was told
  double started_ = 0, lastShown_ = 0, smoothed_ = 0, compute_ = 0, communication_ = 0;
  std::int64_t shown_ = 0, firstStep_ = -1, firstSamples_ = 0;
};

// Results as text: a number, or one row per line; several results are headed by their names.
std::string resultsText(const NamedArrays& arrays);

// The shortest text that reads back as the same number of that type.
std::string numberText(const Array& array, std::int64_t index);
std::string numberText(double value);
// `0.25`, or `3 0 5`; with `most`, of a longer vector its first numbers, its size and its largest: for log lines.
std::string metricText(const Metric& metric, std::size_t most = SIZE_MAX);
// The number that the shortest text of a value of that type reads as, so that 0.41 is not shown as 0.4099999964.
// Allocates nothing.
double shortestDouble(ElementType type, const std::byte* value);

}  // namespace gshard::runtime
