// What kernels call: the functions of the table in abi.h.
#include "runtime/abi.h"
#include "runtime/device.h"
#include "runtime/philox.h"

namespace gshard::runtime {

static std::uint16_t shortBits(std::int64_t dtype, float value) {
  return dtype == GSHARD_RT_F16 ? floatToHalf(value) : floatToBfloat(value);
}

static float shortValue(std::int64_t dtype, std::uint16_t bits) {
  return dtype == GSHARD_RT_F16 ? halfToFloat(bits) : bfloatToFloat(bits);
}

// 16-bit floats are drawn as f32 or f64 and rounded.
template <class Wide, class Fill, class Round>
static void drawRounded(void* out, std::int64_t first, std::int64_t count, Fill fill, Round round) {
  constexpr std::int64_t kBlock = 256;
  Wide values[kBlock];
  std::uint16_t* target = static_cast<std::uint16_t*>(out);
  for (std::int64_t done = 0; done < count; done += kBlock) {
    const std::int64_t length = count - done < kBlock ? count - done : kBlock;
    fill(static_cast<std::uint64_t>(first + done), length, values);
    for (std::int64_t i = 0; i < length; ++i) target[done + i] = round(values[i]);
  }
}

static random_values::Stream streamOf(const gshard_rt_context* context, std::int64_t site, std::int64_t step) {
  return {context->seed, static_cast<random_values::Word>(site), static_cast<random_values::Word>(step)};
}

}  // namespace gshard::runtime

extern "C" void gshard_rt_record_fault(const gshard_rt_context* context, int64_t site, int64_t index, int64_t value,
                                       int64_t limit, int64_t order) {
  static_cast<gshard::runtime::FaultRecorder*>(context->faults)->record({order, index, site, value, limit});
}

extern "C" void gshard_rt_random_uniform(const gshard_rt_context* context, void* out, int64_t dtype, int64_t first,
                                         int64_t count, int64_t site, int64_t step, double low, double high) {
  const gshard::runtime::random_values::Stream stream = gshard::runtime::streamOf(context, site, step);
  const std::uint64_t begin = static_cast<std::uint64_t>(first);
  const float lowest = static_cast<float>(low);
  const float highest = static_cast<float>(high);
  if (dtype == GSHARD_RT_F32) {
    gshard::runtime::fillUniform(stream, begin, count, lowest, highest, static_cast<float*>(out));
  } else if (dtype == GSHARD_RT_F64) {
    gshard::runtime::fillUniform(stream, begin, count, low, high, static_cast<double*>(out));
  } else {
    const auto fill = [&](std::uint64_t at, std::int64_t length, float* values) {
      gshard::runtime::fillUniform(stream, at, length, lowest, highest, values);
    };
    // Rounded up to the end of the half-open interval, a value is the low end, as in f32.
    gshard::runtime::drawRounded<float>(out, first, count, fill, [&](float value) {
      const std::uint16_t bits = gshard::runtime::shortBits(dtype, value);
      return gshard::runtime::shortValue(dtype, bits) < highest ? bits : gshard::runtime::shortBits(dtype, lowest);
    });
  }
}

extern "C" void gshard_rt_random_normal(const gshard_rt_context* context, void* out, int64_t dtype, int64_t first,
                                        int64_t count, int64_t site, int64_t step) {
  const gshard::runtime::random_values::Stream stream = gshard::runtime::streamOf(context, site, step);
  const std::uint64_t begin = static_cast<std::uint64_t>(first);
  if (dtype == GSHARD_RT_F32) {
    gshard::runtime::fillNormal(stream, begin, count, static_cast<float*>(out));
  } else if (dtype == GSHARD_RT_F64) {
    gshard::runtime::fillNormal(stream, begin, count, static_cast<double*>(out));
  } else {
    const auto fill = [&](std::uint64_t at, std::int64_t length, double* values) {
      gshard::runtime::fillNormal(stream, at, length, values);
    };
    gshard::runtime::drawRounded<double>(out, first, count, fill, [&](double value) {
      return gshard::runtime::shortBits(dtype, gshard::runtime::roundedToOdd(value));  // rounded once
    });
  }
}
