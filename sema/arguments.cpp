// Argument binding.
#include "sema/arguments.h"

#include <algorithm>

#include "sema/diagnostics.h"
#include "support/text.h"

namespace gshard::sema {

std::optional<std::vector<std::vector<std::size_t>>> bindArguments(const Signature& signature,
                                                                   const std::vector<CallArgument>& arguments,
                                                                   const std::vector<std::string>& filled,
                                                                   SourceRange callRange, DiagSink& sink) {
  std::vector<std::vector<std::size_t>> bound(signature.parameters.size());
  bool good = true;
  std::size_t next = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const CallArgument& argument = arguments[i];
    if (argument.name.empty()) {
      if (next >= signature.parameters.size()) {
        sink.emit(argument.range, diag::TooManyArguments, signature.name,
                  plural(static_cast<std::int64_t>(signature.parameters.size()), "argument"))
            .note("signature: `" + signature.text + "`");
        return std::nullopt;
      }
      bound[next].push_back(i);
      if (!signature.parameters[next].variadic) ++next;
      continue;
    }
    const auto found = std::find_if(signature.parameters.begin(), signature.parameters.end(),
                                    [&](const SignatureParameter& p) { return p.name == argument.name; });
    if (found == signature.parameters.end()) {
      std::vector<std::string> names;
      for (const SignatureParameter& p : signature.parameters) names.push_back(p.name);
      DiagBuilder builder = sink.emit(argument.nameRange, diag::UnknownArgument, signature.name, argument.name);
      builder.note("signature: `" + signature.text + "`");
      if (const std::optional<std::string> close = suggest(argument.name, names)) {
        builder.fix("did you mean `" + *close + "`?", false, {{argument.nameRange, *close}});
      }
      good = false;
      continue;
    }
    std::vector<std::size_t>& slot = bound[static_cast<std::size_t>(found - signature.parameters.begin())];
    if (!slot.empty()) {
      sink.emit(argument.nameRange, diag::ArgumentTwice, argument.name, signature.name)
          .label(arguments[slot.front()].range, "given here");
      good = false;
      continue;
    }
    slot.push_back(i);
  }
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const SignatureParameter& parameter = signature.parameters[i];
    if (!bound[i].empty() || !parameter.required) continue;
    if (std::find(filled.begin(), filled.end(), parameter.name) != filled.end()) continue;
    if (good) {
      sink.emit(callRange, diag::MissingArgument, signature.name, parameter.name)
          .note("signature: `" + signature.text + "`");
    }
    good = false;
  }
  if (!good) return std::nullopt;
  return bound;
}

}  // namespace gshard::sema
