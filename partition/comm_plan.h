// The communication plan of an SPMD module: every collective with its exact bytes, reason and source range.
#pragma once

#include "ir/plan.h"
#include "partition/cost_model.h"

namespace gshard {

CommPlan makeCommPlan(const Module& module, const Platform& platform);
// --emit=comm-plan (builtins.md, "The plan as JSON"): entries and train functions, with the stages of one function
// joined.
std::string planJson(const Module& module, const CommPlan& plan, const SourceManager& sources);
// explain --plan: the same as text.
std::string planText(const Module& module, const CommPlan& plan, const SourceManager& sources);

}  // namespace gshard
