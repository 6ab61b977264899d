// The cheapest set of edges of a directed graph whose removal leaves no path from its source to its sink (Dinic 1970).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace gshard {

class MinCut {
 public:
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 4;

  // Nodes are numbers; 0 is the source, 1 the sink.
  explicit MinCut(std::size_t nodes) : first_(nodes, -1) {}
  static constexpr std::int32_t kSource = 0, kSink = 1;

  void addEdge(std::int32_t from, std::int32_t to, std::int64_t capacity);
  // Of the cheapest cuts the one next to the sink: per node, whether it lies on the sink's side.
  std::vector<bool> sinkSide();

 private:
  struct Edge {
    std::int32_t to;
    std::int32_t next;  // of the same node; the edge back is `index ^ 1`
    std::int64_t capacity;
  };
  bool level();
  void augment();

  std::vector<Edge> edges_;
  std::vector<std::int32_t> first_, next_, level_;
};

}  // namespace gshard
