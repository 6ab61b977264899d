// DWARF by LLVM's builder; see debug_info.h.
#include "codegen/debug_info.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Module.h"

namespace gshard {

DebugInfo::DebugInfo(llvm::Module& module, const SourceManager& sources, FileId main, const std::string& producer)
    : module_(module), sources_(sources), main_(main), builder_(module) {
  module_.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  module_.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
  // No language of DWARF is ours; C is what debuggers expect least of.
  builder_.createCompileUnit(llvm::dwarf::DW_LANG_C99, file(main), producer, true, "", 0);
}

// Named as messages name it: relative to where the compiler was started.
llvm::DIFile* DebugInfo::file(FileId id) {
  return builder_.createFile(id.known() ? sources_.name(id) : std::string("<made by the compiler>"), ".");
}

void DebugInfo::begin(llvm::Function& function, const std::string& name, SourceRange range) {
  whole_ = range.known() ? range : SourceRange{main_, 0, 0};
  const unsigned line = whole_.known() ? sources_.lineNumber(whole_.file, whole_.begin) : 0;
  llvm::DISubroutineType* type = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
  current_ = builder_.createFunction(file(whole_.file), name, "", file(whole_.file), line, type, line,
                                     llvm::DINode::FlagPrototyped, llvm::DISubprogram::SPFlagDefinition);
  function.setSubprogram(current_);
}

llvm::DebugLoc DebugInfo::at(SourceRange range) {
  if (!range.known()) range = whole_;
  if (!range.known()) return llvm::DILocation::get(module_.getContext(), 0, 0, current_);
  const LineColumn place = sources_.lineColumn(range.file, range.begin);
  llvm::DILocalScope* scope = current_;
  if (range.file != whole_.file) scope = builder_.createLexicalBlockFile(current_, file(range.file));
  return llvm::DILocation::get(module_.getContext(), place.line, place.column, scope);
}

void DebugInfo::finish() {
  builder_.finalize();
}

}  // namespace gshard
