// Dinic's algorithm: see min_cut.h. No recursion, since a path may be as long as the program.
#include "codegen/min_cut.h"

#include <algorithm>

namespace gshard {

void MinCut::addEdge(std::int32_t from, std::int32_t to, std::int64_t capacity) {
  const auto put = [&](std::int32_t a, std::int32_t b, std::int64_t amount) {
    edges_.push_back({b, first_[static_cast<std::size_t>(a)], amount});
    first_[static_cast<std::size_t>(a)] = static_cast<std::int32_t>(edges_.size()) - 1;
  };
  put(from, to, capacity);
  put(to, from, 0);
}

// Distances from the source; true if the sink can still be reached.
bool MinCut::level() {
  level_.assign(first_.size(), -1);
  level_[kSource] = 0;
  std::vector<std::int32_t> queue = {kSource};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const auto node = static_cast<std::size_t>(queue[i]);
    for (std::int32_t e = first_[node]; e >= 0; e = edges_[static_cast<std::size_t>(e)].next) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      if (edge.capacity == 0 || level_[static_cast<std::size_t>(edge.to)] >= 0) continue;
      level_[static_cast<std::size_t>(edge.to)] = level_[node] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[kSink] >= 0;
}

// Every shortest path is filled until none is left.
void MinCut::augment() {
  next_ = first_;
  std::vector<std::int32_t> path;  // edges
  std::int32_t node = kSource;
  for (;;) {
    if (node == kSink) {
      std::int64_t amount = kEndless;
      for (const std::int32_t e : path) amount = std::min(amount, edges_[static_cast<std::size_t>(e)].capacity);
      std::size_t keep = path.size();
      for (std::size_t i = path.size(); i-- > 0;) {
        const auto e = static_cast<std::size_t>(path[i]);
        edges_[e].capacity -= amount;
        edges_[e ^ 1].capacity += amount;
        if (edges_[e].capacity == 0) keep = i;
      }
      path.resize(keep);
      node = path.empty() ? kSource : edges_[static_cast<std::size_t>(path.back())].to;
      continue;
    }
    std::int32_t& e = next_[static_cast<std::size_t>(node)];
    while (e >= 0) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      if (edge.capacity > 0 && level_[static_cast<std::size_t>(edge.to)] == level_[static_cast<std::size_t>(node)] + 1)
        break;
      e = edge.next;
    }
    if (e >= 0) {
      path.push_back(e);
      node = edges_[static_cast<std::size_t>(e)].to;
      continue;
    }
    if (path.empty()) return;
    const auto back = static_cast<std::size_t>(path.back());
    path.pop_back();
    node = edges_[back ^ 1].to;
    next_[static_cast<std::size_t>(node)] = edges_[back].next;
  }
}

std::vector<bool> MinCut::sinkSide() {
  while (level()) augment();
  std::vector<bool> reaches(first_.size(), false);
  reaches[kSink] = true;
  std::vector<std::int32_t> queue = {kSink};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const auto node = static_cast<std::size_t>(queue[i]);
    for (std::int32_t e = first_[node]; e >= 0; e = edges_[static_cast<std::size_t>(e)].next) {
      const auto from = static_cast<std::size_t>(edges_[static_cast<std::size_t>(e)].to);
      if (reaches[from] || edges_[static_cast<std::size_t>(e) ^ 1].capacity == 0) continue;
      reaches[from] = true;
      queue.push_back(static_cast<std::int32_t>(from));
    }
  }
  return reaches;
}

}  // namespace gshard
