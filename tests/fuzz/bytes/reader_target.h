// What the readers of data files promise for any bytes: arrays whose bytes are those of their shape and type, and which
// come back when they are written; or a Failure, and nothing else.
#pragma once

#include <cstring>

#include "runtime/array.h"
#include "runtime/failure.h"
#include "tests/fuzz/bytes/finding.h"

namespace gshard::fuzz {

inline runtime::Bytes bytesOf(const void* data, std::size_t size) {
  runtime::Bytes bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  return bytes;
}

inline void checkArray(const runtime::Array& array) {
  const std::int64_t count = array.count();
  if (count < 0 || array.bytes.size() != static_cast<std::size_t>(count * runtime::elementBytes(array.type)))
    finding(runtime::arrayText(array) + " has " + std::to_string(array.bytes.size()) + " bytes");
  if (count == 0) return;
  for (const std::int64_t index : {std::int64_t{0}, count / 2, count - 1}) runtime::asDouble(array, index);
}

inline void checkSame(const runtime::Array& array, const runtime::Array& again) {
  if (array.type != again.type || array.shape != again.shape || array.bytes != again.bytes)
    finding(runtime::arrayText(array) + " was written and read as " + runtime::arrayText(again) +
            ", or with other elements");
}

// False when `read` refuses the bytes.
template <class Read>
bool accepts(Read read) {
  try {
    read();
    return true;
  } catch (const runtime::Failure&) {
    return false;
  }
}

}  // namespace gshard::fuzz
