// Reductions between devices; see reduce_kernels.h. Compiled with -O3 so that the loops become vector code.
#include "runtime/reduce_kernels.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace gshard::runtime {
namespace {

// IEEE maximum and minimum: NaN wins, -0 < +0. Written with selects, so that the loops vectorise.
template <class T>
struct Maximum {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      const T both = std::bit_cast<T>(std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b));  // +0 if either is +0
      const T larger = a > b ? a : (a == b ? both : b);
      return a != a ? a : (b != b ? b : larger);
    } else {
      return a > b ? a : b;
    }
  }
};

template <class T>
struct Minimum {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      const T either = std::bit_cast<T>(std::bit_cast<Bits>(a) | std::bit_cast<Bits>(b));  // -0 if either is -0
      const T smaller = a < b ? a : (a == b ? either : b);
      return a != a ? a : (b != b ? b : smaller);
    } else {
      return a < b ? a : b;
    }
  }
};

// Integers wrap, so sums and products go through the unsigned type.
template <class T>
struct Add {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a + b;
    } else {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
    }
  }
};

template <class T>
struct Multiply {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a * b;
    } else {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
  }
};

template <class T>
struct Or {
  static T apply(T a, T b) { return static_cast<T>(a != T{0} || b != T{0}); }
};

template <class T>
struct And {
  static T apply(T a, T b) { return static_cast<T>(a != T{0} && b != T{0}); }
};

template <class T>
T plainLoad(T value) {
  return value;
}

template <class T, class Op, class Stored, class Load>
void loop(std::byte* accumulator, const std::byte* source, std::int64_t stride, std::int64_t length, Load load) {
  T* out = reinterpret_cast<T*>(accumulator);
  const Stored* in = reinterpret_cast<const Stored*>(source);
  if (stride == 1) {
    for (std::int64_t i = 0; i < length; ++i) out[i] = Op::apply(out[i], load(in[i]));
  } else {
    for (std::int64_t i = 0; i < length; ++i) out[i] = Op::apply(out[i], load(in[i * stride]));
  }
}

template <class T, class Stored, class Load>
void byReduction(Reduction reduction, std::byte* accumulator, const std::byte* source, std::int64_t stride,
                 std::int64_t length, Load load) {
  switch (reduction) {
    case Reduction::Sum:
      return loop<T, Add<T>, Stored>(accumulator, source, stride, length, load);
    case Reduction::Prod:
      return loop<T, Multiply<T>, Stored>(accumulator, source, stride, length, load);
    case Reduction::Max:
      return loop<T, Maximum<T>, Stored>(accumulator, source, stride, length, load);
    case Reduction::Min:
      return loop<T, Minimum<T>, Stored>(accumulator, source, stride, length, load);
    case Reduction::Any:
      return loop<T, Or<T>, Stored>(accumulator, source, stride, length, load);
    case Reduction::All:
      return loop<T, And<T>, Stored>(accumulator, source, stride, length, load);
  }
}

template <class Stored, class T, class Convert>
void convertLoop(const std::byte* from, std::int64_t fromStride, std::byte* to, std::int64_t toStride,
                 std::int64_t length, Convert convert) {
  const Stored* in = reinterpret_cast<const Stored*>(from);
  T* out = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < length; ++i) out[i * toStride] = convert(in[i * fromStride]);
}

void copyWords(std::int64_t size, const std::byte* from, std::int64_t fromStride, std::byte* to, std::int64_t toStride,
               std::int64_t length) {
  if (length == 0) return;  // buffers of nothing have no address
  if (fromStride == 1 && toStride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(length * size));
    return;
  }
  for (std::int64_t i = 0; i < length; ++i) {
    std::memcpy(to + i * toStride * size, from + i * fromStride * size, static_cast<std::size_t>(size));
  }
}

}  // namespace

std::int64_t accumulatorBytes(ElementType type) {
  return type == ElementType::F16 || type == ElementType::BF16 ? 4 : elementBytes(type);
}

void accumulate(ElementType type, Reduction reduction, std::byte* accumulator, const std::byte* source,
                std::int64_t stride, std::int64_t length) {
  switch (type) {
    case ElementType::F32:
      return byReduction<float, float>(reduction, accumulator, source, stride, length, plainLoad<float>);
    case ElementType::F64:
      return byReduction<double, double>(reduction, accumulator, source, stride, length, plainLoad<double>);
    case ElementType::I32:
      return byReduction<std::int32_t, std::int32_t>(reduction, accumulator, source, stride, length,
                                                     plainLoad<std::int32_t>);
    case ElementType::I64:
      return byReduction<std::int64_t, std::int64_t>(reduction, accumulator, source, stride, length,
                                                     plainLoad<std::int64_t>);
    case ElementType::U8:
    case ElementType::Bool:
      return byReduction<std::uint8_t, std::uint8_t>(reduction, accumulator, source, stride, length,
                                                     plainLoad<std::uint8_t>);
    case ElementType::F16:
      return byReduction<float, std::uint16_t>(reduction, accumulator, source, stride, length, halfToFloat);
    case ElementType::BF16:
      return byReduction<float, std::uint16_t>(reduction, accumulator, source, stride, length, bfloatToFloat);
  }
}

void loadAccumulator(ElementType type, std::byte* accumulator, const std::byte* source, std::int64_t stride,
                     std::int64_t length) {
  if (type == ElementType::F16) {
    convertLoop<std::uint16_t, float>(source, stride, accumulator, 1, length, halfToFloat);
  } else if (type == ElementType::BF16) {
    convertLoop<std::uint16_t, float>(source, stride, accumulator, 1, length, bfloatToFloat);
  } else {
    copyWords(elementBytes(type), source, stride, accumulator, 1, length);
  }
}

void storeAccumulator(ElementType type, const std::byte* accumulator, std::byte* target, std::int64_t stride,
                      std::int64_t length) {
  if (type == ElementType::F16) {
    convertLoop<float, std::uint16_t>(accumulator, 1, target, stride, length, floatToHalf);
  } else if (type == ElementType::BF16) {
    convertLoop<float, std::uint16_t>(accumulator, 1, target, stride, length, floatToBfloat);
  } else {
    copyWords(elementBytes(type), accumulator, 1, target, stride, length);
  }
}

}  // namespace gshard::runtime
