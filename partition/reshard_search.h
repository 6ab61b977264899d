// Costs of lists of collectives, and the search for the cheapest named one. Apart from reshard.cpp, which decides
// between it and an exchange.
#pragma once

#include "partition/reshard.h"

namespace gshard {

// Compared in this order: bytes of the busiest device, bytes of all, messages one after another.
struct ReshardCost {
  std::int64_t max = 0, total = 0, messages = 0;
  friend auto operator<=>(const ReshardCost&, const ReshardCost&) = default;
};
ReshardCost operator+(const ReshardCost& a, const ReshardCost& b);
ReshardCost costOf(const ReshardStep& step);
// Of an all_reduce: parts are exchanged with all, then gathered axis by axis, as a list of collectives could do it.
std::int64_t allReduceMessages(std::span<const AxisRef> axes);
ReshardCost costOf(const std::vector<ReshardStep>& steps);

// The cheapest list of named collectives and local slices; nothing when the axes' cuts form no chain, no list leads
// there, or more than 10,000 states were seen. Both shardings are canonical; what `from` alone pends on is completed in
// one step.
std::optional<std::vector<ReshardStep>> searchNamedSteps(const Mesh& mesh, const Type& type, const Sharding& from,
                                                         const Sharding& to);

}  // namespace gshard
