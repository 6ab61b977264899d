// The cost model: time of collectives and of flops on a platform. Shown in reports; choices depend on it only when the
// user names a platform, so plans are the same on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gshard {

struct Platform {
  std::string_view name;
  double latencyMicroseconds;      // of one message
  double linkBytesPerMicrosecond;  // received by one device
  double flopsPerMicrosecond;      // one device, f32
  double memoryBytesPerMicrosecond;
};

std::span<const Platform> platforms();  // built in: laptop, tpu-v3, h200-nvlink
const Platform* findPlatform(std::string_view name);

// `messages` one after another and the bytes that the busiest device receives.
double collectiveMicroseconds(const Platform& platform, std::int64_t messages, std::int64_t bytesMax);

}  // namespace gshard
