// Preloaded into a program: counts what it takes from the heap, and writes the count at its end to the file that
// GSHARD_ALLOCATIONS names (with the process number behind it). The hook for "no allocation happens in a step".
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

std::atomic<long long> allocations{0};

struct AtEnd {
  ~AtEnd() {
    const char* name = std::getenv("GSHARD_ALLOCATIONS");
    if (name == nullptr) return;
    char path[512];
    std::snprintf(path, sizeof path, "%s.%d", name, static_cast<int>(getpid()));
    const long long count = allocations.load();
    if (std::FILE* file = std::fopen(path, "w")) {
      std::fprintf(file, "%lld\n", count);
      std::fclose(file);
    }
  }
} atEnd;

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"
