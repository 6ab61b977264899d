// Dijkstra over sharding states by (bytes of the busiest device, total bytes, messages), over the axis pieces that
// `from` and `to` cut (design.md section 5).
#include "partition/reshard_search.h"

#include <algorithm>
#include <map>
#include <set>

#include "support/check.h"

namespace gshard {

namespace {

constexpr std::size_t kMaxStates = 10000;

// A state: per dim the atomic pieces in order, and whether the pending reduction is still pending.
struct SearchState {
  std::vector<std::vector<int>> dims;
  bool pending = false;
  friend auto operator<=>(const SearchState&, const SearchState&) = default;
};

// The pieces into which `from` and `to` together cut the axes. Empty when their cuts do not form one chain of divisors.
std::optional<std::vector<AxisRef>> atomicPieces(const Mesh& mesh, const Sharding& from, const Sharding& to) {
  std::vector<std::set<std::int64_t>> cuts(mesh.axes.size());
  const auto cutAt = [&](const AxisRef& ref) {
    cuts[static_cast<std::size_t>(ref.axis)].insert(ref.pre);
    cuts[static_cast<std::size_t>(ref.axis)].insert(ref.pre * ref.size);
  };
  for (const Sharding* sharding : {&from, &to}) {
    for (const auto& dim : sharding->dims) std::for_each(dim.begin(), dim.end(), cutAt);
    for (const PartialAxis& partial : sharding->partial) cutAt(partial.axis);
  }
  std::vector<AxisRef> pieces;
  for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
    std::int64_t before = 0;
    for (const std::int64_t cut : cuts[axis]) {
      if (before != 0) {
        if (cut % before != 0) return std::nullopt;
        pieces.push_back({static_cast<int>(axis), before, cut / before});
      }
      before = cut;
    }
  }
  return pieces;
}

class Search {
 public:
  Search(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to, std::vector<AxisRef> pieces)
      : mesh_(mesh), type_(type), from_(from), to_(to), pieces_(std::move(pieces)) {
    for (const PartialAxis& partial : from_.partial) {
      if (std::find(to_.partial.begin(), to_.partial.end(), partial) == to_.partial.end()) pending_.push_back(partial);
    }
  }

  // The cheapest list, or nothing when the states run out.
  std::optional<std::vector<ReshardStep>> run();
  const std::vector<PartialAxis>& pending() const { return pending_; }
  SearchState stateOf(const Sharding& sharding, bool pending) const;
  Sharding shardingOf(const SearchState& state) const;

 private:
  using Edges = std::vector<std::pair<SearchState, ReshardStep>>;

  std::vector<AxisRef> refsOf(std::span<const int> pieces) const;
  std::int64_t product(std::span<const int> pieces) const;
  bool nests(std::size_t dim, const std::vector<int>& list, std::size_t minor) const;
  std::set<int> usedPieces(const SearchState& state) const;
  void add(Edges& edges, OpKind kind, const SearchState& before, SearchState after, std::span<const int> axes,
           std::int64_t dim, std::int64_t otherDim) const;
  void addReductions(const SearchState& state, Edges& edges) const;
  void addSlices(const SearchState& state, Edges& edges) const;
  void addGathersAndAllToAlls(const SearchState& state, Edges& edges) const;
  void addPermutes(const SearchState& state, Edges& edges) const;
  Edges edgesOf(const SearchState& state) const;

  const Mesh& mesh_;
  const Type& type_;
  const Sharding& from_;
  const Sharding& to_;
  std::vector<AxisRef> pieces_;
  std::vector<PartialAxis> pending_;
};

SearchState Search::stateOf(const Sharding& sharding, bool pending) const {
  SearchState state;
  state.pending = pending;
  for (const auto& dim : sharding.dims) {
    std::vector<int>& list = state.dims.emplace_back();
    for (const AxisRef& ref : dim) {
      for (std::size_t p = 0; p < pieces_.size(); ++p) {
        const AxisRef& piece = pieces_[p];
        if (piece.axis == ref.axis && piece.pre >= ref.pre && piece.pre * piece.size <= ref.pre * ref.size) {
          list.push_back(static_cast<int>(p));
        }
      }
    }
  }
  return state;
}

std::vector<AxisRef> Search::refsOf(std::span<const int> pieces) const {
  std::vector<AxisRef> refs;
  for (const int p : pieces) {
    const AxisRef& piece = pieces_[static_cast<std::size_t>(p)];
    if (!refs.empty() && refs.back().axis == piece.axis && refs.back().pre * refs.back().size == piece.pre) {
      refs.back().size *= piece.size;
    } else {
      refs.push_back(piece);
    }
  }
  return refs;
}

std::int64_t Search::product(std::span<const int> pieces) const {
  std::int64_t result = 1;
  for (const int p : pieces) result *= pieces_[static_cast<std::size_t>(p)].size;
  return result;
}

Sharding Search::shardingOf(const SearchState& state) const {
  Sharding sharding;
  for (const auto& dim : state.dims) sharding.dims.push_back(refsOf(dim));
  sharding.partial = to_.partial;
  if (state.pending) sharding.partial = from_.partial;
  return canonical(mesh_, sharding);
}

bool Search::nests(std::size_t dim, const std::vector<int>& list, std::size_t minor) const {
  const std::size_t major = list.size() - minor;
  return tilesNest(type_.shape[dim], product(std::span(list).first(major)), product(std::span(list).subspan(major)));
}

std::set<int> Search::usedPieces(const SearchState& state) const {
  std::set<int> used;
  for (const auto& dim : state.dims) used.insert(dim.begin(), dim.end());
  const auto mark = [&](const PartialAxis& partial) {
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      if (overlaps(pieces_[p], partial.axis)) used.insert(static_cast<int>(p));
    }
  };
  std::for_each(to_.partial.begin(), to_.partial.end(), mark);
  if (state.pending) std::for_each(pending_.begin(), pending_.end(), mark);
  return used;
}

void Search::add(Edges& edges, OpKind kind, const SearchState& before, SearchState after, std::span<const int> axes,
                 std::int64_t dim, std::int64_t otherDim) const {
  ReshardStep step;
  step.kind = kind;
  step.axes = refsOf(axes);
  step.dim = dim;
  step.otherDim = otherDim;
  step.to = shardingOf(after);
  if (kind != OpKind::AllSlice) {
    const BytesReceived bytes = bytesOfMove(mesh_, type_, shardingOf(before), step.to);
    step.bytesMax = bytes.max;
    step.bytesTotal = bytes.total;
    step.messages = kind == OpKind::CollectivePermute ? 1 : product(axes) - 1;
  }
  edges.emplace_back(std::move(after), std::move(step));
}

// While a reduction is pending the only moves are the ones that complete it, in one step over all its axes.
void Search::addReductions(const SearchState& state, Edges& edges) const {
  std::vector<AxisRef> axes;
  std::vector<int> pieces;
  for (const PartialAxis& partial : pending_) {
    axes.push_back(partial.axis);
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      if (overlaps(pieces_[p], partial.axis)) pieces.push_back(static_cast<int>(p));
    }
  }
  const std::int64_t n = productOf(axes);
  SearchState done = state;
  done.pending = false;

  ReshardStep all;
  all.kind = OpKind::AllReduce;
  all.axes = axes;
  all.reduction = pending_.front().reduction;
  all.to = shardingOf(done);
  const BytesReceived bytes = bytesOfAllReduce(mesh_, type_, shardingOf(state), axes);
  all.bytesMax = bytes.max;
  all.bytesTotal = bytes.total;
  all.messages = allReduceMessages(axes);
  edges.emplace_back(done, std::move(all));

  // The group's order in a reduce_scatter is the order of the pieces on the dim: `to` may want any, so try its own
  // order.
  const SearchState target = stateOf(to_, false);
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim) {
    std::vector<int> order;
    for (const int p : target.dims[dim]) {
      if (std::find(pieces.begin(), pieces.end(), p) != pieces.end()) order.push_back(p);
    }
    if (order.size() != pieces.size()) order = pieces;
    SearchState after = done;
    after.dims[dim].insert(after.dims[dim].end(), order.begin(), order.end());
    if (!nests(dim, after.dims[dim], order.size())) continue;
    ReshardStep scatter;
    scatter.kind = OpKind::ReduceScatter;
    scatter.axes = refsOf(order);
    scatter.dim = static_cast<std::int64_t>(dim);
    scatter.reduction = pending_.front().reduction;
    scatter.to = shardingOf(after);
    const BytesReceived received = bytesOfReduceScatter(mesh_, type_, scatter.to, n);
    scatter.bytesMax = received.max;
    scatter.bytesTotal = received.total;
    scatter.messages = n - 1;
    edges.emplace_back(std::move(after), std::move(scatter));
  }
}

// Only pieces that the target wants are worth slicing by: one at a time, or all that is missing at the end of a dim.
void Search::addSlices(const SearchState& state, Edges& edges) const {
  const std::set<int> used = usedPieces(state);
  const SearchState target = stateOf(to_, false);
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim) {
    for (const int p : target.dims[dim]) {
      if (used.contains(p)) continue;
      SearchState after = state;
      after.dims[dim].push_back(p);
      if (!nests(dim, after.dims[dim], 1)) continue;
      const int axes[] = {p};
      add(edges, OpKind::AllSlice, state, std::move(after), axes, static_cast<std::int64_t>(dim), -1);
    }
    const std::vector<int>& held = state.dims[dim];
    const std::vector<int>& wanted = target.dims[dim];
    if (wanted.size() < held.size() + 2 || !std::equal(held.begin(), held.end(), wanted.begin())) continue;
    const std::span<const int> missing = std::span(wanted).subspan(held.size());
    if (std::any_of(missing.begin(), missing.end(), [&](int p) { return used.contains(p); })) continue;
    SearchState after = state;
    after.dims[dim] = wanted;
    if (!nests(dim, wanted, missing.size())) continue;
    add(edges, OpKind::AllSlice, state, std::move(after), missing, static_cast<std::int64_t>(dim), -1);
  }
}

void Search::addGathersAndAllToAlls(const SearchState& state, Edges& edges) const {
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim) {
    for (std::size_t minor = 1; minor <= state.dims[dim].size(); ++minor) {
      if (!nests(dim, state.dims[dim], minor)) continue;
      const std::vector<int> moved(state.dims[dim].end() - static_cast<std::ptrdiff_t>(minor), state.dims[dim].end());
      SearchState without = state;
      without.dims[dim].resize(state.dims[dim].size() - minor);
      add(edges, OpKind::AllGather, state, without, moved, static_cast<std::int64_t>(dim), -1);
      for (std::size_t other = 0; other < state.dims.size(); ++other) {
        if (other == dim) continue;
        SearchState after = without;
        after.dims[other].insert(after.dims[other].end(), moved.begin(), moved.end());
        if (!nests(other, after.dims[other], minor)) continue;
        add(edges, OpKind::AllToAll, state, std::move(after), moved, static_cast<std::int64_t>(other),
            static_cast<std::int64_t>(dim));
      }
    }
  }
}

// A permute goes straight to the target when only the order or choice of axes differs, dim by dim of equal part counts.
void Search::addPermutes(const SearchState& state, Edges& edges) const {
  SearchState target = stateOf(to_, false);
  if (state.dims == target.dims) return;
  std::vector<int> axes;
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim) {
    if (product(state.dims[dim]) != product(target.dims[dim])) return;
    for (const auto& list : {state.dims[dim], target.dims[dim]}) {
      for (const int p : list) {
        if (std::find(axes.begin(), axes.end(), p) == axes.end()) axes.push_back(p);
      }
    }
  }
  add(edges, OpKind::CollectivePermute, state, std::move(target), axes, -1, -1);
}

Search::Edges Search::edgesOf(const SearchState& state) const {
  Edges edges;
  if (state.pending) {
    addReductions(state, edges);
    return edges;
  }
  addSlices(state, edges);
  addGathersAndAllToAlls(state, edges);
  addPermutes(state, edges);
  return edges;
}

std::optional<std::vector<ReshardStep>> Search::run() {
  struct Node {
    ReshardCost cost;
    std::optional<SearchState> before;
    ReshardStep step;
    bool settled = false;
  };
  const SearchState start = stateOf(from_, !pending_.empty());
  const SearchState goal = stateOf(to_, false);
  std::map<SearchState, Node> nodes;
  nodes[start] = {};
  std::set<std::pair<ReshardCost, SearchState>> open = {{ReshardCost{}, start}};
  while (!open.empty()) {
    const auto [cost, state] = *open.begin();
    open.erase(open.begin());
    nodes[state].settled = true;
    if (state == goal) {
      std::vector<ReshardStep> steps;
      for (SearchState at = state; nodes[at].before; at = *nodes[at].before) steps.push_back(nodes[at].step);
      std::reverse(steps.begin(), steps.end());
      return steps;
    }
    if (nodes.size() > kMaxStates) return std::nullopt;
    for (auto& [after, step] : edgesOf(state)) {
      // One message more for every step: of equal bytes the shorter list wins.
      const ReshardCost reached = cost + costOf(step) + ReshardCost{0, 0, 1};
      const auto known = nodes.find(after);
      if (known != nodes.end()) {
        if (known->second.settled || known->second.cost <= reached) continue;
        open.erase({known->second.cost, after});
      }
      nodes[after] = {reached, state, std::move(step), false};
      open.insert({reached, after});
    }
  }
  return std::nullopt;
}

}  // namespace

std::int64_t allReduceMessages(std::span<const AxisRef> axes) {
  std::int64_t n = 1, gathers = 0;
  for (const AxisRef& axis : axes) {
    n *= axis.size;
    gathers += axis.size - 1;
  }
  return n - 1 + gathers;
}

ReshardCost operator+(const ReshardCost& a, const ReshardCost& b) {
  return {a.max + b.max, a.total + b.total, a.messages + b.messages};
}

ReshardCost costOf(const ReshardStep& step) {
  return {step.bytesMax, step.bytesTotal, step.messages};
}

ReshardCost costOf(const std::vector<ReshardStep>& steps) {
  ReshardCost cost;
  for (const ReshardStep& step : steps) cost = cost + costOf(step);
  return cost;
}

std::optional<std::vector<ReshardStep>> searchNamedSteps(const Mesh& mesh, const Type& type, const Sharding& from,
                                                         const Sharding& to) {
  const auto pieces = atomicPieces(mesh, from, to);
  if (!pieces) return std::nullopt;
  return Search(mesh, type, from, to, *pieces).run();
}

}  // namespace gshard
