// Log, progress, metrics and results; see reporter.h.
#include "runtime/reporter.h"

#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/clock.h"
#include "runtime/failure.h"
#include "runtime/tile_runs.h"

namespace gshard::runtime {

using Json = nlohmann::ordered_json;

template <class T>
static std::string shortest(T value) {
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc{} ? std::string(text, end) : "?";
}

std::string numberText(double value) {
  return shortest(value);
}

std::string metricText(const Metric& metric, std::size_t most) {
  const std::size_t count = metric.numbers.size();
  const std::size_t shown = count > most ? most - 1 : count;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : " ") + numberText(metric.numbers[i]);
  if (shown == count) return text;
  const double largest = *std::max_element(metric.numbers.begin(), metric.numbers.end());
  return text + " … (" + std::to_string(count) + ", largest " + numberText(largest) + ")";
}

double shortestDouble(ElementType type, const std::byte* value) {
  double exact = 0;
  convertElements(type, value, ElementType::F64, reinterpret_cast<std::byte*>(&exact), 1);
  if (type != ElementType::F32 && type != ElementType::BF16 && type != ElementType::F16) return exact;
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, static_cast<float>(exact));
  double shortened = exact;
  std::from_chars(text, end, shortened);
  return shortened;
}

std::string numberText(const Array& array, std::int64_t index) {
  switch (array.type) {
    case ElementType::F32:
    case ElementType::BF16:
    case ElementType::F16:
      return shortest(static_cast<float>(asDouble(array, index)));
    case ElementType::F64:
      return shortest(asDouble(array, index));
    case ElementType::I32:
    case ElementType::I64:
    case ElementType::U8:
      return std::to_string(asInteger(array, index));
    case ElementType::Bool:
      return asInteger(array, index) != 0 ? "true" : "false";
  }
  return "";
}

std::string resultsText(const NamedArrays& arrays) {
  std::string text;
  for (const auto& [name, array] : arrays) {
    if (arrays.size() > 1)
      text +=
          "# " + name + ": " + (array.shape.empty() ? std::string(elementName(array.type)) : arrayText(array)) + "\n";
    const std::int64_t count = array.count();
    // Vectors stand one number a line; from two dims on, a line is a row of the last dim.
    const std::int64_t row = array.shape.size() < 2 ? 1 : std::max<std::int64_t>(array.shape.back(), 1);
    for (std::int64_t i = 0; i < count; ++i) text += numberText(array, i) + ((i + 1) % row == 0 ? "\n" : " ");
  }
  return text;
}

Reporter::Reporter(std::string program, const Options& options, bool speaks)
    : program_(std::move(program)), speaks_(speaks) {
  info_ = speaks && !options.quiet && options.logLevel != "error";
  debug_ = info_ && options.logLevel == "debug";
  if (!speaks) return;
  const char* terminal = std::getenv("TERM");
  const bool capable = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr &&
                       (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
  bar_ = options.progress == ProgressKind::Bar || (options.progress == ProgressKind::Auto && capable);
  plain_ = options.progress == ProgressKind::Plain || (options.progress == ProgressKind::Auto && !capable);
  if (options.quiet) bar_ = plain_ = false;
  started_ = lastShown_ = monotonicSeconds();
  if (!options.metrics.empty()) {
    metricsPath_ = options.metrics;
    metrics_ = std::fopen(metricsPath_.c_str(), "w");
    if (metrics_ == nullptr) {
      throw failure(kExitIo, diag::FileUnwritable, options.metrics, std::string(std::strerror(errno)));
    }
  }
}

Reporter::~Reporter() {
  clear();
  if (metrics_ != nullptr) std::fclose(metrics_);
}

void Reporter::clear() {
  if (!barShown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  barShown_ = false;
}

void Reporter::log(const std::string& line) {
  if (!info_) return;
  clear();
  std::fprintf(stderr, "%s: %s\n", program_.c_str(), line.c_str());
}

void Reporter::debug(const std::string& line) {
  if (debug_) log(line);
}

void Reporter::writeMetrics(const std::string& line) {
  if (metrics_ == nullptr) return;
  const bool written = std::fputs((line + "\n").c_str(), metrics_) >= 0;
  if (written && std::fflush(metrics_) == 0) return;  // a run that is killed leaves whole lines
  const std::string reason = std::strerror(errno);
  std::fclose(std::exchange(metrics_, nullptr));
  throw failure(kExitIo, diag::FileUnwritable, metricsPath_,
                reason + (step_ < 0 ? "; the run ends here"
                                    : "; the run ends after step " + std::to_string(step_) + " and saves no more"));
}

void Reporter::runRecord(const std::string& infoJson, std::uint64_t seed) {
  if (metrics_ == nullptr) return;
  Json run = Json::parse(infoJson, nullptr, false);
  run["seed"] = seed;
  writeMetrics(Json{{"run", run}}.dump());
}

// JSON has no infinities or NaN: they become text, which readers of metrics see at once.
static Json finite(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

static void addMetrics(Json& line, const Metrics& metrics) {
  for (const Metric& metric : metrics) {
    if (!metric.isVector) {
      line[metric.name] = finite(metric.numbers[0]);
      continue;
    }
    Json numbers = Json::array();
    for (const double number : metric.numbers) numbers.push_back(finite(number));
    line[metric.name] = std::move(numbers);
  }
}

void Reporter::step(const StepRecord& record) {
  step_ = record.step;
  if (metrics_ != nullptr) {
    Json line{{"step", record.step}, {"set", "train"}};
    addMetrics(line, record.metrics);
    line["samples"] = record.samples;
    line["comm_bytes"] = record.bytes;
    line["step_ms"] = record.seconds * 1e3;
    line["time"] = {
        {"compute_ms", record.compute * 1e3}, {"comm_ms", record.communication * 1e3}, {"wait_ms", record.wait * 1e3}};
    writeMetrics(line.dump());
  }
  const double loss = record.metrics.empty() ? 0 : record.metrics[0].numbers[0];
  smoothed_ = firstStep_ < 0 ? loss : 0.9 * smoothed_ + 0.1 * loss;
  if (firstStep_ < 0) {
    firstStep_ = record.step - 1;
    firstSamples_ = record.samples;
    firstSamples_ -= record.samples / std::max<std::int64_t>(record.step, 1);
    started_ = monotonicSeconds() - record.seconds;
  }
  compute_ += record.compute;
  communication_ += record.communication;
  if (bar_) showBar(record);
  if (plain_) showPlain(record);
}

std::string Reporter::summary(const StepRecord& record) const {
  const double elapsed = std::max(monotonicSeconds() - started_, 1e-9);
  const double total = std::max(compute_ + communication_, 1e-12);
  const std::int64_t done = record.step - firstStep_;
  const double left = elapsed / static_cast<double>(std::max<std::int64_t>(done, 1)) *
                      static_cast<double>(record.lastStep - record.step);
  char text[200];
  std::snprintf(text, sizeof text,
                "%lld/%lld  loss %.4f  %.0f samples/s  compute %.0f %%  communication %.0f %%  %.0f s left",
                static_cast<long long>(record.step), static_cast<long long>(record.lastStep), smoothed_,
                static_cast<double>(record.samples - firstSamples_) / elapsed, 100 * compute_ / total,
                100 * communication_ / total, left);
  return text;
}

void Reporter::showBar(const StepRecord& record) {
  const double time = monotonicSeconds();
  if (time - lastShown_ < 0.1 && record.step != record.lastStep) return;
  lastShown_ = time;
  winsize window{};
  int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
  std::string text = summary(record);
  const int room = width - 1 - static_cast<int>(text.size()) - 4;
  if (room >= 8) {
    const int cells = std::min(room, 30);
    const int full =
        static_cast<int>(cells * (record.step - firstStep_) / std::max<std::int64_t>(record.lastStep - firstStep_, 1));
    text = "[" + std::string(static_cast<std::size_t>(full), '=') +
           std::string(static_cast<std::size_t>(cells - full), ' ') + "] " + text;
  }
  if (static_cast<int>(text.size()) > width - 1) text.resize(static_cast<std::size_t>(std::max(width - 1, 1)));
  std::fprintf(stderr, "\r%s\x1b[K", text.c_str());
  std::fflush(stderr);
  barShown_ = true;
}

void Reporter::showPlain(const StepRecord& record) {
  const double time = monotonicSeconds();
  if (time - lastShown_ < 10) return;
  lastShown_ = time;
  std::fprintf(stderr, "%s: step %s\n", program_.c_str(), summary(record).c_str());
}

void Reporter::evaluation(std::int64_t step, std::int64_t samples, std::int64_t bytes, const Metrics& metrics) {
  Json line{{"step", step}, {"set", "eval"}};
  addMetrics(line, metrics);
  line["samples"] = samples;
  line["comm_bytes"] = bytes;
  writeMetrics(line.dump());
}

void Reporter::profile(double products, double kernels, double collectives, const std::vector<std::string>& lines) {
  const double total = products + kernels + collectives;
  const double share = total > 0 ? products / total : 0.0;
  writeMetrics(Json{
      {"profile",
       {{"products_share", share}, {"products_s", products}, {"kernels_s", kernels}, {"collectives_s", collectives}}}}
                   .dump());
  for (const std::string& line : lines) log(line);
}

void Reporter::peak(std::int64_t planned, std::int64_t measured) {
  writeMetrics(Json{{"peak", {{"planned_peak_bytes", planned}, {"measured_peak_bytes", measured}}}}.dump());
  log("memory per device: planned peak " + std::to_string(planned) + " bytes, measured " + std::to_string(measured) +
      " bytes");
}

}  // namespace gshard::runtime
