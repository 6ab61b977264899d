// The loop over tokens; see reference.h. Comments name the steps of Algorithm 1.
#include "tests/moe/reference.h"

#include <cmath>

namespace gshard::testing::moe {
namespace {

// The largest score that is not taken yet; of equal ones the first; NaN is the largest.
template <class T>
std::size_t largest(const T* scores, const std::vector<bool>& taken) {
  std::size_t best = taken.size();
  for (std::size_t e = 0; e < taken.size(); ++e) {
    if (taken[e]) continue;
    if (best == taken.size() || (!std::isnan(scores[best]) && (std::isnan(scores[e]) || scores[e] > scores[best])))
      best = e;
  }
  return best;
}

template <class T>
bool isKept(const Policy& policy, T share, float uniform) {
  switch (policy.rest) {
    case Rest::All:
      return true;
    case Rest::Random:  // 6.5
      return static_cast<T>(policy.scale) * share > static_cast<T>(uniform);
    case Rest::Threshold:
      return share > static_cast<T>(policy.threshold);
    case Rest::None:
      return false;
  }
  return false;
}

}  // namespace

template <class T>
GroupRoutes<T> routeGroup(const std::vector<T>& gates, std::size_t S, std::size_t E, const Policy& policy,
                          const std::vector<bool>& live, const std::vector<float>& uniform) {
  const auto k = static_cast<std::size_t>(policy.k);
  GroupRoutes<T> routes;
  routes.expert.assign(S * k, 0);
  routes.slot.assign(S * k, -1);
  routes.weight.assign(S * k, 0);
  routes.first.assign(E, 0);
  routes.count.assign(E, 0);
  routes.dropped.assign(E, 0);
  const auto isLive = [&](std::size_t s) { return live.empty() || live[s]; };
  std::vector<T> gate(S * k), share(S * k);
  for (std::size_t s = 0; s < S; ++s) {
    std::vector<bool> taken(E, false);
    T sum = 0;
    for (std::size_t j = 0; j < k; ++j) {
      const std::size_t e = largest(&gates[s * E], taken);
      taken[e] = true;
      routes.expert[s * k + j] = static_cast<int>(e);
      gate[s * k + j] = gates[s * E + e];
      sum += gate[s * k + j];
    }
    for (std::size_t j = 0; j < k; ++j) share[s * k + j] = sum == 0 ? 0 : gate[s * k + j] / sum;  // 4.2, 6.2
  }
  for (std::size_t j = 0; j < k; ++j) {  // all first choices before all second ones
    if (j > 0 && policy.rest == Rest::None) break;
    for (std::size_t s = 0; s < S; ++s) {
      if (!isLive(s)) continue;
      const auto e = static_cast<std::size_t>(routes.expert[s * k + j]);
      const int counter = routes.count[e]++;  // 4.3 and 4.5, 6.4 and 6.6: whatever is kept
      if (j == 0) ++routes.first[e];
      const bool fits = counter < policy.capacity;
      if (fits && (j == 0 || isKept(policy, share[s * k + j], uniform.empty() ? 0 : uniform[s])))
        routes.slot[s * k + j] = counter;
      else
        ++routes.dropped[e];
    }
  }
  for (std::size_t s = 0; s < S; ++s) {
    T kept = 0;
    for (std::size_t j = 0; j < k; ++j) kept += routes.slot[s * k + j] >= 0 ? gate[s * k + j] : 0;
    for (std::size_t j = 0; j < k; ++j) {
      if (routes.slot[s * k + j] < 0) continue;
      const T raw = gate[s * k + j];
      routes.weight[s * k + j] = policy.normalise == Normalise::Raw         ? raw
                                 : policy.normalise == Normalise::AfterDrop ? (kept == 0 ? 0 : raw / kept)
                                                                            : share[s * k + j];
    }
  }
  std::size_t tokens = 0;
  for (std::size_t s = 0; s < S; ++s) tokens += isLive(s) ? 1 : 0;
  if (tokens == 0) return routes;
  for (std::size_t e = 0; e < E; ++e) {  // 3 and 5
    T mean = 0;
    for (std::size_t s = 0; s < S; ++s) mean += isLive(s) ? gates[s * E + e] : 0;
    mean /= static_cast<T>(tokens);
    routes.aux += static_cast<T>(routes.first[e]) / static_cast<T>(tokens) * mean;
  }
  routes.aux *= policy.balanced ? static_cast<T>(E) : 1 / static_cast<T>(E);
  return routes;
}

template <class T>
std::vector<T> dispatchGroup(const std::vector<T>& x, std::size_t M, std::size_t E, const Policy& policy,
                             const GroupRoutes<T>& routes) {
  const auto C = static_cast<std::size_t>(policy.capacity), k = static_cast<std::size_t>(policy.k);
  std::vector<T> y(E * C * M, 0);
  for (std::size_t r = 0; r < routes.slot.size(); ++r) {
    if (routes.slot[r] < 0) continue;
    const std::size_t row = static_cast<std::size_t>(routes.expert[r]) * C + static_cast<std::size_t>(routes.slot[r]);
    for (std::size_t m = 0; m < M; ++m) y[row * M + m] = x[r / k * M + m];
  }
  return y;
}

template <class T>
std::vector<T> combineGroup(const std::vector<T>& y, std::size_t M, std::size_t S, const Policy& policy,
                            const GroupRoutes<T>& routes) {
  const auto C = static_cast<std::size_t>(policy.capacity), k = static_cast<std::size_t>(policy.k);
  std::vector<T> x(S * M, 0);
  for (std::size_t r = 0; r < routes.slot.size(); ++r) {  // of a token, in the order of its choices
    if (routes.slot[r] < 0) continue;
    const std::size_t row = static_cast<std::size_t>(routes.expert[r]) * C + static_cast<std::size_t>(routes.slot[r]);
    for (std::size_t m = 0; m < M; ++m) x[r / k * M + m] += routes.weight[r] * y[row * M + m];
  }
  return x;
}

template GroupRoutes<float> routeGroup(const std::vector<float>&, std::size_t, std::size_t, const Policy&,
                                       const std::vector<bool>&, const std::vector<float>&);
template GroupRoutes<double> routeGroup(const std::vector<double>&, std::size_t, std::size_t, const Policy&,
                                        const std::vector<bool>&, const std::vector<float>&);
template std::vector<float> dispatchGroup(const std::vector<float>&, std::size_t, std::size_t, const Policy&,
                                          const GroupRoutes<float>&);
template std::vector<double> dispatchGroup(const std::vector<double>&, std::size_t, std::size_t, const Policy&,
                                           const GroupRoutes<double>&);
template std::vector<float> combineGroup(const std::vector<float>&, std::size_t, std::size_t, const Policy&,
                                         const GroupRoutes<float>&);
template std::vector<double> combineGroup(const std::vector<double>&, std::size_t, std::size_t, const Policy&,
                                          const GroupRoutes<double>&);

}  // namespace gshard::testing::moe
