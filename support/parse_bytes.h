// Sizes as people write them; the other way of formatBytes (text.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gshard {

/// "512MiB", "1.5 GiB", "4096". Nothing when it is no size or does not fit.
std::optional<std::int64_t> parseBytes(std::string_view text);

}  // namespace gshard
