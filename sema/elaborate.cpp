// The entrance: loads files, and elaborates once, or twice when integer splits decide the number of devices.
#include "sema/elaborate.h"

#include "sema/elaborator.h"

namespace gshard {

std::optional<Module> elaborate(const ast::File& main, SourceManager& sources, const ElaborateOptions& options,
                                DiagSink& sink) {
  sema::Program program;
  if (!sema::loadProgram(main, sources, options, sink, program)) return std::nullopt;
  // The first run has one device and counts what integer splits ask for; it is the result unless they ask for more.
  CollectingSink collected;
  sema::Elaborator first(program, sources, options, collected);
  std::optional<Module> module = first.run(std::nullopt);
  if (!first.meshKnown() && !options.devices && first.largestIntegerSplit() > 1) {
    module = sema::Elaborator(program, sources, options, sink).run(first.largestIntegerSplit());
    return program.hasErrors ? std::nullopt : std::move(module);
  }
  for (const Diagnostic& diagnostic : collected.diagnostics()) sink.report(diagnostic);
  return program.hasErrors ? std::nullopt : std::move(module);
}

}  // namespace gshard
