// The threads of one device. Work is cut into fixed runs of chunks, so that results cannot depend on who is quick.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace gshard::runtime {

class ThreadPool {
 public:
  // `threads` counts the calling thread. The others start on the cores after `core` (placement.h). `coresForAll`: no
  // more threads want to run than there are cores, so that waiting may keep a core busy for a while.
  explicit ThreadPool(int threads, int core = 0, bool coresForAll = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Calls body(argument, thread, size()) on every thread and returns when all are done.
  using Body = void (*)(void* argument, int thread, int threads);
  void run(Body body, void* argument);

 private:
  void work(int thread);

  int size_;
  int spins_;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> round_{0};
  alignas(64) std::atomic<std::int32_t> running_{0};
  std::atomic<bool> ending_{false};
  std::vector<std::thread> workers_;
};

}  // namespace gshard::runtime
