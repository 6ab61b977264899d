// Elaboration: a program that parses gives a module that verifies and whose text reads back, or messages.
#include "sema/elaborate.h"

#include <algorithm>

#include "frontend/parse.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "tests/fuzz/bytes/source_text.h"

// Loops are bounded, but a million statements take a sanitizer half a minute: `0..10000` and more is left out.
static bool hasLongRange(const std::string& text) {
  constexpr std::size_t kDigits = 5;
  for (std::size_t at = text.find(".."); at != std::string::npos; at = text.find("..", at + 1)) {
    const std::size_t first = text.find_first_not_of(" \n", at + 2);
    if (first == std::string::npos) return false;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", first), text.size());
    if (end - first >= kDigits) return true;
  }
  return false;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gshard;
  SourceManager sources;
  CollectingSink sink;
  const std::string source = fuzz::textOf(data, size);
  if (hasLongRange(source)) return -1;
  const auto file = parseFile(sources.addFile("fuzz.gsd", source), sources, sink);
  if (sink.hasErrors()) return -1;  // not kept: the parser has a target of its own
  ElaborateOptions options;
  options.stdlibPath = GSHARD_SOURCE_DIR "/stdlib";
  options.importPaths = {GSHARD_SOURCE_DIR "/examples"};
  const std::optional<Module> module = elaborate(*file, sources, options, sink);
  fuzz::renderAll(sink, sources);
  if (module.has_value() == sink.hasErrors()) fuzz::finding("a module and errors, or neither");
  if (!module) return 0;
  if (const auto fault = verify(*module, Form::Global)) fuzz::finding(*fault + "\n" + printModule(*module));
  const std::string text = printModule(*module);
  CollectingSink again;
  const std::optional<Module> read = parseModule(sources.addFile("fuzz.ir", text), sources, again);
  if (!read) fuzz::finding("its text is refused: " + again.diagnostics().front().message + "\n" + text);
  if (printModule(*read) != text) fuzz::finding("its text reads back as another\n" + text);
  return 0;
}
