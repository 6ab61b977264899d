// gshardc FILE: compile, or emit any stage as text.
#include <filesystem>

#include "driver/commands.h"
#include "driver/diagnostics.h"
#include "driver/stages.h"
#include "frontend/ast_printer.h"
#include "ir/text.h"
#include "partition/comm_plan.h"

namespace gshard {

namespace fs = std::filesystem;

namespace {

struct Suffix {
  std::string_view kind, suffix;
};
constexpr Suffix kSuffixes[] = {{"asm", ".s"},
                                {"ast", ".ast"},
                                {"comm-plan", ".plan.json"},
                                {"exe", ""},
                                {"ir", ".ir"},
                                {"llvm-ir", ".ll"},
                                {"obj", ".o"},
                                {"sharded-ir", ".sharded.ir"},
                                {"spmd-ir", ".spmd.ir"}};

bool isText(const std::string& kind) {
  return kind != "exe" && kind != "obj";
}

// One text kind alone without -o goes to stdout.
std::string pathOf(const Session& session, const std::pair<std::string, std::string>& item, std::size_t kinds) {
  if (!item.second.empty()) return item.second;
  const Options& options = session.options();
  if (kinds == 1 && !options.output.empty()) return options.output;
  if (kinds == 1 && isText(item.first)) return "-";
  const std::string stem = fs::path(options.output.empty() ? options.input : options.output).stem().string();
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.kind == item.first) return stem + std::string(suffix.suffix);
  }
  return stem;
}

// A rule as C compilers write with -MF: the output, and every file that was read.
std::string dependencyRule(const Session& session, const std::string& output) {
  const auto escaped = [](const std::string& name) {
    std::string text;
    for (const char c : name) {
      if (c == ' ' || c == '#' || c == '\\') text += '\\';
      if (c == '$') text += '$';
      text += c;
    }
    return text;
  };
  // Messages name the standard library's files "stdlib/nn.gsd", wherever they lie.
  const std::string stdlib = findInstallation().stdlib;
  std::string rule = escaped(output) + ":";
  for (std::size_t i = 0; i < session.sources().fileCount(); ++i) {
    std::string name = session.sources().name(FileId{static_cast<std::uint32_t>(i)});
    if (name.starts_with("stdlib/") && fs::exists(stdlib + name.substr(6))) name = stdlib + name.substr(6);
    rule += " \\\n  " + escaped(name);
  }
  return rule + "\n";
}

}  // namespace

int runCompile(Session& session) {
  std::vector<std::pair<std::string, std::string>> kinds = session.options().emit;
  if (kinds.empty()) kinds.emplace_back("exe", session.options().output);
  std::string onStdout;
  for (const auto& item : kinds) {
    if (pathOf(session, item, kinds.size()) != "-") continue;
    if (!onStdout.empty()) {
      session.sink().emit({}, diag::StandardOutputTwice, onStdout, item.first);
      throw Stopped{kUsage};
    }
    onStdout = item.first;
  }
  const auto write = [&](const std::pair<std::string, std::string>& item, const std::string& bytes) {
    if (!writeFile(pathOf(session, item, kinds.size()), bytes, session.sink())) throw Stopped{kInputOutput};
  };

  // As far as the kinds need, each stage once.
  std::optional<Module> global;
  std::optional<Partitioned> partitioned;
  std::optional<BuildOutputs> built;
  const auto spmd = [&]() -> const Partitioned& {
    if (!partitioned) partitioned = partitionedModule(session);
    return *partitioned;
  };
  for (const auto& item : kinds) {
    const std::string& kind = item.first;
    if (kind == "ast") {
      const auto file = parseInput(session);
      write(item, printAst(*file));
    } else if (kind == "ir") {
      global = globalModule(session);
      write(item, printModule(*global));
    } else if (kind == "sharded-ir") {
      write(item, spmd().shardedText);
    } else if (kind == "spmd-ir") {
      write(item, printModule(spmd().module));
    } else if (kind == "comm-plan") {
      write(item, planJson(spmd().module, spmd().plan, session.sources()));
    } else if (kind == "exe") {
      if (session.flush()) throw Stopped{kProgramErrors};
      buildExecutable(session, spmd(), pathOf(session, item, kinds.size()));
    } else {
      if (!built) built = buildOutputs(session, spmd());
      write(item, kind == "obj" ? built->object : kind == "asm" ? built->assembly : built->llvmIr);
    }
  }
  if (const Options& options = session.options(); !options.depfile.empty()) {
    const std::string target =
        options.depfileTarget.empty() ? pathOf(session, kinds.front(), kinds.size()) : options.depfileTarget;
    if (!writeFile(options.depfile, dependencyRule(session, target), session.sink())) throw Stopped{kInputOutput};
  }
  return kOk;
}

int runCheck(Session& session) {
  if (session.options().applyFixes) applyFixes(session.options());
  partitionedModule(session);
  return kOk;
}

}  // namespace gshard
