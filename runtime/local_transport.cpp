// Devices as threads; see local_transport.h.
#include "runtime/local_transport.h"

#include <sys/mman.h>

#include <algorithm>

#include "runtime/failure.h"
#include "runtime/shared_transport.h"

namespace gshard::runtime {
namespace {

class LocalTransport : public SharedTransport {
 public:
  LocalTransport(int rank, std::vector<std::byte*> bases, std::int64_t arenaBytes, SharedHeader* header)
      : SharedTransport(rank, std::move(bases), arenaBytes, header) {}
  const char* name() const override { return "local"; }
};

}  // namespace

void* LocalWorld::map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw failure(kExitMemory, diag::ArenaUnavailable, static_cast<std::int64_t>(bytes), std::string("per device"));
  }
  mappings_.push_back({memory, bytes});
  return memory;
}

LocalWorld::LocalWorld(int devices, std::int64_t arenaBytes) {
  SharedHeader* header = makeSharedHeader(map(SharedHeader::bytes(devices)), devices);
  std::vector<std::byte*> bases;
  for (int rank = 0; rank < devices; ++rank) {
    const std::size_t bytes = static_cast<std::size_t>(std::max<std::int64_t>(arenaBytes, 1));
    bases.push_back(static_cast<std::byte*>(map(bytes)));
    madvise(bases.back(), bytes, MADV_HUGEPAGE);
  }
  for (int rank = 0; rank < devices; ++rank) {
    transports_.push_back(std::make_unique<LocalTransport>(rank, bases, arenaBytes, header));
  }
}

LocalWorld::~LocalWorld() {
  transports_.clear();
  for (const Mapping& mapping : mappings_) munmap(mapping.memory, mapping.bytes);
}

}  // namespace gshard::runtime
