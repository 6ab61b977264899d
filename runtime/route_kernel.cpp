// gshard_rt_route: one group of tokens to experts, by GShard's algorithm 1 (ir/ops/route.cpp says the rules in plain
// steps; the tests compare bit by bit). Time goes with tokens x experts, memory is that of the result.
#include <algorithm>
#include <cstdint>

#include "runtime/abi.h"
#include "runtime/element_type.h"

namespace gshard::runtime {

namespace {

template <class Real>
struct Group {
  const Real* gates;            // [tokens, experts]
  const float* uniform;         // [tokens], or null
  const std::uint8_t* live;     // [tokens], or null
  std::int32_t *expert, *slot;  // [tokens, choices]
  Real* weight;
  std::int32_t* source;                   // [experts, capacity]
  std::int32_t *first, *count, *dropped;  // [experts]
  std::int64_t tokens, experts, choices, capacity, rest, normalise;
  Real limit;
};

// NaN is the largest.
template <class Real>
bool isMore(Real a, Real b) {
  return a > b || (a != a && b == b);
}

// The largest gates in order; of equals the lowest expert comes first.
template <class Real>
void choose(const Group<Real>& group, std::int64_t token) {
  const Real* gates = group.gates + token * group.experts;
  std::int32_t* best = group.expert + token * group.choices;
  std::int64_t found = 0;
  for (std::int64_t e = 0; e < group.experts; ++e) {
    if (found == group.choices && !isMore(gates[e], gates[best[found - 1]])) continue;
    std::int64_t at = found < group.choices ? found++ : found - 1;
    for (; at > 0 && isMore(gates[e], gates[best[at - 1]]); --at) best[at] = best[at - 1];
    best[at] = static_cast<std::int32_t>(e);
  }
}

template <class Real>
Real totalOf(const Group<Real>& group, std::int64_t token, bool keptOnly) {
  Real total = 0;
  for (std::int64_t j = token * group.choices; j < (token + 1) * group.choices; ++j) {
    if (!keptOnly || group.slot[j] >= 0) total += group.gates[token * group.experts + group.expert[j]];
  }
  return total;
}

template <class Real>
bool mayHave(const Group<Real>& group, std::int64_t token, std::int64_t choice) {
  if (choice == 0 || group.rest == GSHARD_RT_REST_ALL) return true;
  const Real total = totalOf(group, token, false);
  const std::int32_t expert = group.expert[token * group.choices + choice];
  const Real weight = total == 0 ? 0 : group.gates[token * group.experts + expert] / total;
  if (group.rest == GSHARD_RT_REST_THRESHOLD) return weight > group.limit;
  return group.limit * weight > static_cast<Real>(group.uniform[token]);
}

template <class Real>
void route(const Group<Real>& group) {
  std::fill_n(group.source, group.experts * group.capacity, -1);
  std::fill_n(group.slot, group.tokens * group.choices, -1);
  for (std::int32_t* each : {group.first, group.count, group.dropped}) std::fill_n(each, group.experts, 0);
  for (std::int64_t s = 0; s < group.tokens; ++s) choose(group, s);
  const std::int64_t tried = group.rest == GSHARD_RT_REST_NONE ? 1 : group.choices;
  for (std::int64_t j = 0; j < tried; ++j) {
    for (std::int64_t s = 0; s < group.tokens; ++s) {
      if (group.live != nullptr && group.live[s] == 0) continue;
      const std::int64_t choice = s * group.choices + j;
      const std::int32_t expert = group.expert[choice];
      const std::int32_t slot = group.count[expert]++;  // taken whether or not it is used
      if (j == 0) ++group.first[expert];
      if (slot < group.capacity && mayHave(group, s, j)) {
        group.slot[choice] = slot;
        group.source[expert * group.capacity + slot] = static_cast<std::int32_t>(choice);
      } else {
        ++group.dropped[expert];
      }
    }
  }
  for (std::int64_t s = 0; s < group.tokens; ++s) {
    const bool divides = group.normalise != GSHARD_RT_NORMALISE_NONE;
    const Real total = divides ? totalOf(group, s, group.normalise == GSHARD_RT_NORMALISE_AFTER_DROP) : 1;
    for (std::int64_t j = s * group.choices; j < (s + 1) * group.choices; ++j) {
      const Real gate = group.gates[s * group.experts + group.expert[j]];
      group.weight[j] = group.slot[j] < 0 || total == 0 ? 0 : divides ? gate / total : gate;
    }
  }
}

}  // namespace

}  // namespace gshard::runtime

extern "C" void gshard_rt_route(const void* gates, const void* uniform, const void* live, void* expert, void* slot,
                                void* weight, void* source, void* first, void* count, void* dropped, int64_t dtype,
                                int64_t tokens, int64_t experts, int64_t choices, int64_t capacity, int64_t rest,
                                int64_t normalise, double limit) {
  const auto run = [&]<class Real>(Real) {
    gshard::runtime::route<Real>({static_cast<const Real*>(gates), static_cast<const float*>(uniform),
                                  static_cast<const std::uint8_t*>(live), static_cast<std::int32_t*>(expert),
                                  static_cast<std::int32_t*>(slot), static_cast<Real*>(weight),
                                  static_cast<std::int32_t*>(source), static_cast<std::int32_t*>(first),
                                  static_cast<std::int32_t*>(count), static_cast<std::int32_t*>(dropped), tokens,
                                  experts, choices, capacity, rest, normalise, static_cast<Real>(limit)});
  };
  if (dtype == GSHARD_RT_F64)
    run(double{});
  else
    run(float{});
}
