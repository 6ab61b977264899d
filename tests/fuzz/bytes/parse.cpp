// Parser and formatter: any bytes give an AST or messages that can be shown, and what parses keeps its meaning when it
// is formatted.
#include "frontend/parse.h"

#include "tests/fuzz/bytes/source_text.h"
#include "tests/unit/format_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gshard;
  const std::string text = fuzz::textOf(data, size);
  SourceManager sources;
  CollectingSink sink;
  const auto file = parseFile(sources.addFile("fuzz.gsd", text), sources, sink);
  if (file == nullptr) fuzz::finding("no AST");
  printAst(*file);
  fuzz::renderAll(sink, sources);
  const test::FormatLaws laws = test::checkFormatLaws(text);
  if (!laws.broken.empty()) fuzz::finding(laws.broken);
  if (laws.parses == sink.hasErrors()) fuzz::finding("the formatter and the parser disagree about errors");
  return 0;
}
