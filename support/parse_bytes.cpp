// A number and a unit; see parse_bytes.h.
#include "support/parse_bytes.h"

#include <charconv>
#include <iterator>

namespace gshard {

std::optional<std::int64_t> parseBytes(std::string_view text) {
  constexpr std::string_view kUnits[] = {"", "B", "KiB", "MiB", "GiB", "TiB"};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !(number >= 0)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (std::size_t u = 0; u < std::size(kUnits); ++u) {
    if (unit != kUnits[u]) continue;
    for (std::size_t i = 1; i < u; ++i) number *= 1024;
    if (number >= 9e18) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  return std::nullopt;
}

}  // namespace gshard
