// OpKind: one enumerator per line of ops/ops.def.
#pragma once

#include <cstdint>

namespace gshard {

enum class OpKind : std::uint8_t {
#define GSHARD_OP(kind, file) kind,
#include "ir/ops/ops.def"
#undef GSHARD_OP
};

}  // namespace gshard
