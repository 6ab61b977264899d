// Elementwise reductions between devices, in a fixed order: the accumulator already holds the earlier devices' result.
// Bits must not depend on vector width, so there is no reassociation here, only lanes.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/element_type.h"
#include "runtime/transport.h"

namespace gshard::runtime {

// accumulator[i] = accumulator[i] (+) source[i * stride], i < length. f16 and bf16 accumulate in f32: there the
// accumulator is an f32 buffer. Any and All work on bytes 0 and 1.
void accumulate(ElementType type, Reduction reduction, std::byte* accumulator, const std::byte* source,
                std::int64_t stride, std::int64_t length);

// The first device's values into the accumulator, and the accumulator out to a (strided) target.
void loadAccumulator(ElementType type, std::byte* accumulator, const std::byte* source, std::int64_t stride,
                     std::int64_t length);
void storeAccumulator(ElementType type, const std::byte* accumulator, std::byte* target, std::int64_t stride,
                      std::int64_t length);

// Bytes of an accumulator element: 4 for f16 and bf16, else the element's own.
std::int64_t accumulatorBytes(ElementType type);

}  // namespace gshard::runtime
