// Loading: the files of a program. Apart from elaboration, which may run twice (to learn how many devices integer
// splits ask for) while files are read and parsed once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sema/elaborate.h"
#include "sema/scope.h"

namespace gshard::sema {

// All files, with the names that they declare but nothing evaluated.
struct Program {
  std::vector<std::unique_ptr<FileUnit>> units;
  FileUnit* main = nullptr;
  FileUnit* prelude = nullptr;  // null when there is no stdlib
  std::vector<std::unique_ptr<ast::File>> layouts;
  bool hasErrors = false;  // reported, but elaboration can go on and find more
};

// Reports missing files, import cycles, names declared twice and what an imported file may not hold. False where files
// are missing or cannot be parsed: everything else that could be said would follow from that.
bool loadProgram(const ast::File& main, SourceManager& sources, const ElaborateOptions& options, DiagSink& sink,
                 Program& program);

}  // namespace gshard::sema
