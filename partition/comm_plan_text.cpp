// The plan as JSON (builtins.md, "The plan as JSON") and as text. The stages of a function that is cut into blocks of
// rows are joined again: users know the function by its name.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "partition/comm_plan.h"
#include "partition/reshard.h"
#include "support/text.h"

namespace gshard {

namespace {

using Json = nlohmann::ordered_json;

struct Named {
  std::string name, kind;
  std::vector<const PlanFunction*> stages;
};

std::string kindName(const Function& function) {
  switch (function.kind) {
    case FunctionKind::Init:
      return "init";
    case FunctionKind::Train:
      return "train";
    case FunctionKind::Eval:
      return "eval";
    case FunctionKind::Entry:
      return "entry";
  }
  return "";
}

std::string plainName(const Function& function) {
  for (const std::string_view suffix : {".accumulate", ".finish"}) {
    if (function.stage != Stage::Whole && function.name.ends_with(suffix)) {
      return function.name.substr(0, function.name.size() - suffix.size());
    }
  }
  return function.name;
}

std::vector<Named> byName(const Module& module, const CommPlan& plan) {
  std::vector<Named> result;
  for (const PlanFunction& planned : plan.functions) {
    const Function& function = module.functions[static_cast<std::size_t>(planned.function)];
    const std::string name = plainName(function);
    if (result.empty() || result.back().name != name) result.push_back({name, kindName(function), {}});
    result.back().stages.push_back(&planned);
  }
  // What is trained comes first: it is what people ask about.
  std::stable_sort(result.begin(), result.end(),
                   [](const Named& a, const Named& b) { return (a.kind == "train") > (b.kind == "train"); });
  return result;
}

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

std::int64_t callsOf(const Module& module, const PlanFunction& planned) {
  return std::max<std::int64_t>(1, module.functions[static_cast<std::size_t>(planned.function)].blocks);
}

double rounded(double value) {
  return std::floor(value * 10 + 0.5) / 10;
}

}  // namespace

std::string planJson(const Module& module, const CommPlan& plan, const SourceManager& sources) {
  Json root;
  root["format"] = 1;
  root["devices"] = module.mesh.devices();
  root["mesh"] = Json::array();
  for (const MeshAxis& axis : module.mesh.axes) root["mesh"].push_back({axis.name, axis.size});
  root["functions"] = Json::array();
  for (const Named& named : byName(module, plan)) {
    Json function;
    function["name"] = named.name;
    function["kind"] = named.kind;
    std::int64_t max = 0, total = 0;
    Json collectives = Json::array();
    for (const PlanFunction* stage : named.stages) {
      max += stage->bytesMax * callsOf(module, *stage);
      total += stage->bytesTotal * callsOf(module, *stage);
      for (const PlanEntry& entry : stage->collectives) {
        Json item;
        item["kind"] = entry.kind;
        if (!entry.reduction.empty()) item["reduction"] = entry.reduction;
        item["axes"] = entry.axes;
        item["dtype"] = dtypeName(entry.dtype);
        item["shape"] = entry.shape;
        item["count"] = entry.count;
        item["bytes"] = {{"max", entry.bytesMax}, {"total", entry.bytesTotal}};
        if (!entry.perDevice.empty()) item["per_device"] = entry.perDevice;
        item["steps"] = entry.steps;
        item["us"] = rounded(entry.microseconds);
        item["value"] = joined(entry.values);
        item["source"] = entry.range.known() ? sources.describe(entry.range) : "";
        item["reason"] = entry.reason;
        item["phase"] = phaseName(entry.phase);
        collectives.push_back(std::move(item));
      }
    }
    function["bytes"] = {{"max", max}, {"total", total}};
    function["collectives"] = std::move(collectives);
    root["functions"].push_back(std::move(function));
  }
  return root.dump(2) + "\n";
}

std::string receivedText(const Module& module, std::int64_t bytesMax) {
  const std::string bytes = formatBytes(bytesMax);
  return module.mesh.devices() > kPerDeviceLimit ? "at most " + bytes + " received by any device"
                                                 : bytes + " received by the busiest device";
}

std::string planText(const Module& module, const CommPlan& plan, const SourceManager& sources) {
  std::string text = "mesh " + printMesh(module.mesh) + ", " + std::to_string(module.mesh.devices()) + " devices\n";
  for (const Named& named : byName(module, plan)) {
    std::int64_t count = 0, max = 0;
    double microseconds = 0;
    std::string lines;
    for (const PlanFunction* stage : named.stages) {
      max += stage->bytesMax * callsOf(module, *stage);
      for (const PlanEntry& entry : stage->collectives) {
        std::string head = "  [" + std::to_string(count++) + "] " + entry.kind;
        if (!entry.reduction.empty()) head += "(" + entry.reduction + ")";
        head += " over " + joined(entry.axes) + " of " + std::string(dtypeName(entry.dtype)) + printShape(entry.shape);
        if (entry.count > 1) head += ", " + std::to_string(entry.count) + " times";
        lines += head + "   " + formatBytes(entry.bytesMax) + "   " + std::to_string(entry.steps) +
                 (entry.steps == 1 ? " step" : " steps") + "   " + formatNumber(rounded(entry.microseconds)) + " us\n";
        lines += "      " + (entry.range.known() ? sources.describe(entry.range) : std::string("no source")) + ", " +
                 std::string(phaseName(entry.phase)) + ": " + joined(entry.values) + "\n";
        lines += "      because " + entry.reason + "\n";
        microseconds += entry.microseconds * static_cast<double>(entry.count);
      }
    }
    text += named.kind + " " + named.name + ": " +
            (count == 0 ? "no collective"
                        : std::to_string(count) + (count == 1 ? " collective, " : " collectives, ") +
                              receivedText(module, max) + ", " + formatNumber(rounded(microseconds)) + " us") +
            "\n" + lines;
  }
  return text;
}

}  // namespace gshard
