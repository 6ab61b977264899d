// From an image to a program: offsets become addresses.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/abi.h"

extern "C" const gshard_rt_program* gshard_rt_load(const gshard_rt_image* image) {
  if (image->abi != GSHARD_RT_ABI) return nullptr;
  auto* bytes = static_cast<char*>(std::malloc(static_cast<std::size_t>(image->byte_count)));
  if (bytes == nullptr) return nullptr;
  std::memcpy(bytes, image->bytes, static_cast<std::size_t>(image->byte_count));
  auto* words = reinterpret_cast<std::uint64_t*>(bytes);
  for (std::int64_t i = 0; i < image->address_count; ++i) {
    std::uint64_t& word = words[image->addresses[i]];
    word = reinterpret_cast<std::uint64_t>(bytes + word);
  }
  for (std::int64_t i = 0; i < image->symbol_use_count; ++i) {
    std::uint64_t& word = words[image->symbol_uses[i]];
    word = reinterpret_cast<std::uint64_t>(image->symbols[word]);
  }
  return reinterpret_cast<const gshard_rt_program*>(bytes);
}
