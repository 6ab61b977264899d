// --mem-limit: functions whose planned peak is over it are errors before anything is emitted. The plan is exact, so a
// program that passes does not run out of memory.
#pragma once

#include "codegen/codegen.h"

namespace gshard {

// Bytes of one device while a function runs, at the moment when most is alive.
struct MemoryReport {
  std::string function;
  std::int64_t peakBytes = 0;  // highest arena byte that is touched
  std::int64_t parameters = 0, states = 0, accumulators = 0, inputs = 0, values = 0, workspace = 0;
  std::string peakLine;  // "digits_mlp.gsd:17:22"
  std::string peakOp;    // "contract `h`"
  SourceRange peakRange;
  // Parameters and states are alive throughout; of all that is alive at the peak, the largest first.
  struct Alive {
    std::string name, type;  // "net.w1", "f32[64@data, 256]"
    std::int64_t bytes = 0;
    SourceRange range;
    bool whole = false;  // on every device: a split would shrink it
  };
  std::vector<Alive> alive;
};

// One E0501 per such function, at the line of its peak, with the three largest values alive there. True if there was
// one.
bool exceedsMemory(const Module& module, const std::vector<MemoryReport>& reports, std::int64_t limit, DiagSink& diag);

}  // namespace gshard
