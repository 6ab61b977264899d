// How a target says that something is wrong which no sanitizer sees: libFuzzer keeps the input of what aborts.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace gshard::fuzz {

[[noreturn]] inline void finding(const std::string& text) {
  std::fprintf(stderr, "FINDING: %s\n", text.c_str());
  std::abort();
}

inline std::string textOf(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace gshard::fuzz
