// Random tiles; see philox.h.
#include "runtime/philox.h"

#include <cmath>

namespace gshard::runtime {

double normalValue(const random_values::Stream& stream, std::uint64_t index) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  const random_values::NormalInputs inputs = random_values::normalInputs(stream, index);
  return std::sqrt(-2.0 * std::log(inputs.radius)) * std::cos(kTwoPi * inputs.angle);
}

void fillUniform(const random_values::Stream& stream, std::uint64_t first, std::int64_t count, float low, float high,
                 float* out) {
  const float span = high - low;
  std::int64_t done = 0;
  while (done < count) {
    // One block serves four elements; only the ends of a row use part of one.
    const std::uint64_t index = first + static_cast<std::uint64_t>(done);
    const random_values::Block block = random_values::blockOf(stream, index >> 2);
    for (std::uint64_t word = index & 3; word < 4 && done < count; ++word, ++done) {
      const float scaled = span * (static_cast<float>(block.word[word] >> 8) * 0x1p-24f);
      const float value = low + scaled;
      out[done] = value < high ? value : low;
    }
  }
}

void fillUniform(const random_values::Stream& stream, std::uint64_t first, std::int64_t count, double low, double high,
                 double* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = random_values::uniformF64(stream, first + static_cast<std::uint64_t>(i), low, high);
  }
}

void fillNormal(const random_values::Stream& stream, std::uint64_t first, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(normalValue(stream, first + static_cast<std::uint64_t>(i)));
  }
}

void fillNormal(const random_values::Stream& stream, std::uint64_t first, std::int64_t count, double* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = normalValue(stream, first + static_cast<std::uint64_t>(i));
}

std::uint32_t siteOfName(const char* name) {
  std::uint32_t hash = 0x811C9DC5u;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x01000193u;
  return hash;
}

}  // namespace gshard::runtime
