// Recording and writing traces; see trace.h.
#include "runtime/trace.h"

#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/clock.h"
#include "runtime/failure.h"
#include "runtime/file_bytes.h"
#include "runtime/program_text.h"

namespace gshard::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kRingEvents = std::size_t{1} << 16;
constexpr int kComputeTrack = 0, kCommunicationTrack = 1, kOtherTrack = 2;

std::string partOf(const std::string& file, std::int64_t device) {
  return file + ".device" + std::to_string(device);
}

double microseconds(double seconds) {
  return std::round(seconds * 1e9) / 1e3;
}

Json nameRecord(const char* kind, int device, int track, const std::string& name) {
  Json record{{"ph", "M"}, {"name", kind}, {"pid", device}};
  if (track >= 0) record["tid"] = track;
  record["args"] = {{"name", name}};
  return record;
}

}  // namespace

Trace::Trace(const gshard_rt_program& program, int device, std::string file)
    : program_(program), device_(device), file_(std::move(file)), ring_(kRingEvents) {}

Trace::~Trace() {
  if (written_) return;
  try {
    writePart();
  } catch (const Failure&) {
    // The run has failed already, and that is what is told.
  }
}

void Trace::add(const Event& event) {
  ring_[recorded_++ % ring_.size()] = event;
}

void Trace::stepDone(Device&, const gshard_rt_function& function, std::int64_t index, const Span& span) {
  const bool collective = communicates(function.steps[index]);
  add({nullptr, &function, index, collective ? collectives_++ : -1, span});
}

void Trace::other(const char* name, double begin, double end, std::int64_t trainingStep) {
  Event event;
  event.name = name;
  event.span.begin = begin;
  event.span.end = end;
  event.span.trainingStep = trainingStep;
  add(event);
}

void Trace::metrics(const Metrics& metrics, double at, std::int64_t trainingStep) {
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    const Metric& metric = metrics[m];
    if (metricNames_.size() <= m) metricNames_.push_back({metric.name, metric.isVector});
    for (std::size_t i = 0; i < metric.numbers.size(); ++i) {
      Event event;
      event.metric = static_cast<std::int64_t>(m);
      event.element = static_cast<std::int64_t>(i);
      event.number = metric.numbers[i];
      event.span.begin = at;
      event.span.trainingStep = trainingStep;
      add(event);
    }
  }
}

std::string Trace::text(const Event& event) const {
  Json record{{"ph", "X"}, {"pid", device_}};
  Json args{{"step", event.span.trainingStep}};
  int track = kOtherTrack;
  if (event.name != nullptr) {
    record["name"] = event.name;
  } else {
    const gshard_rt_step& step = event.function->steps[event.step];
    const gshard_rt_site& site = program_.sites[step.site];
    // Copies stand for no op: the memory plan made them where a value must lie in two places.
    const bool isCopy = step.kind == GSHARD_RT_STEP_COPY;
    record["name"] = isCopy ? "copy" : site.text;
    if (!isCopy) {
      args["op"] = site.text;
      args["line"] = site.location;
    }
    args["function"] = event.function->name;
    if (step.made_count > 0) args["shape"] = shardedText(program_, step.made[0].tensor);
    track = kComputeTrack;
    if (event.collective >= 0) {
      track = kCommunicationTrack;
      const auto& call = *static_cast<const gshard_rt_collective*>(step.call);
      args["id"] = event.collective;
      args["group"] = ExtentTable(program_).group(device_, call.axes, call.axis_count);
      args["bytes"] = event.span.bytes;
      args["wait_us"] = microseconds(event.span.wait);
      if (call.plan >= 0) {
        const gshard_rt_plan_entry& entry = program_.plan[call.plan];
        record["name"] = std::string(entry.kind) + " " + entry.axes;
        args["kind"] = entry.kind;
        args["axes"] = entry.axes;
        args["plan"] = call.plan;
        args["planned_bytes"] = entry.bytes_max;
        args["reason"] = entry.reason;
      }
    }
  }
  record["tid"] = track;
  record["ts"] = microseconds(event.span.begin - zero_);
  record["dur"] = microseconds(event.span.end - event.span.begin);
  record["args"] = args;
  return record.dump();
}

// The numbers of one metric in one step are one event: viewers draw them in one chart. JSON has no NaN.
std::string Trace::counterText(std::size_t first, std::size_t end) const {
  const Event& begin = ring_[first % ring_.size()];
  const MetricName& metric = metricNames_[static_cast<std::size_t>(begin.metric)];
  Json args = Json::object();
  for (std::size_t i = first; i < end; ++i) {
    const Event& event = ring_[i % ring_.size()];
    if (std::isfinite(event.number)) args[metric.isVector ? std::to_string(event.element) : metric.name] = event.number;
  }
  return Json{{"ph", "C"},
              {"pid", device_},
              {"name", metric.name},
              {"ts", microseconds(begin.span.begin - zero_)},
              {"args", args}}
      .dump();
}

// One event a line, so that parts are joined without being parsed; each is a whole trace of its own.
void Trace::writePart() {
  written_ = true;
  AtomicFile part(partOf(file_, device_));
  part.write("[\n");
  part.write(nameRecord("process_name", device_, -1, "device " + std::to_string(device_)).dump());
  constexpr std::pair<int, const char*> kTracks[] = {
      {kComputeTrack, "compute"}, {kCommunicationTrack, "communication"}, {kOtherTrack, "input and output"}};
  for (const auto& [track, name] : kTracks) part.write(",\n" + nameRecord("thread_name", device_, track, name).dump());
  const std::size_t kept = std::min(recorded_, ring_.size());
  if (recorded_ > kept) {
    const std::string lost = "the first " + std::to_string(recorded_ - kept) + " events are not kept";
    part.write(",\n" + nameRecord("process_labels", device_, -1, lost).dump());
  }
  for (std::size_t i = recorded_ - kept; i < recorded_;) {
    std::size_t next = i + 1;
    const Event& event = ring_[i % ring_.size()];
    if (event.element >= 0) {
      while (next < recorded_ && ring_[next % ring_.size()].element > event.element) ++next;
      // Of a vector whose first numbers are not kept there is none.
      if (event.element == 0) part.write(",\n" + counterText(i, next));
    } else {
      part.write(",\n" + text(event));
    }
    i = next;
  }
  part.write("\n]\n");
  part.commit();
}

void joinTrace(const std::string& file, std::int64_t devices) {
  AtomicFile whole(file);
  bool isFirst = true;
  for (std::int64_t device = 0; device < devices; ++device) {
    const std::string path = partOf(file, device);
    if (access(path.c_str(), R_OK) != 0) continue;
    const Bytes bytes = readFile(path);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    // Between "[\n" and "\n]\n".
    whole.write(isFirst ? "[\n" : ",\n");
    whole.write(text.substr(2, text.size() - 5));
    isFirst = false;
    unlink(path.c_str());
  }
  whole.write(isFirst ? "[]\n" : "\n]\n");
  whole.commit();
}

TraceSpan::TraceSpan(Trace* trace, const char* name, std::int64_t trainingStep)
    : trace_(trace), name_(name), trainingStep_(trainingStep) {
  if (trace_ != nullptr) begin_ = monotonicSeconds();
}

TraceSpan::~TraceSpan() {
  if (trace_ != nullptr) trace_->other(name_, begin_, monotonicSeconds(), trainingStep_);
}

}  // namespace gshard::runtime
