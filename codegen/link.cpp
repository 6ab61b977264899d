// Linking: the object and the runtime archive become an executable that needs only libc and what the archive itself
// names.
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>

#include "codegen/codegen.h"
#include "codegen/diagnostics.h"

extern char** environ;

namespace gshard {
namespace {

// A file that is gone when it goes out of scope, unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }
  bool renameTo(const std::string& target) {
    if (std::rename(path_.c_str(), target.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  std::string path_;
};

bool exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool onPath(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "/usr/bin:/bin";
  std::size_t begin = 0;
  while (begin <= folders.size()) {
    std::size_t end = folders.find(':', begin);
    if (end == std::string::npos) end = folders.size();
    if (access((folders.substr(begin, end - begin) + "/" + program).c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

// Exit status of the program, or -1 if it could not be started or was killed.
int runProgram(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

bool linkExecutable(const std::vector<std::string>& objects, const std::string& outPath, const LinkOptions& options,
                    DiagSink& diag) {
  if (!exists(options.runtimeArchive)) {
    diag.emit(SourceRange{}, diag::RuntimeMissing, options.runtimeArchive);
    return false;
  }
  if (!onPath(options.cxx)) {
    diag.emit(SourceRange{}, diag::LinkerMissing, options.cxx);
    return false;
  }
  const std::string stem = outPath + "." + std::to_string(getpid());
  TemporaryFile executable(stem + ".tmp");
  std::deque<TemporaryFile> files;
  for (const std::string& bytes : objects) {
    const TemporaryFile& file = files.emplace_back(stem + "." + std::to_string(files.size()) + ".o");
    std::ofstream stream(file.path(), std::ios::binary);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    if (stream) continue;
    diag.emit(SourceRange{}, diag::FileUnwritten, file.path(), std::string(std::strerror(errno)));
    return false;
  }
  std::vector<std::string> command = {options.cxx, "-static-libstdc++", "-static-libgcc"};
  if (onPath("mold")) command.push_back("-fuse-ld=mold");
  // The runtime's debug information is many times its code; `-g` keeps it beside the program's own.
  if (!options.debug) command.push_back("-Wl,--strip-debug");
  command.insert(command.end(), {"-o", executable.path()});
  for (const TemporaryFile& file : files) command.push_back(file.path());
  // Where the binary finds the MPI transport when started by mpirun: beside the archive, or moved along with it.
  const std::string folder = std::filesystem::path(options.runtimeArchive).parent_path().string();
  command.push_back("-Wl,-rpath," + folder + ":$ORIGIN");
  command.insert(command.end(), {options.runtimeArchive, "-lz", "-lpthread", "-ldl", "-lm"});
  const int status = runProgram(command);
  if (status != 0) {
    diag.emit(SourceRange{}, diag::LinkerFailed, options.cxx, static_cast<std::int64_t>(status), outPath);
    return false;
  }
  if (!executable.renameTo(outPath)) {
    diag.emit(SourceRange{}, diag::FileUnwritten, outPath, std::string(std::strerror(errno)));
    return false;
  }
  return true;
}

}  // namespace gshard
