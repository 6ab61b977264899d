// The option table: every option once, with its group; --help is made from it.
#include "driver/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "driver/option_table.h"
#include "driver/version.h"
#include "support/parse_bytes.h"
#include "support/text.h"

namespace gshard {

static constexpr CommandRow kCommands[] = {
    {"", Command::Compile, "compile models with split annotations into one SPMD program for any number of devices"},
    {"run", Command::Run, "compile into the cache and run"},
    {"check", Command::Check, "report what is wrong with a program, and compile nothing"},
    {"explain", Command::Explain, "say per line how a program is split and what it communicates, or what a code means"},
    {"verify", Command::Verify, "compare the results on several device counts with one device"},
    {"fmt", Command::Format, "lay out files in the one style"},
};

std::span<const CommandRow> commandRows() {
  return kCommands;
}

const CommandRow& commandOf(const std::string& word) {
  for (const CommandRow& row : kCommands) {
    if (row.word == word) return row;
  }
  return kCommands[0];
}

namespace {

constexpr const char* kExamples =
    "examples:\n"
    "  gshardc model.gsd -o model && ./model train --steps 500\n"
    "  gshardc run examples/digits_mlp.gsd -n 4 -- train --steps 100\n"
    "  gshardc explain examples/fashion_mlp.gsd --plan\n"
    "commands: run, check, explain, verify, fmt; each has --help\n"
    "exit codes: 0 ok, 1 errors in the program, 2 usage, 3 I/O, 70 internal error\n";

void addDefine(Options& options, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw CLI::ValidationError("-D", "`" + text + "` is not NAME=VALUE");
  options.defines.emplace_back(text.substr(0, equals), text.substr(equals + 1));
}

void addEmit(Options& options, const std::string& text) {
  static const std::vector<std::string> kinds = {"ast",     "ir",  "sharded-ir", "spmd-ir", "comm-plan",
                                                 "llvm-ir", "asm", "obj",        "exe"};
  for (const std::string& item : splitText(text, ',')) {
    const std::size_t equals = item.find('=');
    const std::string kind = item.substr(0, equals);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      const auto near = suggest(kind, kinds);
      throw CLI::ValidationError(
          "--emit",
          "no kind `" + kind + "`" + (near ? "; did you mean `" + *near + "`?" : "; kinds: " + join(kinds, ", ")));
    }
    options.emit.emplace_back(kind, equals == std::string::npos ? "" : item.substr(equals + 1));
  }
}

void addWarning(Options& options, const std::string& text) {
  if (text == "error") {
    options.warningsAsErrors = true;
  } else if (text.starts_with("no-") && text.size() > 3) {
    options.silenced.push_back(text.substr(3));
  } else {
    throw CLI::ValidationError("-W", "`-W" + text + "`: known are -Werror and -Wno-NAME");
  }
}

void addLayout(CLI::App& app, Options& options) {
  app.add_option("--mesh", options.mesh, "axis sizes, as data=4,model=2; overrides the program's mesh")
      ->group("Layout");
  app.add_option("--devices", options.devices, "number of devices; with a declared mesh: first axis N, the others 1")
      ->check(CLI::Range(1, 1 << 20))
      ->group("Layout");
  app.add_option("--layout", options.layouts, "a file of mesh and shard that replaces the program's annotations")
      ->group("Layout");
  app.add_option("--platform", options.platform,
                 "whose times reports show: laptop, tpu-v3, h200-nvlink (default laptop)")
      ->group("Layout");
  app.add_option_function<std::string>(
         "--sharding",
         [&](const std::string& mode) {
           if (mode != "infer" && mode != "strict")
             throw CLI::ValidationError("--sharding", "`" + mode + "` is neither infer nor strict");
           options.strictSharding = mode == "strict";
         },
         "infer or strict: strict makes what annotations do not imply an error (default infer)")
      ->group("Layout");
  app.add_option_function<std::string>(
         "--mem-limit",
         [&](const std::string& text) {
           const std::optional<std::int64_t> bytes = parseBytes(text);
           if (!bytes || *bytes < 1)
             throw CLI::ValidationError("--mem-limit", "`" + text + "` is no size; write 512MiB, 1.5GiB or bytes");
           options.memoryLimit = *bytes;
         },
         "memory of one device, as 512MiB: more is an error that names the line and what is largest there")
      ->group("Layout");
  app.add_option("--rows", options.rows,
                 "rows in a block of entries with a generic row dim (default: the batch of train)")
      ->group("Layout");
  app.add_option_function<std::vector<std::string>>(
         "-D",
         [&](const std::vector<std::string>& all) {
           for (const std::string& text : all) addDefine(options, text);
         },
         "NAME=VALUE: replaces a const of the program")
      ->allow_extra_args(false)
      ->group("Layout");
  app.add_option("-I", options.importPaths, "folder that imports are searched in")
      ->allow_extra_args(false)
      ->group("Layout");
}

void addDiagnostics(CLI::App& app, Options& options) {
  app.add_option("--error-limit", options.errorLimit, "errors shown at most (default 20)")->group("Diagnostics");
  app.add_option_function<std::string>(
         "--color",
         [&](const std::string& when) {
           if (when == "auto")
             options.color = ColorMode::Auto;
           else if (when == "always")
             options.color = ColorMode::Always;
           else if (when == "never")
             options.color = ColorMode::Never;
           else
             throw CLI::ValidationError("--color", "`" + when + "` is none of auto, always, never");
         },
         "auto, always, never (default auto)")
      ->group("Diagnostics");
  app.add_option_function<std::string>(
         "--diagnostics",
         [&](const std::string& form) {
           if (form == "text")
             options.diagnostics = DiagnosticsFormat::Text;
           else if (form == "short")
             options.diagnostics = DiagnosticsFormat::Short;
           else if (form == "json")
             options.diagnostics = DiagnosticsFormat::Json;
           else if (form == "sarif")
             options.diagnostics = DiagnosticsFormat::Sarif;
           else
             throw CLI::ValidationError("--diagnostics", "`" + form + "` is none of text, short, json, sarif");
         },
         "text, short, json (one object a line), sarif (one log) on stderr (default text)")
      ->group("Diagnostics");
  app.add_option_function<std::vector<std::string>>(
         "-W",
         [&](const std::vector<std::string>& all) {
           for (const std::string& text : all) addWarning(options, text);
         },
         "-Werror: warnings are errors; -Wno-NAME: silence a group or code")
      ->allow_extra_args(false)
      ->group("Diagnostics");
  app.add_option("-R", options.remarks, "-Rsharding, -Rcomm …: show remarks of a group")
      ->allow_extra_args(false)
      ->group("Diagnostics");
  app.add_flag("-w", options.noWarnings, "no warnings")->group("Diagnostics");
  app.add_flag("-v,--verbose", options.verbose, "say what was done")->group("Diagnostics");
  app.add_flag("-q,--quiet", options.quiet, "say nothing but errors")->group("Diagnostics");
}

void addPasses(CLI::App& app, Options& options) {
  app.add_option("--dump-after", options.dumpAfter, "print the IR after a pass (or all)")->group("Optimisation");
  app.add_flag("--print-passes", options.printPasses, "print the passes in order")->group("Optimisation");
  app.add_flag("--time-passes", options.timePasses, "print the time of every stage and pass")->group("Optimisation");
}

void addCodegen(CLI::App& app, Options& options) {
  app.add_option("-O", options.optimization, "0 to 3 (default 3)")->check(CLI::Range(0, 3))->group("Optimisation");
  app.add_flag("-g", options.debug, "line tables: debuggers show the .gsd source; kernels are kept per line")
      ->group("Optimisation");
  app.add_option("--threads", options.threads, "threads per device (default 1)")
      ->check(CLI::Range(1, 1024))
      ->group("Optimisation");
  app.add_option("--mcpu", options.cpu, "CPU to generate for (default: this machine's)")->group("Optimisation");
  app.add_option("--target", options.target, "target triple, for obj and asm (default: this machine's)")
      ->group("Optimisation");
}

}  // namespace

static bool isCommand(const std::string& word) {
  return !word.empty() && commandOf(word).word == word;
}

static std::vector<std::string> commandWords() {
  std::vector<std::string> words;
  for (const CommandRow& row : kCommands) {
    if (!row.word.empty()) words.emplace_back(row.word);
  }
  return words;
}

// The options of one command; the one table that --help and the man pages are made from.
void fillApp(CLI::App& app, const std::string& word, Options& options) {
  const CommandRow& row = commandOf(word);
  options.command = row.command;
  app.name(row.word.empty() ? "gshardc" : "gshardc " + word);
  app.description("gshardc: " + std::string(row.does) + ".");
  app.set_help_flag("-h,--help", "this text");
  const auto input = [&](const char* what) { app.add_option("file", options.input, what)->required(); };
  switch (row.command) {
    case Command::Compile:
      input("the .gsd file (or .ir)");
      addLayout(app, options);
      addDiagnostics(app, options);
      addPasses(app, options);
      addCodegen(app, options);
      app.add_option("-o", options.output, "the file to write; - is stdout, for text kinds")->group("Output");
      app.add_option_function<std::vector<std::string>>(
             "--emit",
             [&](const std::vector<std::string>& all) {
               for (const std::string& text : all) addEmit(options, text);
             },
             "KIND[=PATH],…: ast ir sharded-ir spmd-ir comm-plan llvm-ir asm obj exe (default exe)")
          ->group("Output");
      app.add_option("--depfile", options.depfile, "also write a Makefile rule that names every file read (also -MF)")
          ->group("Output");
      app.add_option("--depfile-target", options.depfileTarget, "target of that rule (also -MT; default: the output)")
          ->group("Output");
      app.set_version_flag("--version", versionText());
      app.footer(kExamples);
      return;
    case Command::Run:
      input("the .gsd file (or .ir)");
      addLayout(app, options);
      addDiagnostics(app, options);
      addPasses(app, options);
      addCodegen(app, options);
      app.add_option("-n", options.devices, "devices; as --devices")->check(CLI::Range(1, 1 << 20))->group("Layout");
      app.add_flag("--mpi", options.mpi, "one MPI rank per device, started with what containers need")->group("Output");
      app.footer("arguments after -- go to the program: gshardc run model.gsd -n 4 -- train --steps 100\n");
      return;
    case Command::Check:
      input("the .gsd file (or .ir)");
      addLayout(app, options);
      addDiagnostics(app, options);
      addPasses(app, options);
      app.add_flag("--fix", options.applyFixes, "apply the fixes marked machine-applicable to the files")
          ->group("Output");
      app.footer(kExamples);
      return;
    case Command::Explain:
      input("the .gsd file (or .ir), or a code as E0312");
      addLayout(app, options);
      addDiagnostics(app, options);
      addPasses(app, options);
      app.add_flag("--plan", options.planOnly, "the communication plan alone")->group("Output");
      app.add_option("--line", options.line, "one source line alone")->group("Output");
      app.footer(kExamples);
      return;
    case Command::Verify:
      input("the .gsd file (or .ir)");
      addLayout(app, options);
      addDiagnostics(app, options);
      addPasses(app, options);
      addCodegen(app, options);
      app.add_option("-n", options.counts, "device counts, as 1,2,3,4,2x2 (default 1,2,3,4,8)")->group("Layout");
      app.add_flag("--mpi", options.mpi, "run under mpirun, one rank per device")->group("Output");
      app.add_option("--steps", options.steps, "training steps that are compared (default 3)")->group("Output");
      app.footer(kExamples);
      return;
    case Command::Format:
      app.add_option("files", options.inputs, "the .gsd files, rewritten in place; - reads stdin and writes stdout")
          ->required();
      addDiagnostics(app, options);
      app.add_flag("--check", options.formatCheck, "write nothing; name the files that would change, and exit with 1")
          ->group("Output");
      app.footer("one style, no options; a file with syntax errors is left alone\n");
      return;
  }
}

std::optional<int> parseOptions(int argc, char** argv, Options& options) {
  const std::string word = argc > 1 ? argv[1] : "";
  CLI::App app;
  if (word == "--version") {
    std::fputs(versionText().c_str(), stdout);
    return 0;
  }
  if (word == "--man") {
    std::fputs(manPage(argc > 2 ? argv[2] : "").c_str(), stdout);
    return 0;
  }
  if (word == "help") {  // of all, or of a command
    fillApp(app, argc > 2 ? argv[2] : "", options);
    std::fputs(app.help().c_str(), stdout);
    return 0;
  }
  fillApp(app, word, options);
  if (word.empty()) {
    std::fputs(app.help().c_str(), stdout);
    return 2;
  }
  std::vector<std::string> words;  // CLI11 takes them last first
  const int first = isCommand(word) ? 2 : 1;
  for (int i = first; i < argc; ++i) {
    if (options.command == Command::Run && std::string(argv[i]) == "--") {
      for (int rest = i + 1; rest < argc; ++rest) options.arguments.emplace_back(argv[rest]);
      break;
    }
    const std::string given = argv[i];  // C compilers' names, which CLI11 would split
    words.emplace_back(given == "-MF" ? "--depfile" : given == "-MT" ? "--depfile-target" : given);
  }
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion&) {
    std::fputs(versionText().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    bool told = false;
    for (int i = first; i < argc && argv[i] != std::string("--"); ++i) {
      const std::string given = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
      if (!given.starts_with("--") || std::find(names.begin(), names.end(), given) != names.end()) continue;
      const auto near = suggest(given, names);
      std::fprintf(stderr, "gshardc: no option `%s`%s\n", given.c_str(),
                   near ? (", did you mean `" + *near + "`?").c_str() : "; --help lists them");
      told = true;
    }
    if (!told) std::fprintf(stderr, "gshardc: %s\n", error.what());
    if (!isCommand(word) && word.find('.') == std::string::npos && word[0] != '-') {
      if (const auto near = suggest(word, commandWords())) {
        std::fprintf(stderr, "gshardc: did you mean the command `%s`?\n", near->c_str());
      } else {
        std::fprintf(stderr, "gshardc: no command `%s`: a file alone is compiled; commands: %s\n", word.c_str(),
                     join(commandWords(), ", ").c_str());
      }
    }
    return 2;
  }
  return std::nullopt;
}

}  // namespace gshard
