// The text form of modules. parse(print(m)) == m, and printing is deterministic. Source ranges, reasons and origins are
// no part of it.
#pragma once

#include "ir/module.h"
#include "support/diagnostics.h"

namespace gshard {

// Grammar, by example (`//` comments; names that are no identifiers in quotes; defaults left out):
//   module digits
//   mesh [data: 2, model: 2] declared
//   param net.w: f32[64, 10] {[_, model]} trained @{[_, model]} open "doc"
//   state net.w.adam.m: f32[64, 10] of net.w
//   setting lr: f32 = 0.001
//   func @loss(%x: f32[64, 64] {[data, _]} row 0, %w: f32[64, 10] param net.w) -> f32 train rows 64 blocks 1 total 64 {
//     %p = contract "bi,ih->bh" %x, %w : f32[64, 10] {[data, model]} row 0
//     %g = neg %p : f32[64, 10] backward
//     return %p output "result.0", %q param net.w, %a accumulator 0 sum
//   }
// Attributes stand in braces after the operands; what the result type says (`shape` of reshape) is not repeated there.
std::string printModule(const Module& module);
std::string printFunction(const Module& module, const Function& function);
std::string printOp(const Module& module, const Function& function, const Op& op);
// Diagnoses E03xx with lines of the text and returns nothing on an error.
std::optional<Module> parseModule(FileId file, const SourceManager& sources, DiagSink& diag);

}  // namespace gshard
