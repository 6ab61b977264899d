// The text form of modules. parse(print(m)) == m, and printing is deterministic. Source ranges, reasons and origins are
// no part of it.
#pragma once

#include "ir/module.h"
#include "support/diagnostics.h"

namespace gshard {

std::string printModule(const Module& module);
std::string printFunction(const Module& module, const Function& function);
std::string printOp(const Module& module, const Function& function, const Op& op);
// Diagnoses E03xx with lines of the text and returns nothing on an error.
std::optional<Module> parseModule(FileId file, const SourceManager& sources, DiagSink& diag);

}  // namespace gshard
