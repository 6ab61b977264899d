// The MPI path that needs no shared memory: tiles travel as point-to-point messages. Reductions are still made on the
// one device that owns an element, in rank order, and copied, so bits equal those of the shared path.
#pragma once
#include <memory>

#include "runtime/transport.h"

namespace gshard::runtime {

// Collective over all ranks. Throws Failure when memory is missing.
std::unique_ptr<Transport> makeMessageTransport(int rank, int size, std::int64_t arenaBytes);

}  // namespace gshard::runtime
