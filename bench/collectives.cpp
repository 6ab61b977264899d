// Collectives of the transports, each beside what it is measured by: all_reduce on threads beside a copy of the same
// bytes by all of them at once, on MPI ranks beside MPI_Allreduce.
//   gshard_bench_collectives                         two threads
//   gshard_bench_collectives copy                    what one thread copies, for `bench/run bandwidth`
//   mpirun -n 2 gshard_bench_collectives mpi         two ranks (built with MPI)
// One JSON line per case; the best of many runs counts, since other work on the machine only ever slows one down.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/local_transport.h"
#include "runtime/placement.h"
#ifdef GSHARD_BENCH_MPI
#include <mpi.h>

#include "runtime/mpi_library.h"
#endif

namespace gshard::runtime {
namespace {

constexpr std::int64_t kLargest = 16 << 20;
constexpr std::int64_t kSizes[] = {1 << 10, 64 << 10, 1 << 20, kLargest};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int repeatsOf(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 28) / bytes, 16, 400));
}

std::string sizeText(std::int64_t bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MB" : std::to_string(bytes >> 10) + " KB";
}

// Least seconds of one run, seen by this device; all devices call it alike.
double least(Transport& transport, int repeats, const std::function<bool()>& body) {
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    if (!transport.barrier()) return best;
    const double start = now();
    if (!body()) return best;
    best = std::min(best, now() - start);
  }
  return best;
}

void line(const char* transport, const std::string& name, double value, const char* unit,
          const std::string& more = "") {
  std::printf("{\"bench\": \"collectives\", \"case\": \"%s, %s\", \"value\": %.4g, \"unit\": \"%s\"%s}\n", transport,
              name.c_str(), value, unit, more.c_str());
}

Box flat(std::int64_t offset, std::int64_t count) {
  return Box{offset, makeExtents({count}), denseStrides(makeExtents({count}))};
}

int prepareAllReduce(Transport& transport, std::int64_t bytes) {
  ReducePlan plan;
  for (int device = 0; device < transport.size(); ++device) plan.group.push_back(device);
  ReducePart part;
  part.source = part.target = flat(0, bytes / 4);
  plan.parts.push_back(part);
  return transport.prepareReduce(plan);
}

// Every device reads a part of every other's: all_to_all of `bytes` per device.
int prepareAllToAll(Transport& transport, std::int64_t bytes) {
  const std::int64_t part = bytes / 4 / transport.size();
  MovePlan plan;
  for (int device = 0; device < transport.size(); ++device) {
    plan.group.push_back(device);
    plan.copies.push_back({device, flat(4 * part * transport.rank(), part), flat(kLargest + 4 * part * device, part)});
  }
  return transport.prepareMove(plan);
}

void runCases(Transport& transport, const std::function<double(std::int64_t, int)>& peer, const char* peerName) {
  std::memset(transport.arena(), 0, static_cast<std::size_t>(2 * kLargest));
  for (const std::int64_t bytes : kSizes) {
    const int repeats = repeatsOf(bytes);
    const int reduce = prepareAllReduce(transport, bytes), move = prepareAllToAll(transport, bytes);
    const double reduced = least(transport, repeats, [&] { return transport.runReduce(reduce); });
    const double moved = least(transport, repeats, [&] { return transport.runMove(move); });
    const double theirs = peer(bytes, repeats);
    if (transport.rank() != 0) continue;
    line(transport.name(), "all_reduce of " + sizeText(bytes), 1e6 * reduced, "us");
    line(transport.name(), "all_to_all of " + sizeText(bytes), 1e6 * moved, "us");
    char text[96];
    std::snprintf(text, sizeof text, ", \"peer\": {\"name\": \"%s\", \"us\": %.4g}", peerName, 1e6 * theirs);
    line(transport.name(), "all_reduce of " + sizeText(bytes) + ", speed over " + peerName, theirs / reduced, "times",
         text);
  }
}

// An all_reduce reads and writes of each device, all told, what copying the buffer once does: its part of every
// device's values is read, and the sum is written to every device.
void runLocal() {
  constexpr int kDevices = 2;
  LocalWorld world(kDevices, 2 * kLargest);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kDevices; ++rank) {
    threads.emplace_back([&world, rank] {
      startOnCore(rank);
      Transport& transport = world.device(rank);
      const auto copy = [&](std::int64_t bytes, int repeats) {
        return least(transport, repeats, [&] {
          std::memcpy(transport.arena() + kLargest, transport.arena(), static_cast<std::size_t>(bytes));
          return transport.barrier();
        });
      };
      runCases(transport, copy, "memcpy by both");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// GB/s that one thread reads and writes while it copies 64 MB.
void runCopy() {
  std::vector<char> from(64 << 20, 1), to(64 << 20, 2);
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const double start = now();
    std::memcpy(to.data(), from.data(), from.size());
    best = std::min(best, now() - start);
  }
  std::printf("{\"copy_gb_per_s\": %.4g}\n", 2e-9 * static_cast<double>(from.size()) / best);
}

#ifdef GSHARD_BENCH_MPI
int runMpi() {
  MpiWorld world;
  if (const char* error = gshard_mpi_start(&world)) {
    std::fprintf(stderr, "%s\n", error);
    return 3;
  }
  char error[256] = "";
  Transport* transport = gshard_mpi_open(2 * kLargest, 0, error, sizeof error);
  if (transport == nullptr) {
    std::fprintf(stderr, "%s\n", error);
    return 3;
  }
  std::vector<float> values(static_cast<std::size_t>(kLargest / 4));
  const auto theirs = [&](std::int64_t bytes, int repeats) {
    return least(*transport, repeats, [&] {
      return MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(bytes / 4), MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD) == MPI_SUCCESS;
    });
  };
  runCases(*transport, theirs, "MPI_Allreduce");
  gshard_mpi_finish(transport, 0);
  return 0;
}
#endif

}  // namespace
}  // namespace gshard::runtime

int main(int argc, char** argv) {
#ifdef GSHARD_BENCH_MPI
  if (argc > 1 && std::string(argv[1]) == "mpi") return gshard::runtime::runMpi();
#endif
  if (argc > 1 && std::string(argv[1]) == "copy") {
    gshard::runtime::runCopy();
    return 0;
  }
  if (argc > 1) {
    std::fprintf(stderr, "usage: gshard_bench_collectives [copy | mpi]\n");
    return 2;
  }
  gshard::runtime::runLocal();
  return 0;
}
