// Integers in text that others write: options, file names, selections.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace gshard::runtime {

// All of `text` as decimal digits, after a minus where Integer has one; nothing else (no blanks, no plus), or nullopt.
// A number that Integer cannot hold is no number: strtoll would return its limit, and the next addition would overflow.
template <class Integer = std::int64_t>
std::optional<Integer> parseInteger(std::string_view text) {
  Integer value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const std::from_chars_result result = std::from_chars(begin, end, value);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace gshard::runtime
