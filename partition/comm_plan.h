// The communication plan of an SPMD module: every collective with its exact bytes, reason and source range.
#pragma once

#include "ir/plan.h"
#include "partition/cost_model.h"

namespace gshard {

// On meshes of more than kPerDeviceLimit devices no list per device is kept: the maximum of a whole function is then
// the sum of the maxima of its collectives, which no device exceeds (each collective's own figures are exact on any
// mesh).
CommPlan makeCommPlan(const Module& module, const Platform& platform);
// --emit=comm-plan (builtins.md, "The plan as JSON"): entries and train functions, with the stages of one function
// joined.
std::string planJson(const Module& module, const CommPlan& plan, const SourceManager& sources);
// explain --plan: the same as text.
std::string planText(const Module& module, const CommPlan& plan, const SourceManager& sources);

// "38.79 KiB received by the busiest device"; "at most … by any device" where it is such a sum.
std::string receivedText(const Module& module, std::int64_t bytesMax);

}  // namespace gshard
