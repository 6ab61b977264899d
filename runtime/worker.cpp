// Calls of functions and what devices agree on after them; see worker.h. The commands themselves are in commands.cpp.
#include "runtime/worker.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/clock.h"
#include "runtime/failure.h"
#include "runtime/program_text.h"
#include "runtime/tile_runs.h"

namespace gshard::runtime {

Worker::Worker(Session& session, Device& device, Reporter& reporter)
    : session_(session),
      device_(device),
      reporter_(reporter),
      contributions_(static_cast<std::size_t>(device.transport().size())),
      step_(session.firstStep) {
  const Options& options = session.options;
  if (options.profile) device_.observe(profile_);
  if (options.checkNumerics) device_.observe(numerics_);
  if (!options.trace.empty()) {
    trace_ = std::make_unique<Trace>(session.program, device.transport().rank(), options.trace);
    device_.observe(*trace_);
  }
}

// Devices of one host have one clock; those of several begin to count when all have met.
bool Worker::startTrace() {
  if (trace_ == nullptr) return true;
  const double mine = monotonicSeconds();
  std::vector<double> all(contributions_.size());
  if (!device_.transport().agree(&mine, sizeof mine, all.data())) return false;
  trace_->start(device_.transport().oneHost() ? all[0] : monotonicSeconds());
  return true;
}

bool Worker::endTrace() {
  if (trace_ == nullptr) return true;
  trace_->writePart();
  if (!device_.transport().barrier()) return false;
  if (device_.transport().rank() == 0) joinTrace(session_.options.trace, session_.program.devices);
  return true;
}

void Worker::writeScalars(const gshard_rt_function& function) {
  const auto writeInteger = [&](std::int64_t offset, std::int64_t value) {
    if (offset < 0) return;
    const std::int32_t narrow = static_cast<std::int32_t>(value);
    std::memcpy(device_.arena() + offset, &narrow, sizeof narrow);
  };
  writeInteger(function.step_offset, step_);
  writeInteger(function.steps_offset, session_.steps);
  for (std::int64_t i = 0; i < function.setting_count; ++i) {
    const gshard_rt_setting& setting = session_.program.settings[function.settings[i].setting];
    const auto given = session_.settings.find(setting.name);
    const double value = given == session_.settings.end() ? setting.value : given->second;
    convertElements(ElementType::F64, reinterpret_cast<const std::byte*>(&value),
                    static_cast<ElementType>(setting.dtype), device_.arena() + function.settings[i].offset, 1);
  }
}

bool Worker::runFunction(const gshard_rt_function& function, const RowRange& rows, std::int64_t total) {
  plannedPeak_ = std::max(plannedPeak_, function.peak_bytes);
  device_.setRows(rows.count, total);
  const auto feed = session_.feeds.find(&function);
  if (feed != session_.feeds.end()) {
    const TraceSpan span(trace_.get(), "feed inputs", step_);
    feedInputs(device_, feed->second, rows);
    for (StepObserver* observer : device_.observers()) observer->inputsFed(device_, function);
  }
  writeScalars(function);
  return device_.run(function, step_);
}

bool Worker::call(const gshard_rt_function& function, RowRange rows, const AfterBlock& afterBlock) {
  const std::int64_t total = rows.count;
  const std::int64_t start = rows.first;
  const std::int64_t end = start + rows.count;
  const bool accumulates = function.stage == GSHARD_RT_ACCUMULATE;
  if (accumulates) device_.fillAccumulators(function);
  do {
    rows.count = function.rows == 0 || !accumulates ? total : std::min(function.rows, end - rows.first);
    device_.setFirstRow(rows.shuffled ? rows.first - start : rows.first);
    if (!runFunction(function, rows, total)) return false;
    if (afterBlock && !afterBlock(function)) return false;
    rows.first += rows.count;
  } while (accumulates && rows.first < end);
  const gshard_rt_function* finish = finishOf(session_.program, function);
  if (finish == nullptr) return true;
  rows.count = 0;
  return runFunction(*finish, rows, total) && (!afterBlock || afterBlock(*finish));
}

int Worker::reportFault(const Agreement& agreement) {
  const Fault& fault = agreement.fault;
  const bool known = fault.site < session_.program.site_count;
  const std::string text = known ? session_.program.sites[fault.site].text : "an operation";
  const std::string place = known ? session_.program.sites[fault.site].location : "";
  std::string message;
  if (fault.limit >= 0) {
    message = diagText(diag::IndexOutOfRange, place, text, fault.value, fault.limit, fault.index);
  } else if (fault.limit <= GSHARD_RT_LIMIT_OF_START_MOST) {
    message = diagText(diag::StartOutOfRange, place, text, fault.value, fault.index, fault.limit - INT64_MIN);
  } else if (fault.limit <= kNonFiniteInput) {
    const gshard_rt_function& function = functionOfFind(session_.program, fault);
    message = diagText(diag::NonFiniteInput, std::string(function.inputs[kNonFiniteInput - fault.limit].name),
                       baseName(function), std::string(nonFiniteText(fault.value)), fault.index);
  } else if (fault.limit == kNonFinite) {
    message = diagText(diag::NonFinite, place, text, std::string(nonFiniteText(fault.value)), fault.index);
  } else {
    message = diagText(diag::DivisionByZero, place, text, fault.index);
  }
  // Of rows that are worked on block by block, elements are counted within their block.
  const std::string block = fault.firstRow > 0 ? ", in the block of rows from " + std::to_string(fault.firstRow) : "";
  throw Failure{kExitProgram, message + "\n  note: found on device " + std::to_string(agreement.faultDevice) +
                                  ", step " + std::to_string(step_) + block};
}

int Worker::agree(const gshard_rt_function& function, std::int64_t plannedMax, std::int64_t plannedTotal, bool exact,
                  Agreement& agreement) {
  Transport& transport = device_.transport();
  Contribution mine;
  mine.fault = device_.takeFault();
  mine.bytes = transport.bytesReceived() - bytesBefore_;
  mine.compute = device_.times().compute - timesBefore_.compute;
  mine.communication = device_.times().communication - timesBefore_.communication;
  mine.wait = transport.waitSeconds() - waitBefore_;
  mine.signal = session_.signal.load(std::memory_order_relaxed);
  static_assert(sizeof(Contribution) <= Transport::kAgreeBytes);
  std::vector<Contribution>& all = contributions_;
  const TraceSpan span(trace_.get(), "agreement", step_);
  if (!transport.agree(&mine, sizeof mine, all.data())) return kExitOtherDevice;
  for (std::size_t device = 0; device < all.size(); ++device) {
    const Contribution& other = all[device];
    if (other.fault.happened() && (!agreement.fault.happened() || other.fault.before(agreement.fault))) {
      agreement.fault = other.fault;
      agreement.faultDevice = static_cast<int>(device);
    }
    agreement.bytesMax = std::max(agreement.bytesMax, other.bytes);
    agreement.bytesTotal += other.bytes;
    agreement.compute += other.compute / static_cast<double>(all.size());
    agreement.communication += other.communication / static_cast<double>(all.size());
    agreement.wait += other.wait / static_cast<double>(all.size());
    agreement.signal = std::max(agreement.signal, static_cast<int>(other.signal));
  }
  bytesBefore_ = transport.bytesReceived();
  timesBefore_ = device_.times();
  waitBefore_ = transport.waitSeconds();
  if (agreement.fault.happened()) return reportFault(agreement);
  if (session_.options.verifyPlan && exact &&
      (agreement.bytesTotal != plannedTotal || (plannedMax >= 0 && agreement.bytesMax != plannedMax))) {
    throw failure(kExitBug, diag::PlanDiffers, baseName(function), agreement.bytesMax, agreement.bytesTotal,
                  std::max<std::int64_t>(plannedMax, 0), plannedTotal);
  }
  return 0;
}

// A value without a name of its own is named by its entry; further results keep their number.
const std::vector<std::string>& Worker::metricNames(const gshard_rt_function& function) {
  const auto [entry, isNew] = metricNames_.try_emplace(&function);
  for (std::int64_t i = 0; isNew && i < function.output_count; ++i) {
    std::string name = function.outputs[i].name;
    if (name == "result" || name == "result.0") {
      name = baseName(function);
    } else if (name.rfind("result.", 0) == 0) {
      name = baseName(function) + name.substr(6);
    }
    entry->second.push_back(name);
  }
  return entry->second;
}

std::size_t Worker::readMetrics(const gshard_rt_function& function, Metrics& metrics, std::size_t first) {
  if (device_.transport().rank() != 0) return first;
  const std::vector<std::string>& names = metricNames(function);
  for (std::int64_t i = 0; i < function.output_count; ++i) {
    const gshard_rt_tensor& tensor = function.outputs[i].tensor;
    // A report is whole on every device.
    const bool isVector = function.outputs[i].kind == GSHARD_RT_REPORT && tensor.rank == 1;
    if (tensor.rank != 0 && !isVector) continue;
    if (metrics.size() <= first) metrics.emplace_back();
    Metric& metric = metrics[first++];
    metric.name = names[static_cast<std::size_t>(i)];
    metric.isVector = isVector;
    metric.numbers.resize(isVector ? static_cast<std::size_t>(tensor.shape[0]) : 1);
    const auto type = static_cast<ElementType>(tensor.dtype);
    const std::byte* element = device_.arena() + tensor.offset;
    for (double& number : metric.numbers) {
      number = shortestDouble(type, element);
      element += elementBytes(type);
    }
  }
  return first;
}

bool Worker::readResults(const gshard_rt_function& function, NamedArrays& results) {
  for (std::int64_t i = 0; i < function.output_count; ++i) {
    const gshard_rt_output& output = function.outputs[i];
    if (output.kind != GSHARD_RT_OUTPUT) continue;
    Array part;
    if (!assemble(device_, output.tensor, part)) return false;
    if (device_.transport().rank() != 0) continue;
    const auto known =
        std::find_if(results.begin(), results.end(), [&](const auto& entry) { return entry.first == output.name; });
    if (known == results.end()) {
      results.emplace_back(output.name, std::move(part));
    } else if (output.rows != 0) {
      known->second.shape[0] += part.shape[0];
      known->second.bytes.insert(known->second.bytes.end(), part.bytes.begin(), part.bytes.end());
    } else {
      known->second = std::move(part);
    }
  }
  return true;
}

bool Worker::save(std::int64_t step) {
  if (session_.options.checkpoint.empty()) return true;
  const TraceSpan span(trace_.get(), "save checkpoint", step);
  const std::string path =
      saveCheckpoint(device_, session_.options.checkpoint, step, session_.options.seed, session_.options.keep);
  if (!path.empty()) reporter_.log("saved " + path);
  return device_.transport().barrier();
}

}  // namespace gshard::runtime
