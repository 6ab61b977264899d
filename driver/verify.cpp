// gshardc verify: compiles and runs the program once per device count and compares every entry's results, the losses of
// the first training steps and the parameters after them with one device. Bit-equal where no float is summed, else
// within 1e-4 of the tensor's largest magnitude (design.md section 8), or what 16-bit floats can tell apart.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/commands.h"
#include "driver/process.h"
#include "driver/safetensors_read.h"
#include "driver/stages.h"
#include "support/text.h"

namespace gshard {

namespace fs = std::filesystem;

namespace {

using Tensors = std::map<std::string, ReadTensor>;

struct Outcome {
  bool skipped = false;
  std::string reason;  // of the skip
  std::int64_t devices = 1;
  Tensors tensors;                           // "predict result", "parameter net.w1", "loss per step"
  std::map<std::string, double> tolerances;  // per tensor, relative; 0: the same bits
  double trained = 0;                        // of losses and what is trained
};

constexpr double kTolerance = 1e-4;

// What a sum in another order may change: nothing where no floats are summed; where 16-bit floats follow, it may tip
// their rounding: two units in their last place.
double toleranceOf(const Module& module, const std::string& entry) {
  bool sums = false;
  double tolerance = kTolerance;
  for (const Function& function : module.functions) {
    if (!function.name.starts_with(entry)) continue;
    for (const Value& value : function.values) {
      if (value.type.dtype == DType::BF16) tolerance = std::max(tolerance, 0x1p-7);
      if (value.type.dtype == DType::F16) tolerance = std::max(tolerance, 0x1p-10);
    }
    for (const Op& op : function.ops) {
      const bool adds = op.kind == OpKind::Contract || op.kind == OpKind::Reduce || op.kind == OpKind::ScatterAdd ||
                        op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter;
      sums = sums || (adds && isFloat(function.type(op.results[0]).dtype));
    }
  }
  return sums ? tolerance : 0;
}

class ScratchFolder {
 public:
  ScratchFolder() : path_(fs::temp_directory_path() / ("gshardc-verify-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void runOrStop(const std::vector<std::string>& command, std::int64_t devices, bool mpi) {
  std::vector<std::string> words = command;
  std::vector<std::pair<std::string, std::string>> environment;
  if (mpi) {
    words.insert(words.begin(), {"mpirun", "-n", std::to_string(devices)});
    environment = mpiEnvironment();
  }
  std::string error;
  const int code = runProcess(words, environment, true, mpi, error);
  if (code == 0) return;
  std::fprintf(stderr, "error: on %s `%s` ended with %d%s%s\n", plural(devices, "device").c_str(),
               join(command, " ").c_str(), code, error.empty() ? "" : ": ", error.c_str());
  throw Stopped{kProgramErrors};
}

Tensors readOrStop(const fs::path& path) {
  std::string error;
  auto tensors = readSafetensors(path.string(), error);
  if (tensors) return std::move(*tensors);
  std::fprintf(stderr, "error: %s\n", error.c_str());
  throw Stopped{kInputOutput};
}

// The loss of every step, as one tensor.
ReadTensor readLosses(const fs::path& path) {
  ReadTensor losses;
  losses.dtype = "F32";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") && json.contains("loss"))
      losses.numbers.push_back(json["loss"].get<double>());
  }
  losses.shape = {static_cast<std::int64_t>(losses.numbers.size())};
  losses.bytes.assign(reinterpret_cast<const char*>(losses.numbers.data()), losses.numbers.size() * sizeof(double));
  return losses;
}

// "4" or "2x2" in the options of one run.
Options optionsFor(const Options& given, const std::string& count, const Mesh* declared) {
  Options options = given;
  options.mesh.clear();
  options.devices.reset();
  if (count.find('x') == std::string::npos) {
    options.devices = std::stoll(count);
    return options;
  }
  const std::vector<std::string> sizes = splitText(count, 'x');
  for (std::size_t i = 0; i < sizes.size() && declared != nullptr && i < declared->axes.size(); ++i) {
    options.mesh += (i == 0 ? "" : ",") + declared->axes[i].name + "=" + sizes[i];
  }
  return options;
}

Outcome runOnce(const Options& options, const fs::path& folder) {
  Outcome outcome;
  Session session(options);
  Partitioned partitioned;
  try {
    partitioned = partitionedModule(session);
  } catch (const Stopped&) {
    // An integer split that fits no axis of this mesh is no difference in results (design.md section 8).
    for (const Diagnostic& diagnostic : session.sink().diagnostics()) {
      if (diagnostic.severity == Severity::Error && diagnostic.name.find("Split") != std::string::npos) {
        outcome.skipped = true;
        outcome.reason = diagnostic.message;
        return outcome;
      }
    }
    session.flush();
    session.summarize();
    throw;
  }
  outcome.devices = partitioned.module.mesh.devices();
  const fs::path binary = folder / partitioned.module.name;
  buildExecutable(session, partitioned, binary.string());
  bool trains = false;
  std::vector<std::string> entries;
  for (const Function& function : partitioned.module.functions) {
    if (function.kind == FunctionKind::Train) {
      trains = true;
      // A step always may: its loss is a sum over rows.
      outcome.trained = std::max({outcome.trained, kTolerance, toleranceOf(partitioned.module, function.name)});
    }
    if (function.kind != FunctionKind::Entry || function.stage == Stage::Finish) continue;
    entries.push_back(function.name.substr(0, function.name.find(".accumulate")));
  }
  for (const std::string& entry : entries) {
    const fs::path out = folder / (entry + ".safetensors");
    runOrStop({binary.string(), entry, "-q", "-o", out.string()}, outcome.devices, options.mpi);
    for (auto& [name, tensor] : readOrStop(out)) {
      outcome.tolerances[entry + " " + name] = toleranceOf(partitioned.module, entry);
      outcome.tensors.emplace(entry + " " + name, std::move(tensor));
    }
  }
  if (trains) {
    const fs::path checkpoint = folder / "checkpoint", metrics = folder / "metrics.jsonl";
    runOrStop({binary.string(), "train", "-q", "--steps", std::to_string(options.steps), "--checkpoint",
               checkpoint.string(), "--metrics", metrics.string()},
              outcome.devices, options.mpi);
    outcome.tensors.emplace("loss per step", readLosses(metrics));
    for (auto& [name, tensor] : readOrStop(checkpoint / ("step-" + std::to_string(options.steps) + ".safetensors"))) {
      outcome.tensors.emplace("after " + plural(options.steps, "step") + " " + name, std::move(tensor));
    }
  }
  return outcome;
}

struct Difference {
  double value = 0, scale = 0;
  bool bits = true;
  bool shapes = true;
};

Difference compare(const ReadTensor& a, const ReadTensor& b) {
  Difference difference;
  difference.shapes = a.shape == b.shape && a.dtype == b.dtype && a.numbers.size() == b.numbers.size();
  difference.bits = difference.shapes && a.bytes == b.bytes;
  for (std::size_t i = 0; difference.shapes && i < a.numbers.size(); ++i) {
    difference.scale = std::max(difference.scale, std::isfinite(a.numbers[i]) ? std::fabs(a.numbers[i]) : 0.0);
    if (std::isnan(a.numbers[i]) && std::isnan(b.numbers[i])) continue;
    if (a.numbers[i] == b.numbers[i]) continue;
    const double d = std::fabs(a.numbers[i] - b.numbers[i]);
    difference.value = std::max(difference.value, std::isnan(d) ? INFINITY : d);
  }
  return difference;
}

// Two digits tell how far apart numbers are.
std::string shortNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

bool report(const std::string& count, const Outcome& base, const Outcome& outcome) {
  std::printf("%s:\n", count.find('x') == std::string::npos ? plural(outcome.devices, "device").c_str()
                                                            : (count + " devices").c_str());
  bool equal = true;
  for (const auto& [name, tensor] : base.tensors) {
    const auto other = outcome.tensors.find(name);
    if (other == outcome.tensors.end()) {
      std::printf("  %-40s missing\n", name.c_str());
      equal = false;
      continue;
    }
    const Difference difference = compare(tensor, other->second);
    const auto known = base.tolerances.find(name);
    const double tolerance = known == base.tolerances.end() ? base.trained : known->second;
    const bool same =
        difference.shapes && (difference.bits || (tolerance > 0 && difference.value <= tolerance * difference.scale));
    equal = equal && same;
    std::printf("  %-40s %s\n", name.c_str(),
                !difference.shapes ? "another shape or type"
                : difference.bits  ? "equal bits"
                                   : ("largest difference " + shortNumber(difference.value) + " of " +
                                     shortNumber(difference.scale) + (same ? "" : "   DIFFERS"))
                                        .c_str());
  }
  return equal;
}

}  // namespace

int runVerify(const Options& given) {
  ScratchFolder scratch;
  // The program's own mesh names the axes of counts like 2x2.
  Mesh declared;
  {
    Session session(given);
    const Module module = globalModule(session);
    if (module.meshDeclared) declared = module.mesh;
  }
  const auto once = [&](const std::string& count) {
    const Options options = optionsFor(given, count, declared.axes.empty() ? nullptr : &declared);
    Outcome skipped;
    skipped.skipped = true;
    if (count.find('x') != std::string::npos && declared.axes.size() != splitText(count, 'x').size()) {
      skipped.reason = "the program's mesh has " + plural(static_cast<std::int64_t>(declared.axes.size()), "axis");
      return skipped;
    }
    const fs::path folder = scratch.path() / count;
    fs::create_directories(folder);
    return runOnce(options, folder);
  };
  for (const std::string& count : splitText(given.counts, ',')) {
    for (const std::string& size : splitText(count, 'x')) {
      if (size.empty() || size.size() > 6 || size.find_first_not_of("0123456789") != std::string::npos ||
          std::stoll(size) < 1) {
        std::fprintf(stderr, "gshardc: -n: `%s` is no device count\n", count.c_str());
        return kUsage;
      }
    }
  }
  Outcome base = once("1");
  if (base.skipped) {
    // Its integer splits do not fit one device. Annotations change no result: without any it is what all are compared
    // with.
    Options plain = optionsFor(given, "1", nullptr);
    const fs::path layout = scratch.path() / "none.gsd";
    std::ofstream(layout) << "\n";
    plain.layouts = {layout.string()};
    base = runOnce(plain, scratch.path() / "1");
  }
  bool equal = true, compared = false, skipped = false;
  for (const std::string& count : splitText(given.counts, ',')) {
    if (count == "1") continue;
    const Outcome outcome = once(count);
    if (outcome.skipped) {
      std::printf("%s devices: skipped, %s\n", count.c_str(), outcome.reason.c_str());
      skipped = true;
      continue;
    }
    equal = report(count, base, outcome) && equal;
    compared = true;
  }
  if (skipped && !compared) {
    std::printf("nothing was compared\n");
    return kProgramErrors;
  }
  std::printf(equal ? "equal: every result above is that of one device\n" : "results differ\n");
  return equal ? kOk : kProgramErrors;
}

}  // namespace gshard
