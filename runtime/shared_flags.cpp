// Flags between devices of one host; see shared_flags.h.
#include "runtime/shared_flags.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace gshard::runtime {

std::size_t SharedHeader::bytes(int devices) {
  return sizeof(SharedHeader) + sizeof(DeviceFlags) * static_cast<std::size_t>(devices);
}

SharedHeader* makeSharedHeader(void* memory, int devices) {
  SharedHeader* header = new (memory) SharedHeader;
  for (int rank = 0; rank < devices; ++rank) new (header->device(rank)) DeviceFlags;
  return header;
}

void raiseAbort(SharedHeader& header, int code, int device, const std::string& text) {
  std::uint32_t expected = 0;
  if (!header.abortState.compare_exchange_strong(expected, 1)) return;
  header.abortCode = code;
  header.abortDevice = device;
  const std::size_t length = std::min(text.size(), sizeof header.abortText - 1);
  std::memcpy(header.abortText, text.data(), length);
  header.abortText[length] = '\0';
  header.abortState.store(2);
}

void signalSequence(DeviceFlags& flags, std::uint32_t value) {
  flags.sequence.store(value);  // sequentially consistent: must be seen before `waiters` is read
  if (flags.waiters.load() != 0) {
    syscall(SYS_futex, &flags.sequence, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
  }
}

static bool reached(std::uint32_t value, std::uint32_t target) {
  return static_cast<std::int32_t>(value - target) >= 0;  // survives wrapping
}

bool awaitSequence(DeviceFlags& flags, std::uint32_t target, int spins, int milliseconds) {
  for (int i = 0; i < spins; ++i) {
    if (reached(flags.sequence.load(std::memory_order_acquire), target)) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  constexpr int kYields = 64;
  for (int i = 0; i < kYields; ++i) {
    if (reached(flags.sequence.load(std::memory_order_acquire), target)) return true;
    sched_yield();
  }
  flags.waiters.fetch_add(1);
  const std::uint32_t seen = flags.sequence.load();
  if (!reached(seen, target)) {
    const timespec limit{milliseconds / 1000, (milliseconds % 1000) * 1000000L};
    syscall(SYS_futex, &flags.sequence, FUTEX_WAIT, seen, &limit, nullptr, 0);
  }
  flags.waiters.fetch_sub(1);
  return reached(flags.sequence.load(std::memory_order_acquire), target);
}

bool processAlive(std::int32_t pid) {
  return pid == 0 || kill(pid, 0) == 0 || errno != ESRCH;
}

}  // namespace gshard::runtime
