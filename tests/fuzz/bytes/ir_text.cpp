// The text form of the IR: any bytes give a module or messages, and a module's text reads back as itself.
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/text.h"
#include "tests/fuzz/bytes/source_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gshard;
  const std::string text = fuzz::textOf(data, size);
  if (findInvalidUtf8(text)) return -1;  // driver/stages.cpp refuses it before the parser
  SourceManager sources;
  CollectingSink sink;
  const std::optional<Module> module = parseModule(sources.addFile("fuzz.ir", text), sources, sink);
  fuzz::renderAll(sink, sources);
  if (module.has_value() == sink.hasErrors()) fuzz::finding("a module and errors, or neither");
  if (!module) return 0;
  for (const Form form : {Form::Global, Form::Spmd}) static_cast<void>(verify(*module, form));
  const std::string printed = printModule(*module);
  CollectingSink again;
  const std::optional<Module> read = parseModule(sources.addFile("again.ir", printed), sources, again);
  if (!read) fuzz::finding("its own text is refused: " + again.diagnostics().front().message + "\n" + printed);
  if (printModule(*read) != printed) fuzz::finding("its own text reads back as another\n" + printed);
  return 0;
}
