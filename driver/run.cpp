// gshardc run: compile into the cache, then start the binary: on threads by itself, with --mpi under mpirun.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "driver/commands.h"
#include "driver/diagnostics.h"
#include "driver/process.h"
#include "driver/stages.h"
#include "driver/version.h"
#include "ir/text.h"

namespace gshard {

namespace fs = std::filesystem;

namespace {

// FNV-1a: names cache entries, nothing depends on its strength beyond chance.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    value_ = (value_ ^ 0xff) * 1099511628211ull;
  }
  std::string text() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value_));
    return digits;
  }

 private:
  std::uint64_t value_ = 14695981039346656037ull;
};

fs::path cacheFolder() {
  if (const char* set = std::getenv("GSHARD_CACHE_DIR")) return set;
  if (const char* set = std::getenv("XDG_CACHE_HOME")) return fs::path(set) / "gshardc";
  if (const char* home = std::getenv("HOME")) return fs::path(home) / ".cache/gshardc";
  return "/tmp/gshardc-cache-" + std::to_string(getuid());
}

// All that the binary depends on: program and plan (with source lines), options of codegen, compiler and runtime.
std::string cacheKey(Session& session, const Partitioned& partitioned) {
  Hash hash;
  const Options& options = session.options();
  hash.add(versionNumber());
  hash.add(printModule(partitioned.module));
  for (std::size_t i = 0; i < session.sources().fileCount(); ++i) {
    const FileId file{static_cast<std::uint32_t>(i)};
    hash.add(session.sources().name(file));
    hash.add(session.sources().text(file));
  }
  hash.add(options.target + "|" + options.cpu + "|" + std::to_string(options.optimization) + "|" +
           std::to_string(options.threads) + (options.debug ? "|g" : "|") + (findsRaces() ? "|tsan" : ""));
  for (const std::string& path : {findInstallation().runtime + "/libgshard_runtime.a", std::string("/proc/self/exe")}) {
    struct stat info = {};
    if (stat(path.c_str(), &info) == 0) {
      hash.add(std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + "." +
               std::to_string(info.st_size));
    }
  }
  return hash.text();
}

}  // namespace

int runProgram(Session& session) {
  const Partitioned partitioned = partitionedModule(session);
  if (session.flush()) throw Stopped{kProgramErrors};
  const fs::path folder = cacheFolder();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    session.sink().emit({}, diag::FileUnwritable, folder.string(), error.message());
    throw Stopped{kInputOutput};
  }
  // The file's own name, so that ps and messages show it.
  const fs::path binary = folder / cacheKey(session, partitioned) / partitioned.module.name;
  fs::create_directories(binary.parent_path(), error);
  if (!fs::exists(binary)) buildExecutable(session, partitioned, binary.string());
  if (session.options().verbose) std::fprintf(stderr, "gshardc: %s\n", binary.c_str());

  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  if (session.options().mpi) {
    command = {"mpirun", "-n", std::to_string(partitioned.module.mesh.devices())};
    environment = mpiEnvironment();
  }
  command.push_back(binary.string());
  if (session.options().arguments.empty()) {
    // Without words the main job: train where the program says so, else its first entry.
    std::string first = "train";
    bool trains = false;
    for (const Function& function : partitioned.module.functions)
      trains = trains || function.kind == FunctionKind::Train;
    for (const Function& function : partitioned.module.functions) {
      if (!trains && function.kind == FunctionKind::Entry && function.stage != Stage::Finish) {
        first = function.name.substr(0, function.name.find(".accumulate"));
        break;
      }
    }
    command.push_back(first);
  }
  command.insert(command.end(), session.options().arguments.begin(), session.options().arguments.end());
  std::string reason;
  const int code = runProcess(command, environment, false, session.options().mpi, reason);
  if (code < 0) {
    session.sink().emit({}, diag::FileUnreadable, command[0], reason);
    throw Stopped{kInputOutput};
  }
  return code;
}

}  // namespace gshard
