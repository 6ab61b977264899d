// The stages of compiling, from a file to an SPMD module, its plan and an object: what every command is made of.
#pragma once

#include <optional>
#include <string>

#include "driver/session.h"
#include "frontend/ast.h"
#include "ir/plan.h"
#include "partition/cost_model.h"

namespace gshard {

// What stopped a run: the exit code to end with.
struct Stopped {
  int code;
};

struct Partitioned {
  std::string globalText, shardedText;  // kept when they are to be emitted
  Module module;                        // SPMD form
  CommPlan plan;
};

// Each reports to the session's sink and throws Stopped after showing what was reported.
std::unique_ptr<ast::File> parseInput(Session& session);
// Elaborated and simplified, before partitioning. `.ir` files are read as they are.
Module globalModule(Session& session);
Partitioned partitionedModule(Session& session);
const Platform& platformOf(Session& session);

// The object or text of an SPMD module.
struct BuildOutputs {
  std::string object, assembly, llvmIr;
};

BuildOutputs buildOutputs(Session& session, const Partitioned& partitioned);
// Object and executable at `path`.
void buildExecutable(Session& session, const Partitioned& partitioned, const std::string& path);

}  // namespace gshard
