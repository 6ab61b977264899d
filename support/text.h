// Small text helpers that several stages need: names close to a mistyped one, numbers as people read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gshard {

/// The candidate closest to `name` by edits (a swap of neighbours is one), if it is close enough to be a typing slip.
/// Ties: the first.
std::optional<std::string> suggest(std::string_view name, const std::vector<std::string>& candidates);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> splitText(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// The shortest decimal that reads back as the same value, always with a '.' or an exponent: "1.0", "1e-05", "inf",
/// "nan".
std::string formatNumber(double value);
std::string formatNumber(float value);
/// "512 B", "1.25 KiB": at most two decimals, trailing zeros cut.
std::string formatBytes(std::int64_t bytes);
/// "39,724"
std::string formatCount(std::int64_t count);
/// "1 error", "2 errors"
std::string plural(std::int64_t count, std::string_view noun);

/// `text` in double quotes with escapes, as JSON and .gsd strings have them.
std::string quoted(std::string_view text);

/// Whether `text` is valid UTF-8 without NUL; if not, the byte offset of the first fault.
std::optional<std::size_t> findInvalidUtf8(std::string_view text);

}  // namespace gshard
