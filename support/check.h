// GSHARD_CHECK: what must hold whatever the user wrote. A failure is a bug of ours, thrown as InternalError, caught
// once in driver/ (exit 70). A user's mistake is a diagnostic instead (support/diagnostics.h).
#pragma once

#include <stdexcept>
#include <string>

namespace gshard {

/// A bug in the compiler; what() says where and what was expected.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void failCheck(const char* file, int line, const char* condition, const std::string& message);

}  // namespace gshard

#define GSHARD_CHECK(condition, message)                                              \
  do {                                                                                \
    if (!(condition)) ::gshard::failCheck(__FILE__, __LINE__, #condition, (message)); \
  } while (false)

/// For the end of a switch over an enum whose cases all return.
#define GSHARD_UNREACHABLE(message) ::gshard::failCheck(__FILE__, __LINE__, "unreachable", (message))
