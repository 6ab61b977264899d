// The communication plan: what every collective of an SPMD module moves, as data. partition/comm_plan.cpp makes it,
// codegen puts it into the program (so that the binary can compare what it counted), the driver prints it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/module.h"

namespace gshard {

struct PlanEntry {
  std::int64_t function = 0, op = 0;  // indices into Module::functions and Function::ops
  std::string kind;                   // "all_reduce"
  std::string reduction;              // "sum"; empty for moves
  std::vector<std::string> axes;      // of the group, as users name them
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;            // tile that is moved; empty: a scalar; combined: all elements in one row
  std::int64_t count = 1;                     // calls per step (microbatches)
  std::int64_t bytesMax = 0, bytesTotal = 0;  // received per call: by the busiest device, by all
  std::vector<std::int64_t> perDevice;        // only where devices differ, at most 64 devices
  std::int64_t steps = 0;                     // messages one after another
  double microseconds = 0;                    // by the platform's latency and bandwidth
  std::vector<std::string> values;            // names of what is moved; several when combined
  SourceRange range;
  std::string reason;
  Phase phase = Phase::Forward;
};

struct PlanFunction {
  std::int64_t function = 0;
  std::vector<PlanEntry> collectives;
  std::int64_t bytesMax = 0,
               bytesTotal = 0;  // per call of the function; max: of the busiest device over the whole call
};

struct CommPlan {
  std::vector<PlanFunction> functions;  // all functions of the module, in order
};

}  // namespace gshard
