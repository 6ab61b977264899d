// gshardc explain: per source line the values with their shardings, why they are split so, and the collectives with
// reason, bytes and time. Everything is read from the SPMD module and its plan; nothing is estimated twice.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "driver/commands.h"
#include "driver/diagnostics.h"
#include "driver/error_index.h"
#include "driver/stages.h"
#include "partition/alternatives.h"
#include "partition/comm_plan.h"
#include "support/text.h"

namespace gshard {

namespace {

std::string tileText(const Type& type, const Sharding& sharding) {
  std::string text;
  for (const std::int64_t size : localShape(type, sharding)) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

// Where the splits of a value come from, in the order of its dims.
std::string originText(const Session& session, const Value& value) {
  std::vector<std::string> parts;
  for (const SplitOrigin& origin : value.origins) {
    std::string text = origin.how;
    if (origin.range.known()) text += " " + session.sources().describePosition(origin.range);
    if (std::find(parts.begin(), parts.end(), text) == parts.end()) parts.push_back(text);
  }
  return join(parts, "; ");
}

struct Line {
  std::vector<std::string> values;
  std::vector<std::string> collectives;
  std::vector<std::string> seen;
};

class Explanation {
 public:
  Explanation(const Session& session, const Partitioned& partitioned) : session_(session), partitioned_(partitioned) {}

  void addFunction(std::size_t index, const Platform& platform);
  void print(std::int64_t onlyLine) const;

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;  // file, line

  std::optional<Key> keyOf(SourceRange range) const {
    if (!range.known()) return std::nullopt;
    return Key{range.file.value, session_.sources().lineColumn(range.file, range.begin).line};
  }
  void addValue(const Value& value);
  void addCollective(const PlanEntry& entry, std::size_t number, const Platform& platform);

  const Session& session_;
  const Partitioned& partitioned_;
  std::map<Key, Line> lines_;
  std::vector<std::string> elsewhere_;  // collectives without a source line
};

void Explanation::addValue(const Value& value) {
  const auto key = keyOf(value.range);
  if (!key || value.name.empty() || value.name == "constant" || !value.sharding) return;
  Line& line = lines_[*key];
  const std::string shown = printShardedType(partitioned_.module.mesh, value.type, *value.sharding);
  const std::string id = value.name + " " + shown;
  if (std::find(line.seen.begin(), line.seen.end(), id) != line.seen.end()) return;
  line.seen.push_back(id);
  std::string text = value.name;
  text.resize(std::max<std::size_t>(text.size() + 1, 12), ' ');
  text += shown;
  text.resize(std::max<std::size_t>(text.size() + 2, 44), ' ');
  text += "tile " + tileText(value.type, *value.sharding);
  const std::string origin = originText(session_, value);
  if (!origin.empty()) {
    text.resize(std::max<std::size_t>(text.size() + 2, 62), ' ');
    text += origin;
  }
  line.values.push_back(std::move(text));
}

namespace {

std::string tenths(double number) {
  return formatNumber(std::floor(number * 10 + 0.5) / 10);
}

}  // namespace

void Explanation::addCollective(const PlanEntry& entry, std::size_t number, const Platform& platform) {
  std::string text = "[" + std::to_string(number) + "] " + entry.kind;
  if (!entry.reduction.empty()) text += "(" + entry.reduction + ")";
  text += " over " + join(entry.axes, ", ") + "   " + formatBytes(entry.bytesMax) + "   " +
          plural(entry.steps, "step") + "   " + tenths(entry.microseconds) + " us   " +
          std::string(phaseName(entry.phase)) + ": " + join(entry.values, ", ");
  const std::string because = "    because    " + entry.reason;
  const auto key = keyOf(entry.range);
  std::vector<std::string>& list = key ? lines_[*key].collectives : elsewhere_;
  list.push_back(std::move(text));
  list.push_back(because);
  const Function& function = partitioned_.module.functions[static_cast<std::size_t>(entry.function)];
  for (const RejectedPlan& rejected : rejectedAt(partitioned_.module, function, static_cast<std::size_t>(entry.op))) {
    list.push_back("    rejected   " + rejected.what + "   " + formatBytes(rejected.bytesMax) + "   " +
                   plural(rejected.messages, "step") + "   " +
                   tenths(collectiveMicroseconds(platform, rejected.messages, rejected.bytesMax)) + " us   " +
                   rejected.reason);
  }
}

void Explanation::addFunction(std::size_t index, const Platform& platform) {
  const Function& function = partitioned_.module.functions[index];
  for (const Argument& argument : function.arguments) addValue(function.value(argument.value));
  for (const Op& op : function.ops) {
    if (op.phase != Phase::Forward) continue;
    for (const ValueId result : op.results) addValue(function.value(result));
  }
  std::size_t number = 0;
  for (const PlanEntry& entry : partitioned_.plan.functions[index].collectives) {
    addCollective(entry, number++, platform);
  }
}

void Explanation::print(std::int64_t onlyLine) const {
  const SourceManager& sources = session_.sources();
  for (const auto& [key, line] : lines_) {
    if (line.values.empty() && line.collectives.empty()) continue;
    if (onlyLine != 0 && (key.first != 0 || key.second != onlyLine)) continue;
    const FileId file{key.first};
    std::printf("\n%s:%u | %s\n", sources.name(file).c_str(), key.second,
                std::string(sources.lineText(file, key.second)).c_str());
    for (const std::string& value : line.values) std::printf("   |   %s\n", value.c_str());
    for (const std::string& collective : line.collectives) std::printf("   |   %s\n", collective.c_str());
    if (line.collectives.empty()) std::printf("   |   no collective\n");
  }
  if (onlyLine == 0 && !elsewhere_.empty()) {
    std::printf("\nmade by the compiler, without a line of their own\n");
    for (const std::string& text : elsewhere_) std::printf("   |   %s\n", text.c_str());
  }
}

}  // namespace

int runExplain(Session& session) {
  const std::string& word = session.options().input;
  if (looksLikeCode(word)) {
    const std::string text = explainCode(word);
    if (!text.empty()) {
      std::fputs(text.c_str(), stdout);
      return kOk;
    }
    auto builder = session.sink().emit({}, diag::UnknownCode, word);
    if (const auto near = suggest(word, allCodes())) builder.help("did you mean `" + *near + "`?");
    return kUsage;
  }
  const Partitioned partitioned = partitionedModule(session);
  if (session.flush()) throw Stopped{kProgramErrors};
  if (session.options().planOnly) {
    std::fputs(planText(partitioned.module, partitioned.plan, session.sources()).c_str(), stdout);
    return kOk;
  }
  const Module& module = partitioned.module;
  // The training step when there is one, else every entry.
  bool trains = false;
  for (const Function& function : module.functions) trains = trains || function.kind == FunctionKind::Train;
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    const Function& function = module.functions[f];
    if (function.kind != (trains ? FunctionKind::Train : FunctionKind::Entry)) continue;
    const PlanFunction& planned = partitioned.plan.functions[f];
    std::printf("mesh %s, %lld devices · %s %s: %s, %s\n", printMesh(module.mesh).c_str(),
                static_cast<long long>(module.mesh.devices()), trains ? "training step" : "entry",
                function.name.c_str(),
                plural(static_cast<std::int64_t>(planned.collectives.size()), "collective").c_str(),
                receivedText(module, planned.bytesMax).c_str());
    Explanation explanation(session, partitioned);
    explanation.addFunction(f, platformOf(session));
    explanation.print(session.options().line);
  }
  return kOk;
}

}  // namespace gshard
