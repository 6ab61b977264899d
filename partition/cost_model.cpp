// Built-in platforms. Figures are public peak figures of the machines, rounded; `laptop` is what this project measured
// on two cores (toolchain.md section 5 and 8).
#include "partition/cost_model.h"

namespace gshard {

namespace {

constexpr Platform kPlatforms[] = {
    {"laptop", 2.0, 10e3, 100e3, 20e3},
    {"tpu-v3", 1.5, 70e3, 61e6, 450e3},
    {"h200-nvlink", 3.0, 450e3, 67e6, 4800e3},
};

}  // namespace

std::span<const Platform> platforms() {
  return kPlatforms;
}

const Platform* findPlatform(std::string_view name) {
  for (const Platform& platform : kPlatforms) {
    if (platform.name == name) return &platform;
  }
  return nullptr;
}

double collectiveMicroseconds(const Platform& platform, std::int64_t messages, std::int64_t bytesMax) {
  return static_cast<double>(messages) * platform.latencyMicroseconds +
         static_cast<double>(bytesMax) / platform.linkBytesPerMicrosecond;
}

}  // namespace gshard
