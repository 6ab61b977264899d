// The entrance to sema: from the AST of a program to its global IR module. All that happens while compiling happens
// here: imports, constants, generics, models, unrolled loops, gradients, optimizers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/ast.h"
#include "ir/module.h"
#include "support/diagnostics.h"

namespace gshard {

struct ElaborateOptions {
  std::vector<std::pair<std::string, std::string>> defines;  // -D NAME=VALUE
  std::vector<std::string> importPaths;                      // -I and GSHARD_PATH, searched after the file's own folder
  std::string stdlibPath;
  std::optional<std::string> mesh;      // --mesh a=2,b=4
  std::optional<std::int64_t> devices;  // --devices
  std::vector<std::string> layouts;     // --layout files: they replace the source's annotations
  std::int64_t rows = 0;                // --rows: block of generic rows; 0: train's batch, or 64
};

/// Loads what `main` imports and elaborates it: parameters and states, `init`, for the trained entry NAME a train
/// function NAME and `NAME.eval`, and every other entry. Nothing on errors, which are reported to `sink` (E02xx, and
/// E01xx of imported files).
std::optional<Module> elaborate(const ast::File& main, SourceManager& sources, const ElaborateOptions& options,
                                DiagSink& sink);

}  // namespace gshard
