// Random values from Random123's Philox 4x32-10 (Salmon et al., SC'11); see random_values.h.
#include "ir/random_values.h"

#include <Random123/philox.h>

#include <cmath>

#include "ir/tensor.h"

namespace gshard {

namespace {
r123::Philox4x32::ctr_type blockOf(const RandomStream& stream, std::uint64_t block) {
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), stream.step, stream.site}};
  const r123::Philox4x32::key_type key = {
      {static_cast<std::uint32_t>(stream.seed), static_cast<std::uint32_t>(stream.seed >> 32)}};
  return r123::Philox4x32()(counter, key);
}

struct Pair {
  std::uint32_t first, second;
};
Pair pairOf(const RandomStream& stream, std::uint64_t index) {
  const r123::Philox4x32::ctr_type block = blockOf(stream, index >> 1);
  return (index & 1) != 0 ? Pair{block[2], block[3]} : Pair{block[0], block[1]};
}
}  // namespace

double randomUniform(const RandomStream& stream, std::uint64_t index, DType dtype, double low, double high) {
  if (dtype == DType::F64) {
    const Pair pair = pairOf(stream, index);
    const double unit = static_cast<double>(((std::uint64_t{pair.second} << 32) | pair.first) >> 11) * 0x1p-53;
    const double scaled = (high - low) * unit;
    const double value = low + scaled;
    return value < high ? value : low;
  }
  const float unit = static_cast<float>(blockOf(stream, index >> 2)[index & 3] >> 8) * 0x1p-24f;
  const float from = static_cast<float>(low);
  const float to = static_cast<float>(high);
  const float span = to - from;
  const float scaled = span * unit;
  const float value = from + scaled;
  const double rounded = roundTo(dtype, value);
  return rounded < to ? rounded : roundTo(dtype, from);
}

// Box and Muller, from the element's own 64 bits.
double randomNormal(const RandomStream& stream, std::uint64_t index, DType dtype) {
  constexpr double kTau = 6.283185307179586476925286766559;
  const Pair pair = pairOf(stream, index);
  const double radius = (static_cast<double>(pair.first) + 1.0) * 0x1p-32;
  const double angle = static_cast<double>(pair.second) * 0x1p-32;
  return roundTo(dtype, std::sqrt(-2.0 * std::log(radius)) * std::cos(kTau * angle));
}

}  // namespace gshard
