// Failures of a run: a message with its code and the exit status of ux.md section 3. Thrown while a run is being set
// up and caught at its outermost function; nothing crosses abi.h. Texts are data, in diagnostics.def.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gshard::runtime {

constexpr int kExitDone = 0;
constexpr int kExitProgram = 1;
constexpr int kExitUsage = 2;
constexpr int kExitIo = 3;
constexpr int kExitMismatch = 4;
constexpr int kExitOtherDevice = 5;
constexpr int kExitMemory = 6;
constexpr int kExitBug = 70;

struct Failure {
  int exitCode = kExitBug;
  std::string message;
};

template <class Signature>
struct RuntimeDiag;
template <class... Args>
struct RuntimeDiag<void(Args...)> {
  std::string_view code;
  std::string_view text;
};

inline std::string argumentText(std::int64_t value) {
  return std::to_string(value);
}
inline std::string argumentText(const std::string& value) {
  return value;
}

// Replaces each `{}` in turn.
std::string fillText(std::string_view text, const std::vector<std::string>& arguments);

template <class... Args>
std::string diagText(const RuntimeDiag<void(Args...)>& diag, const std::type_identity_t<Args>&... arguments) {
  return fillText(diag.text, {argumentText(arguments)...}) + " [" + std::string(diag.code) + "]";
}

template <class... Args>
Failure failure(int exitCode, const RuntimeDiag<void(Args...)>& diag, const std::type_identity_t<Args>&... arguments) {
  return Failure{exitCode, diagText(diag, arguments...)};
}

namespace diag {
#define GSHARD_DIAG(code, severity, name, text, types) inline constexpr RuntimeDiag<void types> name{#code, text};
#include "runtime/diagnostics.def"
#undef GSHARD_DIAG
}  // namespace diag

}  // namespace gshard::runtime
