// What the binary resolves in libgshard_mpi.so. The library is loaded only under mpirun, so that a model needs no MPI
// to run on threads.
#pragma once
#include <cstdint>

#include "runtime/transport.h"

namespace gshard::runtime {

struct MpiWorld {
  int rank = 0;
  int size = 1;
};

// Starts MPI. Returns null, or constant text that says what went wrong.
using MpiStartFn = const char* (*)(MpiWorld* world);
// Makes the transport (collective). `messages` chooses the path for several hosts even on one. Null on failure, with
// the reason in `error`.
using MpiOpenFn = Transport* (*)(std::int64_t arenaBytes, int messages, char* error, int errorBytes);
// Ends MPI: code 0 finalises after the transport is gone, any other code ends all ranks with that status.
using MpiFinishFn = void (*)(Transport* transport, int code);

}  // namespace gshard::runtime

extern "C" {
const char* gshard_mpi_start(gshard::runtime::MpiWorld* world);
gshard::runtime::Transport* gshard_mpi_open(std::int64_t arenaBytes, int messages, char* error, int errorBytes);
void gshard_mpi_finish(gshard::runtime::Transport* transport, int code);
}
