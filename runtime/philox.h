// Fills tiles with random values. Apart from random_values.h because the normal distribution needs libm: it is
// compiled once, out of line, so that every path yields equal bits.
#pragma once
#include <cstdint>

#include "runtime/random_values.h"

namespace gshard::runtime {

// sqrt(-2 log(radius)) * cos(2 pi angle), see random_values.h.
double normalValue(const random_values::Stream& stream, std::uint64_t index);

// Values of `count` consecutive global elements from `first`.
void fillUniform(const random_values::Stream& stream, std::uint64_t first, std::int64_t count, float low, float high,
                 float* out);
void fillUniform(const random_values::Stream& stream, std::uint64_t first, std::int64_t count, double low, double high,
                 double* out);
void fillNormal(const random_values::Stream& stream, std::uint64_t first, std::int64_t count, float* out);
void fillNormal(const random_values::Stream& stream, std::uint64_t first, std::int64_t count, double* out);

// 32-bit FNV-1a of a name: the site of what the runtime itself draws (seeded inputs, row order).
std::uint32_t siteOfName(const char* name);

}  // namespace gshard::runtime
