// The header that devices of one host share: barrier flags, the abort word and what each device is doing. It may lie in
// a window between processes, so it holds no pointers and no locks; waiting is spin, then yield, then futex.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/call_list.h"

namespace gshard::runtime {

// Number and label of a call in one word, so that both are read together.
inline std::uint64_t callWord(std::uint32_t number, std::int32_t label) {
  return (std::uint64_t{number} << 32) | static_cast<std::uint32_t>(label);
}

struct alignas(128) DeviceFlags {
  std::atomic<std::uint32_t> sequence{0};  // barriers entered; the futex word
  std::atomic<std::uint32_t> waiters{0};   // who sleeps on it
  std::atomic<std::int32_t> pid{0};        // 0: not watched (threads of one process)
  std::atomic<std::int32_t> label{-1};
  std::atomic<std::int32_t> waiting{0};
  std::atomic<std::int64_t> step{0};
  std::atomic<std::uint64_t> call{0};  // callWord of the newest call: devices that meet compare theirs
  std::atomic<std::uint32_t> ended{0};
  std::atomic<std::int32_t> calls[kCallsKept] = {};  // as CallList has them
  alignas(128) std::byte slot[128];                  // what the device gives in an agreement
};

struct alignas(128) SharedHeader {
  std::atomic<std::uint32_t> abortState{0};  // 0 none, 1 being written, 2 readable
  std::int32_t abortCode = 0;
  std::int32_t abortDevice = -1;
  char abortText[1792] = {};

  DeviceFlags* device(int rank) { return reinterpret_cast<DeviceFlags*>(this + 1) + rank; }
  static std::size_t bytes(int devices);
};

// Builds header and flags in zeroed memory.
SharedHeader* makeSharedHeader(void* memory, int devices);

// The first call wins; later ones are dropped.
void raiseAbort(SharedHeader& header, int code, int device, const std::string& text);

// Raises the sequence of one device and wakes who sleeps on it.
void signalSequence(DeviceFlags& flags, std::uint32_t value);

// True when `flags.sequence` has reached `target`. Sleeps at most `milliseconds`; false means "look around and call
// again". `spins` is small when there are more devices than cores.
bool awaitSequence(DeviceFlags& flags, std::uint32_t target, int spins, int milliseconds);

// Whether a process of this host still runs.
bool processAlive(std::int32_t pid);

}  // namespace gshard::runtime
