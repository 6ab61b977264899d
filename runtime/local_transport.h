// Devices as threads of one process: arenas are mappings that all threads read directly.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/transport.h"

namespace gshard::runtime {

// Owns the segments of `devices` devices; the transports it hands out live as long as it does.
class LocalWorld {
 public:
  // Throws Failure (exit code 6) when the memory cannot be mapped.
  LocalWorld(int devices, std::int64_t arenaBytes);
  ~LocalWorld();
  LocalWorld(const LocalWorld&) = delete;
  LocalWorld& operator=(const LocalWorld&) = delete;

  int size() const { return static_cast<int>(transports_.size()); }
  Transport& device(int rank) { return *transports_[static_cast<std::size_t>(rank)]; }

 private:
  struct Mapping {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  void* map(std::size_t bytes);

  std::vector<Mapping> mappings_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

}  // namespace gshard::runtime
