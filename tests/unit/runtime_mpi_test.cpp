// The MPI library under mpirun: the same collectives as on threads, through shared windows and through messages. A
// program without GoogleTest's main, since every rank must reach the end together.
#include <cstdio>
#include <cstring>

#include "runtime/mpi_library.h"
#include "tests/unit/runtime_collective_check.h"

int main(int argc, char** argv) {
  const bool messages = argc > 1 && std::strcmp(argv[1], "messages") == 0;
  gshard::MpiWorld world;
  if (const char* fault = gshard_mpi_start(&world)) {
    std::fprintf(stderr, "%s\n", fault);
    return 1;
  }
  char error[512] = "";
  gshard::Transport* transport =
      gshard_mpi_open(gshard::collective_check::kArena, messages ? 1 : 0, error, sizeof error);
  if (transport == nullptr) {
    std::fprintf(stderr, "%s\n", error);
    gshard_mpi_finish(nullptr, 1);
    return 1;
  }
  const std::string fault = gshard::collective_check::checkAll(*transport);
  if (!fault.empty()) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    gshard_mpi_finish(transport, 1);
    return 1;
  }
  gshard_mpi_finish(transport, 0);
  return 0;
}
