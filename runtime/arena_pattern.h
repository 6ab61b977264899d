// The memory measurement: an arena is filled with a pattern before anything runs, and the highest byte that differs
// afterwards is the peak. Also poisons what a kernel might read without having written it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gshard::runtime {

// As a float -2.9e-16, as an integer far out of range, as bool neither 0 nor 1.
constexpr unsigned char kArenaPattern = 0xA5;

inline void fillArena(std::byte* arena, std::int64_t bytes) {
  std::memset(arena, kArenaPattern, static_cast<std::size_t>(bytes));
}

inline std::int64_t highestTouchedByte(const std::byte* arena, std::int64_t bytes) {
  while (bytes > 0 && arena[bytes - 1] == std::byte{kArenaPattern}) --bytes;
  return bytes;
}

}  // namespace gshard::runtime
