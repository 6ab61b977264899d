// Line tables of -g: every kernel is a function of the .gsd source, at the line of the op that it is reported as;
// inside it each op has its own line. gdb then stops, steps and tells where a crash was in terms of the source.
#pragma once

#include <memory>
#include <string>

#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DebugLoc.h"
#include "support/source.h"

namespace gshard {

class DebugInfo {
 public:
  // `main`: the file that compile unit is named by.
  DebugInfo(llvm::Module& module, const SourceManager& sources, FileId main, const std::string& producer);

  // `function` is the code of what stands at `range`; places without one belong to the main file.
  void begin(llvm::Function& function, const std::string& name, SourceRange range);
  // A place inside the function that was begun last; an unknown range is that of the function.
  llvm::DebugLoc at(SourceRange range);
  // Before the module is used.
  void finish();

 private:
  llvm::DIFile* file(FileId id);

  llvm::Module& module_;
  const SourceManager& sources_;
  FileId main_;
  llvm::DIBuilder builder_;
  llvm::DISubprogram* current_ = nullptr;
  SourceRange whole_;
};

}  // namespace gshard
