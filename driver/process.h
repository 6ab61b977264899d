// Starting programs: the produced binary, mpirun. Arguments are passed as they are, never through a shell.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gshard {

// Runs and waits; the exit code, or 128 + the signal that ended it, or -1 with a reason in `error` when it did not
// start. `output` to /dev/null when quiet. SIGINT and SIGTERM reach the child; with `forwardAsUsr2` as SIGUSR2 (mpirun
// passes that on to its ranks, where SIGTERM would kill them before they can save).
int runProcess(const std::vector<std::string>& command,
               const std::vector<std::pair<std::string, std::string>>& environment, bool quiet, bool forwardAsUsr2,
               std::string& error);

// The environment that mpirun needs in containers and with more ranks than cores (toolchain.md section 5).
std::vector<std::pair<std::string, std::string>> mpiEnvironment();

}  // namespace gshard
