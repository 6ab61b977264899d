// Message texts; see failure.h.
#include "runtime/failure.h"

namespace gshard::runtime {

std::string fillText(std::string_view text, const std::vector<std::string>& arguments) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && i + 1 < text.size() && text[i + 1] == '}' && next < arguments.size()) {
      out += arguments[next++];
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace gshard::runtime
