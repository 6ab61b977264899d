// --trace: what every device did when, as a Chrome trace that Perfetto and speedscope read. A device records into a
// ring of fixed size and writes a file of its own at its end, also when the run fails; device 0 joins them. Tracks
// never hold overlapping events, since viewers drop those.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/reporter.h"

namespace gshard::runtime {

class Trace : public StepObserver {
 public:
  Trace(const gshard_rt_program& program, int device, std::string file);
  ~Trace() override;  // writes the part if nobody has
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // What is time 0; the same moment on all devices.
  void start(double zero) { zero_ = zero; }
  void stepDone(Device& device, const gshard_rt_function& function, std::int64_t index, const Span& span) override;
  // What a training step says: counters beside the tracks of this device.
  void metrics(const Metrics& metrics, double at, std::int64_t trainingStep);
  // On the third track: feeding inputs, reading results, checkpoints. `name` is constant text.
  void other(const char* name, double begin, double end, std::int64_t trainingStep);

  // Throws Failure when the file cannot be written.
  void writePart();

 private:
  struct Event {
    const char* name = nullptr;  // of other(); else a step
    const gshard_rt_function* function = nullptr;
    std::int64_t step = 0;
    std::int64_t collective = -1;  // running number: equal on all devices
    Span span;
    std::int64_t metric = -1, element = -1;  // of metrics(): which, and the place of `number` in it
    double number = 0;
  };
  void add(const Event& event);
  std::string text(const Event& event) const;
  std::string counterText(std::size_t first, std::size_t end) const;

  const gshard_rt_program& program_;
  int device_;
  std::string file_;
  double zero_ = 0;
  std::int64_t collectives_ = 0;
  struct MetricName {
    std::string name;
    bool isVector = false;
  };
  std::vector<MetricName> metricNames_;  // the same in every step
  std::vector<Event> ring_;
  std::size_t recorded_ = 0;
  bool written_ = false;
};

// Joins the parts of devices 0 to `devices` - 1, as far as there are any, into `file`, and removes them. Throws
// Failure.
void joinTrace(const std::string& file, std::int64_t devices);

// Records the time from its making to its end, when there is a trace.
class TraceSpan {
 public:
  TraceSpan(Trace* trace, const char* name, std::int64_t trainingStep);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Trace* trace_;
  const char* name_;
  std::int64_t trainingStep_;
  double begin_ = 0;
};

}  // namespace gshard::runtime
