// The commands of a run, as every device executes them; see worker.h.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runtime/arena_pattern.h"
#include "runtime/clock.h"
#include "runtime/failure.h"
#include "runtime/program_text.h"
#include "runtime/worker.h"

namespace gshard::runtime {

// Of a vector, in a log line.
constexpr std::size_t kNumbersInLine = 8;

int Worker::run() {
  if (!startTrace()) return kExitOtherDevice;
  int code = initialise();
  if (code != 0) return code;
  switch (session_.command) {
    case Command::Train:
      code = train();
      break;
    case Command::Eval:
      code = evaluateAndPrint();
      break;
    case Command::Entry:
      code = computeEntry();
      break;
  }
  return code == 0 || code >= 128 ? finishRun(code) : code;
}

int Worker::initialise() {
  const bool complete = session_.checkpoint.has_value();
  for (const gshard_rt_function* function : functionsOf(session_.program, GSHARD_RT_INIT)) {
    step_ = 0;
    if (!call(*function, RowRange{})) return kExitOtherDevice;
    Agreement agreement;
    const int code = agree(*function, function->comm_bytes_max, function->comm_bytes_total, true, agreement);
    if (code != 0) return code;
  }
  step_ = session_.firstStep;
  device_.setRows(0, 0);
  if (session_.parameters) applyTensors(device_, *session_.parameters);
  if (session_.checkpoint) applyTensors(device_, *session_.checkpoint);
  std::string line;
  if (complete) {
    line = "loaded " + session_.checkpoint->path + ", step " + std::to_string(step_);
  } else if (session_.parameters) {
    line = "parameters from " + session_.parameters->path;
  } else if (session_.program.parameter_count > 0) {
    line = "parameters initialised, seed " + std::to_string(session_.options.seed);
    if (session_.command != Command::Train) line += " (no --checkpoint and no --init)";
  }
  if (!line.empty()) reporter_.log(line);
  // Nobody may overwrite what another still initialises.
  return device_.transport().barrier() ? 0 : kExitOtherDevice;
}

// The function whose outputs hold the result of a call.
static const gshard_rt_function& resultOf(const gshard_rt_program& program, const gshard_rt_function& function) {
  const gshard_rt_function* finish = finishOf(program, function);
  return finish != nullptr ? *finish : function;
}

int Worker::train() {
  const Options& options = session_.options;
  const std::int64_t lastStep = session_.firstStep + session_.steps;
  std::int64_t samples = session_.firstStep * rowsPerCall(*session_.functions[0]);
  StepRecord record;  // kept, so that its names and numbers are allocated once
  while (step_ < lastStep) {
    const double begin = monotonicSeconds();
    std::size_t metricCount = 0;
    std::int64_t plannedMax = 0;
    std::int64_t plannedTotal = 0;
    int functionsRun = 0;
    for (const gshard_rt_function* function : session_.functions) {
      const Feed& feed = session_.feeds.at(function);
      RowRange rows;
      rows.count = rowsPerCall(*function);
      rows.step = step_;
      if (const std::int64_t batches = batchesPerEpoch(feed, *function)) {
        rows.epoch = step_ / batches;
        rows.first = step_ % batches * rows.count;
        rows.shuffled = function->rows != 0;
      }
      const gshard_rt_function* finish = finishOf(session_.program, *function);
      const std::int64_t times =
          function->stage == GSHARD_RT_ACCUMULATE ? std::max<std::int64_t>(function->blocks, 1) : 1;
      plannedMax += times * function->comm_bytes_max + (finish != nullptr ? finish->comm_bytes_max : 0);
      plannedTotal += times * function->comm_bytes_total + (finish != nullptr ? finish->comm_bytes_total : 0);
      functionsRun += finish != nullptr ? 2 : 1;
      if (!call(*function, rows)) return kExitOtherDevice;
      metricCount = readMetrics(resultOf(session_.program, *function), record.metrics, metricCount);
    }
    samples += rowsPerCall(*session_.functions[0]);
    ++step_;
    Agreement agreement;
    // Only of one function is the maximum of the sum the sum of the maxima.
    const int code = agree(*session_.functions[0], functionsRun == 1 ? plannedMax : -1, plannedTotal, true, agreement);
    if (code != 0) return code;
    record.step = step_;
    record.lastStep = lastStep;
    record.samples = samples;
    record.bytes = agreement.bytesMax;
    record.seconds = monotonicSeconds() - begin;
    record.compute = agreement.compute;
    record.communication = agreement.communication;
    record.wait = agreement.wait;
    if (!record.metrics.empty()) {
      record.metrics[0].name = "loss";
      session_.lastLoss.store(record.metrics[0].numbers[0]);
      session_.lastStep.store(step_);
      if (trace_ != nullptr) trace_->metrics(record.metrics, monotonicSeconds(), step_);
    }
    reporter_.step(record);
    if (agreement.signal != 0) {
      reporter_.log("stopped by a signal after step " + std::to_string(step_));
      return save(step_) ? 128 + agreement.signal : kExitOtherDevice;
    }
    if (options.evalEvery > 0 && step_ % options.evalEvery == 0) {
      Evaluation evaluation;
      if (const int failed = evaluate(session_.evalFunctions, evaluation)) return failed;
      std::string line;
      for (const Metric& metric : evaluation.metrics)
        line += (line.empty() ? "" : ", ") + metric.name + " " + metricText(metric, kNumbersInLine);
      reporter_.log("step " + std::to_string(step_) + ": evaluation: " + line);
    }
    if (options.saveEvery > 0 && step_ % options.saveEvery == 0 && step_ != lastStep && !save(step_))
      return kExitOtherDevice;
    if (step_ == lastStep && !record.metrics.empty()) {
      reporter_.log("step " + std::to_string(step_) + ": loss " + numberText(record.metrics[0].numbers[0]));
    }
  }
  return save(step_) ? 0 : kExitOtherDevice;
}

// Adds `part` to `sum`, which takes its names from the first part.
static void addWeighted(Metrics& sum, Metrics part, double weight) {
  for (Metric& metric : part) {
    for (double& number : metric.numbers) number *= weight;
  }
  if (sum.empty()) {
    sum = std::move(part);
    return;
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    for (std::size_t n = 0; n < sum[i].numbers.size(); ++n) sum[i].numbers[n] += part[i].numbers[n];
  }
}

int Worker::evaluate(const std::vector<const gshard_rt_function*>& functions, Evaluation& evaluation) {
  Metrics& metrics = evaluation.metrics;
  std::int64_t& samples = evaluation.samples;
  std::int64_t& bytes = evaluation.bytes;
  for (const gshard_rt_function* function : functions) {
    const Feed& feed = session_.feeds.at(function);
    const gshard_rt_function& result = resultOf(session_.program, *function);
    std::int64_t rows = function->rows == 0 ? 0 : feed.hasData() ? feed.rows : rowsPerCall(*function);
    const bool averaged = function->stage != GSHARD_RT_ACCUMULATE && function->rows != 0;
    // Compiled for whole batches only (blocks is 0 where a batch may be shorter): the rest is left out.
    if (averaged && function->blocks != 0 && rows > function->rows) rows -= rows % function->rows;
    Metrics own;
    // A function that cannot accumulate is evaluated batch by batch, and its numbers are averaged by rows.
    const std::int64_t piece = averaged ? function->rows : rows;
    std::int64_t first = 0;
    do {
      RowRange range{first, averaged ? std::min(piece, rows - first) : rows, 0, step_, false};
      if (!call(*function, range)) return kExitOtherDevice;
      Metrics part;
      readMetrics(result, part, 0);
      Agreement agreement;
      const int code = agree(*function, function->comm_bytes_max, function->comm_bytes_total,
                             function->stage == GSHARD_RT_WHOLE && range.count == function->rows, agreement);
      if (code != 0) return code;
      bytes += agreement.bytesMax;
      const double weight = averaged ? static_cast<double>(range.count) / static_cast<double>(rows) : 1.0;
      addWeighted(own, std::move(part), averaged && rows > piece ? weight : 1.0);
      first += range.count;
      if (agreement.signal != 0) return 128 + agreement.signal;
    } while (first < rows);
    samples = std::max(samples, rows);
    metrics.insert(metrics.end(), own.begin(), own.end());
  }
  Metrics named = metrics;
  if (!named.empty()) named[0].name = "loss";
  reporter_.evaluation(step_, samples, bytes, named);
  return 0;
}

int Worker::evaluateAndPrint() {
  Evaluation evaluation;
  if (const int code = evaluate(session_.functions, evaluation)) return code;
  if (device_.transport().rank() != 0) return 0;
  reporter_.clear();
  for (const Metric& metric : evaluation.metrics)
    std::printf("%s %s\n", metric.name.c_str(), metricText(metric).c_str());
  std::fflush(stdout);
  return 0;
}

int Worker::computeEntry() {
  const gshard_rt_function& function = *session_.functions[0];
  const Feed& feed = session_.feeds.at(&function);
  const std::int64_t all = function.rows == 0 ? 0 : feed.hasData() ? feed.rows : rowsPerCall(function);
  const bool whole = function.stage != GSHARD_RT_ACCUMULATE && function.rows != 0;
  bool byRows = function.output_count > 0;
  for (std::int64_t i = 0; i < function.output_count; ++i) byRows = byRows && function.outputs[i].rows != 0;
  std::int64_t rows = all;
  if (whole && !byRows && all > function.rows) {
    // Its result is of one batch; only row results can be put together.
    rows = function.rows;
    reporter_.log("`" + baseName(function) + "` is of one batch: rows 0.." + std::to_string(rows) + " of " +
                  std::to_string(all) + " are used");
  }
  NamedArrays results;
  std::int64_t first = 0;
  do {
    const RowRange range{first, whole ? std::min(function.rows, rows - first) : rows, 0, step_, false};
    const auto keep = [&](const gshard_rt_function& done) { return readResults(done, results); };
    if (!call(function, range, keep)) return kExitOtherDevice;
    Agreement agreement;
    const bool exact = function.stage == GSHARD_RT_WHOLE && range.count == function.rows;
    const int code = agree(function, function.comm_bytes_max, function.comm_bytes_total, exact, agreement);
    if (code != 0) return code;
    first += std::max<std::int64_t>(range.count, 1);
    if (agreement.signal != 0) return 128 + agreement.signal;
  } while (first < rows);
  return device_.transport().rank() == 0 ? writeResults(results) : 0;
}

int Worker::writeResults(NamedArrays& results) {
  // Blocks yield row results before the finish function yields the others: back to the order of the program.
  const auto number = [](const std::string& name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? 0L : std::strtol(name.c_str() + dot + 1, nullptr, 10);
  };
  std::stable_sort(results.begin(), results.end(),
                   [&](const auto& a, const auto& b) { return number(a.first) < number(b.first); });
  reporter_.clear();
  if (session_.options.output.empty() || session_.options.output == "-") {
    const std::string text = resultsText(results);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  } else {
    writeArrays(session_.options.output, results);
    reporter_.log("wrote " + session_.options.output);
  }
  return 0;
}

int Worker::finishRun(int code) {
  if (!endTrace()) return kExitOtherDevice;
  if (session_.options.profile && device_.transport().rank() == 0) {
    const StepProfile::Summary summary = profile_.summary(session_.program);
    reporter_.profile(summary.products, summary.kernels, summary.collectives, summary.lines);
  }
  if (!session_.options.measurePeak) return code;
  const std::int64_t mine = highestTouchedByte(device_.arena(), device_.transport().arenaBytes());
  std::vector<std::int64_t> all(static_cast<std::size_t>(device_.transport().size()));
  if (!device_.transport().agree(&mine, sizeof mine, all.data())) return kExitOtherDevice;
  reporter_.peak(plannedPeak_, *std::max_element(all.begin(), all.end()));
  return code;
}

}  // namespace gshard::runtime
