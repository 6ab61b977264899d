// The program as text; see program_text.h.
#include "runtime/program_text.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/element_type.h"
#include "runtime/options.h"

namespace gshard::runtime {

std::vector<std::int64_t> shapeOf(const gshard_rt_tensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.rank};
}

std::int64_t elementCount(const gshard_rt_tensor& tensor) {
  std::int64_t count = 1;
  for (std::int64_t d = 0; d < tensor.rank; ++d) count *= tensor.shape[d];
  return count;
}

static std::string typed(const gshard_rt_tensor& tensor, const std::vector<std::string>& dims) {
  std::string text(elementName(static_cast<ElementType>(tensor.dtype)));
  if (dims.empty()) return text;
  text += "[";
  for (std::size_t d = 0; d < dims.size(); ++d) text += (d == 0 ? "" : ", ") + dims[d];
  return text + "]";
}

std::string tensorText(const gshard_rt_tensor& tensor) {
  std::vector<std::string> dims;
  for (std::int64_t d = 0; d < tensor.rank; ++d) dims.push_back(std::to_string(tensor.shape[d]));
  return typed(tensor, dims);
}

std::string axesText(const gshard_rt_program& program, const gshard_rt_axis_ref* axes, std::int64_t count) {
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    const gshard_rt_axis& axis = program.axes[axes[i].axis];
    text += (i == 0 ? "" : ",") + std::string(axis.name);
    if (axes[i].size != axis.size) text += ":(" + std::to_string(axes[i].pre) + ")" + std::to_string(axes[i].size);
  }
  return text;
}

std::string shardedText(const gshard_rt_program& program, const gshard_rt_tensor& tensor) {
  std::vector<std::string> dims;
  for (std::int64_t d = 0; d < tensor.rank; ++d) {
    const gshard_rt_extent& extent = program.extents[tensor.extents[d]];
    const std::string axes = axesText(program, extent.axes, extent.axis_count);
    dims.push_back(std::to_string(tensor.shape[d]) + (axes.empty() ? "" : "@" + axes));
  }
  return typed(tensor, dims);
}

std::string tileText(const gshard_rt_program& program, const gshard_rt_tensor& tensor) {
  std::vector<std::string> dims;
  for (std::int64_t d = 0; d < tensor.rank; ++d)
    dims.push_back(std::to_string(program.extents[tensor.extents[d]].part));
  return typed(tensor, dims);
}

std::string meshText(const gshard_rt_program& program) {
  std::string text;
  for (std::int64_t a = 0; a < program.axis_count; ++a) {
    text += (a == 0 ? "" : " x ") + std::string(program.axes[a].name) + " " + std::to_string(program.axes[a].size);
  }
  return text;
}

std::string bytesText(std::int64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.1f %s", value, units[unit]);
  return text;
}

std::string countText(std::int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

std::string baseName(const gshard_rt_function& function) {
  std::string name = function.name;
  const auto drop = [&](const std::string& suffix) {
    if (name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
      name.resize(name.size() - suffix.size());
    }
  };
  drop(".accumulate");
  drop(".finish");
  drop(".eval");
  drop(".train");
  return name;
}

std::vector<const gshard_rt_function*> functionsOf(const gshard_rt_program& program, std::int64_t kind) {
  std::vector<const gshard_rt_function*> functions;
  for (std::int64_t i = 0; i < program.function_count; ++i) {
    const gshard_rt_function& function = program.functions[i];
    if (function.kind == kind && function.stage != GSHARD_RT_FINISH) functions.push_back(&function);
  }
  return functions;
}

const gshard_rt_function* entryNamed(const gshard_rt_program& program, const std::string& name) {
  for (const gshard_rt_function* function : functionsOf(program, GSHARD_RT_ENTRY)) {
    if (baseName(*function) == name || function->name == name) return function;
  }
  // A trained entry by its name: as `eval` computes it.
  for (const gshard_rt_function* function : functionsOf(program, GSHARD_RT_EVAL)) {
    if (baseName(*function) == name && name != "train" && name != "eval") return function;
  }
  return nullptr;
}

std::vector<std::string> commandNames(const gshard_rt_program& program) {
  std::vector<std::string> names;
  if (!functionsOf(program, GSHARD_RT_TRAIN).empty()) names.push_back("train");
  if (!functionsOf(program, GSHARD_RT_EVAL).empty()) names.push_back("eval");
  names.push_back("info");
  for (const std::int64_t kind : {GSHARD_RT_EVAL, GSHARD_RT_ENTRY}) {
    for (const gshard_rt_function* function : functionsOf(program, kind)) names.push_back(baseName(*function));
  }
  return names;
}

namespace {

struct Totals {
  std::int64_t parameters = 0, perDevice = 0, collectives = 0, bytes = 0, peak = 0;
};

// Of the training step; of the first entry where nothing is trained.
Totals totalsOf(const gshard_rt_program& program) {
  Totals totals;
  for (std::int64_t i = 0; i < program.parameter_count; ++i) {
    const gshard_rt_tensor& tensor = program.parameters[i].tensor;
    totals.parameters += elementCount(tensor);
    totals.perDevice += tensor.bytes / elementBytes(static_cast<ElementType>(tensor.dtype));
  }
  const bool trains = !functionsOf(program, GSHARD_RT_TRAIN).empty();
  const gshard_rt_function* first = nullptr;
  for (std::int64_t i = 0; i < program.function_count; ++i) {
    const gshard_rt_function& function = program.functions[i];
    totals.peak = std::max(totals.peak, function.peak_bytes);
    if (function.kind != (trains ? GSHARD_RT_TRAIN : GSHARD_RT_ENTRY)) continue;
    if (!trains && first != nullptr) continue;
    first = &function;
    const std::int64_t times = std::max<std::int64_t>(function.blocks, 1);
    totals.bytes += times * function.comm_bytes_max;
    for (std::int64_t p = 0; p < program.plan_count; ++p) {
      if (program.plan[p].function == i) totals.collectives += times;
    }
  }
  return totals;
}

std::string plural(std::int64_t count, const char* word) {
  return countText(count) + " " + word + (count == 1 ? "" : "s");
}

}  // namespace

std::string firstLine(const gshard_rt_program& program, const char* transport, bool threads) {
  const Totals totals = totalsOf(program);
  std::string text = plural(program.devices, "device");
  if (program.axis_count > 0) text += " = " + meshText(program);
  text += std::string(" (") + transport + ", " + plural(program.devices, threads ? "thread" : "rank") + ") · " +
          plural(totals.parameters, "parameter") + ", " + countText(totals.perDevice) + " per device · " +
          plural(totals.collectives, "collective") + ", " + bytesText(totals.bytes) + " per device per step · peak " +
          bytesText(totals.peak) + " per device";
  return text;
}

static std::string docText(const char* doc) {
  return doc != nullptr && doc[0] != '\0' ? std::string("  ") + doc : "";
}

std::string helpText(const gshard_rt_program& program) {
  std::string text = std::string("usage: ") + program.name + " ";
  const std::vector<std::string> commands = commandNames(program);
  for (std::size_t i = 0; i < commands.size(); ++i) text += (i == 0 ? "" : "|") + commands[i];
  text += " [OPTIONS]\n";
  for (std::int64_t i = 0; i < program.function_count; ++i) {
    const gshard_rt_function& function = program.functions[i];
    const bool named = function.kind == GSHARD_RT_ENTRY || function.kind == GSHARD_RT_TRAIN;
    if (!named || function.stage == GSHARD_RT_FINISH || function.input_count == 0) continue;
    text += "\nInputs of " + baseName(function) + ":\n";
    for (std::int64_t j = 0; j < function.input_count; ++j) {
      const gshard_rt_input& input = function.inputs[j];
      text += std::string("  ") + input.name + ": " + shardedText(program, input.tensor) + ", tile " +
              tileText(program, input.tensor) + (input.rows != 0 ? ", by rows" : "") + "\n";
    }
  }
  if (program.parameter_count > 0) text += "\nParameters:\n";
  for (std::int64_t i = 0; i < program.parameter_count; ++i) {
    const gshard_rt_parameter& parameter = program.parameters[i];
    text += std::string("  ") + parameter.name + ": " + shardedText(program, parameter.tensor) +
            (parameter.trained != 0 ? "" : " (not trained)") + docText(parameter.doc) + "\n";
  }
  if (program.constant_count > 0 || program.setting_count > 0) text += "\nConstants:\n";
  for (std::int64_t i = 0; i < program.setting_count; ++i) {
    const gshard_rt_setting& setting = program.settings[i];
    char value[64];
    std::snprintf(value, sizeof value, "%.9g", setting.value);
    text += std::string("  ") + setting.name + " = " + value + ", set by --set " + setting.name + "=VALUE" +
            docText(setting.doc) + "\n";
  }
  for (std::int64_t i = 0; i < program.constant_count; ++i) {
    const gshard_rt_constant& constant = program.constants[i];
    text += std::string("  ") + constant.name + ": " + constant.type + " = " + constant.value + ", needs gshardc -D" +
            docText(constant.doc) + "\n";
  }
  return text + optionHelp();
}

std::string infoText(const gshard_rt_program& program) {
  const Totals totals = totalsOf(program);
  std::string text = std::string(program.name) + ": compiled by " + program.compiler + " for " + program.cpu +
                     ", source " + program.source_hash + "\n";
  text += "devices     " + std::to_string(program.devices);
  if (program.axis_count > 0) text += " = " + meshText(program);
  text += ", " + plural(program.threads, "thread") + " each\n";
  text += "memory      peak " + bytesText(program.arena_bytes) + " per device (" + countText(program.arena_bytes) +
          " bytes), of it " + bytesText(program.persistent_bytes) + " parameters and states\n";
  text += "parameters  " + countText(totals.parameters) + ", " + countText(totals.perDevice) + " per device\n";
  for (std::int64_t i = 0; i < program.parameter_count; ++i) {
    const gshard_rt_parameter& parameter = program.parameters[i];
    text += std::string("  ") + parameter.name + ": " + shardedText(program, parameter.tensor) + "\n";
  }
  text += "functions\n";
  for (std::int64_t i = 0; i < program.function_count; ++i) {
    const gshard_rt_function& function = program.functions[i];
    text += std::string("  ") + function.name + ": " + plural(function.step_count, "step") + ", peak " +
            bytesText(function.peak_bytes) + ", receives " + bytesText(function.comm_bytes_max) + " per device, " +
            bytesText(function.comm_bytes_total) + " in all\n";
  }
  text += "collectives\n";
  for (std::int64_t i = 0; i < program.plan_count; ++i) {
    const gshard_rt_plan_entry& entry = program.plan[i];
    const std::string place =
        entry.site >= 0 && entry.site < program.site_count ? program.sites[entry.site].location : "";
    text += "  " + std::to_string(i) + "  " + program.functions[entry.function].name + "  " + entry.kind + " over " +
            entry.axes + ", " + bytesText(entry.bytes_max) + " per device  " + place + "  " + entry.reason + "\n";
  }
  return text;
}

std::string infoJson(const gshard_rt_program& program) {
  using Json = nlohmann::ordered_json;
  const Totals totals = totalsOf(program);
  Json info;
  info["format"] = 1;
  info["name"] = program.name;
  info["compiler"] = program.compiler;
  info["source"] = program.source_hash;
  info["cpu"] = program.cpu;
  info["devices"] = program.devices;
  info["threads"] = program.threads;
  Json mesh = Json::array();
  for (std::int64_t a = 0; a < program.axis_count; ++a)
    mesh.push_back({{"axis", program.axes[a].name}, {"size", program.axes[a].size}});
  info["mesh"] = mesh;
  info["parameters"] = totals.parameters;
  info["parameters_per_device"] = totals.perDevice;
  info["arena_bytes"] = program.arena_bytes;
  info["persistent_bytes"] = program.persistent_bytes;
  info["planned_peak_bytes"] = totals.peak;
  info["planned_comm_bytes"] = totals.bytes;
  Json parameters = Json::array();
  for (std::int64_t i = 0; i < program.parameter_count; ++i) {
    const gshard_rt_parameter& parameter = program.parameters[i];
    parameters.push_back({{"name", parameter.name},
                          {"type", tensorText(parameter.tensor)},
                          {"sharding", shardedText(program, parameter.tensor)},
                          {"tile", tileText(program, parameter.tensor)}});
  }
  info["tensors"] = parameters;
  Json functions = Json::array();
  for (std::int64_t i = 0; i < program.function_count; ++i) {
    const gshard_rt_function& function = program.functions[i];
    Json inputs = Json::array();
    for (std::int64_t j = 0; j < function.input_count; ++j) {
      inputs.push_back({{"name", function.inputs[j].name},
                        {"type", tensorText(function.inputs[j].tensor)},
                        {"sharding", shardedText(program, function.inputs[j].tensor)}});
    }
    functions.push_back({{"name", function.name},
                         {"steps", function.step_count},
                         {"rows", function.rows},
                         {"peak_bytes", function.peak_bytes},
                         {"bytes_max", function.comm_bytes_max},
                         {"bytes_total", function.comm_bytes_total},
                         {"inputs", inputs}});
  }
  info["functions"] = functions;
  Json collectives = Json::array();
  for (std::int64_t i = 0; i < program.plan_count; ++i) {
    const gshard_rt_plan_entry& entry = program.plan[i];
    collectives.push_back(
        {{"kind", entry.kind},
         {"axes", entry.axes},
         {"function", program.functions[entry.function].name},
         {"bytes_max", entry.bytes_max},
         {"bytes_total", entry.bytes_total},
         {"reason", entry.reason},
         {"location", entry.site >= 0 && entry.site < program.site_count ? program.sites[entry.site].location : ""}});
  }
  info["collectives"] = collectives;
  return info.dump();
}

}  // namespace gshard::runtime
