// Compiling a test program in process.
#include "compile_case.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/parse.h"
#include "ir/passes.h"
#include "ir/text.h"
#include "partition/passes.h"
#include "sema/elaborate.h"
#include "support/render.h"
#include "support/text.h"

namespace gshard::testing_errors {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  ElaborateOptions elaborate;
  PassOptions passes;
};

Arguments readArguments(const std::string& text, const fs::path& folder) {
  Arguments result;
  ElaborateOptions& options = result.elaborate;
  options.stdlibPath = GSHARD_SOURCE_DIR "/stdlib";
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    if (word == "--sharding=strict") {
      result.passes.strictSharding = true;
      continue;
    }
    std::string value;
    words >> value;
    if (word == "-D") {
      const std::size_t equals = value.find('=');
      options.defines.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    } else if (word == "--mesh") {
      options.mesh = value;
    } else if (word == "--devices") {
      options.devices = std::stoll(value);
    } else if (word == "--rows") {
      options.rows = std::stoll(value);
    } else if (word == "--layout") {
      options.layouts.push_back((folder / value).string());
    } else {
      ADD_FAILURE() << "unknown argument " << word;
    }
  }
  return result;
}

// Global passes, then partitioning: where messages about rows and splits arise.
void runPipelines(Module& module, const PassOptions& options, DiagSink& sink) {
  PassContext context{options, sink};
  for (const std::span<const Pass> passes : {globalPipeline(), partitionPipeline()}) {
    const PassRun run = runPasses(module, passes, context, {});
    ASSERT_FALSE(run.failure) << run.failure->pass << ": " << run.failure->fault;
    if (run.stopped) return;
  }
}

}  // namespace

std::string readFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::map<std::string, std::string> filesOf(const std::string& name, const std::string& text) {
  std::map<std::string, std::string> files;
  std::string current = name;
  for (const std::string& line : splitText(text, '\n')) {
    if (line.starts_with("// --- ")) {
      current = line.substr(7);
      continue;
    }
    files[current] += line + "\n";
  }
  for (auto& [file, content] : files) {
    while (content.size() > 1 && content.ends_with("\n\n")) content.pop_back();
  }
  return files;
}

std::map<std::string, std::string> fixedFiles(std::map<std::string, std::string> files,
                                              const std::vector<FileEdit>& edits) {
  std::vector<FileEdit> sorted = edits;
  std::sort(sorted.begin(), sorted.end(), [](const FileEdit& a, const FileEdit& b) { return a.begin > b.begin; });
  for (const FileEdit& edit : sorted) files.at(edit.file).replace(edit.begin, edit.end - edit.begin, edit.text);
  return files;
}

std::vector<Message> compileCase(const std::string& name, const std::map<std::string, std::string>& files,
                                 const std::string& arguments) {
  const fs::path folder = fs::temp_directory_path() /
                          ("gshard_errors_" + fs::path(name).stem().string() + "_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  for (const auto& [file, text] : files) {
    fs::create_directories((folder / file).parent_path());
    std::ofstream(folder / file, std::ios::binary) << text;
  }
  const Arguments options = readArguments(arguments, folder);
  SourceManager sources;
  CollectingSink sink;
  std::string why;
  const std::optional<FileId> main = sources.addFileFromDisk((folder / name).string(), why);
  if (!main) {
    ADD_FAILURE() << why;
    return {};
  }
  std::optional<Module> module;
  if (name.ends_with(".ir")) {
    module = parseModule(*main, sources, sink);
  } else {
    const std::unique_ptr<ast::File> parsed = parseFile(*main, sources, sink);
    if (!sink.hasErrors()) module = elaborate(*parsed, sources, options.elaborate, sink);
  }
  if (module && !sink.hasErrors()) runPipelines(*module, options.passes, sink);
  const auto clean = [&](std::string text) {
    for (const std::string& prefix : {folder.string() + "/", folder.string(), std::string(GSHARD_SOURCE_DIR "/")}) {
      for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
        text.erase(at, prefix.size());
      }
    }
    return text;
  };
  std::vector<Message> messages;
  for (const Diagnostic& diagnostic : sink.diagnostics()) {
    std::string place = name + ":1";
    if (diagnostic.range.known()) {
      const FileId file = diagnostic.range.file;
      place = clean(sources.name(file)) + ":" + std::to_string(sources.lineColumn(file, diagnostic.range.begin).line);
    }
    std::vector<std::vector<FileEdit>> fixes;
    for (const FixIt& fix : diagnostic.help) {
      if (!fix.machineApplicable) continue;
      fixes.emplace_back();
      for (const Edit& edit : fix.edits)
        fixes.back().push_back({clean(sources.name(edit.range.file)), edit.range.begin, edit.range.end, edit.text});
    }
    messages.push_back(
        {place, diagnostic.code, diagnostic.severity, clean(renderText(diagnostic, sources)), std::move(fixes)});
  }
  fs::remove_all(folder);
  return messages;
}

}  // namespace gshard::testing_errors
