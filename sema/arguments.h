// Binding the arguments of a call to the parameters of a signature: the same for functions of the language, models,
// optimizers and builtins, with one set of messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sema/datum.h"
#include "support/diagnostics.h"

namespace gshard::sema {

struct CallArgument {
  std::string name;  // empty: positional
  SourceRange nameRange;
  SourceRange range;
  Datum value;
};

struct SignatureParameter {
  std::string name;
  bool required = false;
  bool variadic = false;  // takes all further positional arguments
};
struct Signature {
  std::string name;  // "sum", "Mlp.call"
  std::string text;  // "sum(x, axis: none, keepdims: false)"
  std::vector<SignatureParameter> parameters;
};

// Per parameter the indices of its arguments (several only when variadic), empty where it was left out. Reports
// surplus, unknown, repeated and missing arguments; parameters named in `filled` may be missing.
std::optional<std::vector<std::vector<std::size_t>>> bindArguments(const Signature& signature,
                                                                   const std::vector<CallArgument>& arguments,
                                                                   const std::vector<std::string>& filled,
                                                                   SourceRange callRange, DiagSink& sink);

}  // namespace gshard::sema
