// Threads of one device; see thread_pool.h.
#include "runtime/thread_pool.h"

#include "runtime/placement.h"

namespace gshard::runtime {

// Between two kernels of a step lie microseconds, and waking a thread takes tens of them: it waits for about a tenth of
// a millisecond before it sleeps. With fewer cores than threads the other one needs the core.
static constexpr int kSpins = 4000, kFewSpins = 50;

static void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

ThreadPool::ThreadPool(int threads, int core, bool coresForAll)
    : size_(threads < 1 ? 1 : threads), spins_(coresForAll ? kSpins : kFewSpins) {
  for (int thread = 1; thread < size_; ++thread) {
    workers_.emplace_back([this, thread, core] {
      startOnCore(core + thread);
      work(thread);
    });
  }
}

ThreadPool::~ThreadPool() {
  ending_.store(true);
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(Body body, void* argument) {
  if (size_ == 1) return body(argument, 0, 1);
  body_ = body;
  argument_ = argument;
  running_.store(size_ - 1, std::memory_order_relaxed);
  round_.fetch_add(1);
  round_.notify_all();
  body(argument, 0, size_);
  for (int spin = 0; spin < spins_; ++spin) {
    if (running_.load(std::memory_order_acquire) == 0) return;
    pauseCore();
  }
  for (std::int32_t left = running_.load(); left != 0; left = running_.load()) running_.wait(left);
}

void ThreadPool::work(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    for (int spin = 0; spin < spins_ && round_.load(std::memory_order_acquire) == seen; ++spin) pauseCore();
    round_.wait(seen);
    seen = round_.load(std::memory_order_acquire);
    if (ending_.load()) return;
    body_(argument_, thread, size_);
    if (running_.fetch_sub(1) == 1) running_.notify_all();
  }
}

}  // namespace gshard::runtime
