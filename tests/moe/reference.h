// Algorithm 1 of the paper as it is written there: a loop over the tokens of one group, with the policies of `route`.
// It shares no code with the compiler or the runtime, so that they can be held to it. moe_reference_test.cpp holds it
// to golden vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard::testing::moe {

enum class Rest { Random, All, Threshold, None };
enum class Normalise { BeforeDrop, AfterDrop, Raw };

struct Policy {
  int k = 2;
  std::int64_t capacity = 1;
  Rest rest = Rest::Random;
  double scale = 2.0;
  double threshold = 0;
  Normalise normalise = Normalise::BeforeDrop;
  bool balanced = false;  // the auxiliary loss times E squared
};

// One group: S tokens, E experts. Choice j of token s lies at s * k + j.
template <class T>
struct GroupRoutes {
  std::vector<int> expert, slot;  // slot -1: dropped; the expert is kept
  std::vector<T> weight;          // 0 where dropped
  std::vector<int> first, count, dropped;
  T aux = 0;
};

// `gates` is S by E. `live`: empty, or false for padding. `uniform`: one per token, for Rest::Random.
template <class T>
GroupRoutes<T> routeGroup(const std::vector<T>& gates, std::size_t S, std::size_t E, const Policy& policy,
                          const std::vector<bool>& live = {}, const std::vector<float>& uniform = {});

// x is S by M, y of dispatch and x of combine are E by C by M.
template <class T>
std::vector<T> dispatchGroup(const std::vector<T>& x, std::size_t M, std::size_t E, const Policy& policy,
                             const GroupRoutes<T>& routes);
template <class T>
std::vector<T> combineGroup(const std::vector<T>& y, std::size_t M, std::size_t S, const Policy& policy,
                            const GroupRoutes<T>& routes);

}  // namespace gshard::testing::moe
