// fork, exec, wait; signals forwarded to the child while it runs.
#include "driver/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace gshard {

namespace {

// A handler can reach nothing else. Set before the child starts, cleared after it ended; one child at a time.
volatile sig_atomic_t childPid = 0;
volatile sig_atomic_t childSignal = 0;
volatile sig_atomic_t lastSignal = 0;

void forward(int signal) {
  lastSignal = signal;
  if (childPid > 0) kill(childPid, childSignal != 0 ? childSignal : signal);
}

}  // namespace

int runProcess(const std::vector<std::string>& command,
               const std::vector<std::pair<std::string, std::string>>& environment, bool quiet, bool forwardAsUsr2,
               std::string& error) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int fault[2];
  if (pipe2(fault, O_CLOEXEC) != 0) {
    error = std::strerror(errno);
    return -1;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 0);
    if (quiet) {
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, STDOUT_FILENO);
    }
    execvp(arguments[0], arguments.data());
    const int reason = errno;
    [[maybe_unused]] const ssize_t written = write(fault[1], &reason, sizeof reason);
    _exit(127);
  }
  close(fault[1]);
  if (pid < 0) {
    error = std::strerror(errno);
    close(fault[0]);
    return -1;
  }
  childSignal = forwardAsUsr2 ? SIGUSR2 : 0;
  lastSignal = 0;
  childPid = pid;
  struct sigaction action = {}, interrupt = {}, terminate = {};
  action.sa_handler = &forward;
  sigaction(SIGINT, &action, &interrupt);
  sigaction(SIGTERM, &action, &terminate);
  int reason = 0;
  const bool failed = read(fault[0], &reason, sizeof reason) == static_cast<ssize_t>(sizeof reason);
  close(fault[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  childPid = 0;
  sigaction(SIGINT, &interrupt, nullptr);
  sigaction(SIGTERM, &terminate, nullptr);
  if (failed) {
    error = std::strerror(reason);
    return -1;
  }
  if (forwardAsUsr2 && lastSignal != 0) return 128 + lastSignal;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::pair<std::string, std::string>> mpiEnvironment() {
  return {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
          {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
          {"OMPI_MCA_hwloc_base_binding_policy", "none"},
          {"OMPI_MCA_odls_base_sigkill_timeout", "0"}};
}

}  // namespace gshard
