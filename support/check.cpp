// Throwing side of GSHARD_CHECK, out of line so that the macro costs one call.
#include "support/check.h"

#include <string_view>

namespace gshard {

void failCheck(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view name = file;  // no absolute paths in messages: builds in any folder say the same
  const std::size_t slash = name.rfind('/');
  const std::size_t parent = slash == std::string_view::npos || slash == 0 ? slash : name.rfind('/', slash - 1);
  if (parent != std::string_view::npos) name.remove_prefix(parent + 1);
  throw InternalError(std::string(name) + ":" + std::to_string(line) + ": " + message + " (" + condition + ")");
}

}  // namespace gshard
