// libgshard_mpi.so: starts MPI, and chooses between shared windows (all ranks on one host) and messages. MPI is used
// for set-up and messages only; collectives within a host are those of shared_transport.h.
#include <mpi.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/failure.h"
#include "runtime/message_transport.h"
#include "runtime/mpi_library.h"
#include "runtime/shared_transport.h"

namespace gshard::runtime {
namespace {

constexpr std::int64_t kPage = 4096;

// Owns the two windows: arenas, and the header on rank 0.
struct Windows {
  MPI_Win arenas = MPI_WIN_NULL;
  MPI_Win header = MPI_WIN_NULL;
  std::vector<std::byte*> bases;
  SharedHeader* shared = nullptr;
};

class WindowTransport : public SharedTransport {
 public:
  WindowTransport(int rank, std::int64_t arenaBytes, Windows windows)
      : SharedTransport(rank, windows.bases, arenaBytes, windows.shared), windows_(std::move(windows)) {
    header().device(rank)->pid.store(getpid());
  }
  ~WindowTransport() override {
    MPI_Win_free(&windows_.header);
    MPI_Win_free(&windows_.arenas);
  }
  const char* name() const override { return "mpi"; }

 private:
  Windows windows_;
};

std::byte* roundUp(void* pointer) {
  const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(pointer) % kPage;
  return static_cast<std::byte*>(pointer) + (beyond == 0 ? 0 : kPage - beyond);
}

// Containers often give /dev/shm 64 MB, and the fault comes at first touch: compare before.
void checkSharedMemory(int size, std::int64_t arenaBytes) {
  const char* folder = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  struct statvfs info{};
  if (statvfs(folder != nullptr ? folder : "/dev/shm", &info) != 0) return;
  const std::int64_t available = static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
  if (available >= size * arenaBytes) return;
  throw failure(kExitMemory, diag::ArenaUnavailable, size * arenaBytes,
                "in " + std::string(folder != nullptr ? folder : "/dev/shm") + " (it has " + std::to_string(available) +
                    " free; OMPI_MCA_osc_sm_backing_directory names another folder)");
}

std::unique_ptr<Transport> openWindows(MPI_Comm node, int rank, int size, std::int64_t arenaBytes) {
  Windows windows;
  void* memory = nullptr;
  void* const place = static_cast<void*>(&memory);  // MPI's way of giving back a pointer
  if (MPI_Win_allocate_shared(static_cast<MPI_Aint>(arenaBytes + 2 * kPage), 1, MPI_INFO_NULL, node, place,
                              &windows.arenas) != MPI_SUCCESS) {
    return nullptr;
  }
  const MPI_Aint headerBytes = rank == 0 ? static_cast<MPI_Aint>(SharedHeader::bytes(size)) + kPage : 0;
  MPI_Win_allocate_shared(headerBytes, 1, MPI_INFO_NULL, node, place, &windows.header);
  MPI_Aint bytes = 0;
  int unit = 0;
  for (int device = 0; device < size; ++device) {
    MPI_Win_shared_query(windows.arenas, device, &bytes, &unit, place);
    windows.bases.push_back(roundUp(memory));
  }
  MPI_Win_shared_query(windows.header, 0, &bytes, &unit, place);
  std::byte* header = roundUp(memory);
  if (rank == 0) {
    std::memset(header, 0, SharedHeader::bytes(size));
    makeSharedHeader(header, size);
  }
  MPI_Barrier(node);
  windows.shared = reinterpret_cast<SharedHeader*>(header);
  return std::make_unique<WindowTransport>(rank, arenaBytes, std::move(windows));
}

}  // namespace
}  // namespace gshard::runtime

extern "C" const char* gshard_mpi_start(gshard::runtime::MpiWorld* world) {
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const char* all = std::getenv("OMPI_COMM_WORLD_SIZE");
  // On several hosts the fabric's own choice is better.
  if (local != nullptr && all != nullptr && std::strcmp(local, all) == 0) {
    setenv("OMPI_MCA_pml", "ob1", 0);
    setenv("OMPI_MCA_btl", "self,vader", 0);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  }
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) return "MPI_Init failed";
  MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world->size);
  return nullptr;
}

extern "C" gshard::runtime::Transport* gshard_mpi_open(std::int64_t arenaBytes, int messages, char* error,
                                                       int errorBytes) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  try {
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    int together = 1;
    MPI_Comm_size(node, &together);
    // All must choose alike, also when hosts differ in size.
    int shared = together == size && messages == 0 ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &shared, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    std::unique_ptr<gshard::runtime::Transport> transport;
    if (shared != 0) {
      gshard::runtime::checkSharedMemory(size, arenaBytes);
      transport = gshard::runtime::openWindows(node, rank, size, arenaBytes);
    }
    if (transport == nullptr) transport = gshard::runtime::makeMessageTransport(rank, size, arenaBytes);
    return transport.release();
  } catch (const gshard::runtime::Failure& failed) {
    std::snprintf(error, static_cast<std::size_t>(errorBytes), "%s", failed.message.c_str());
    return nullptr;
  }
}

extern "C" void gshard_mpi_finish(gshard::runtime::Transport* transport, int code) {
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  delete transport;
  MPI_Finalize();
}
