// Tile sizes by classes of devices; see the header.
#include "partition/tile_classes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "partition/axis_list.h"

namespace gshard {

namespace {

using Sizes = std::pair<std::int64_t, std::int64_t>;  // wanted, held
using Histogram = std::map<Sizes, std::int64_t>;

std::vector<DimGroup> groupsOf(const Mesh& mesh, const Sharding& from, const Sharding& to) {
  std::vector<DimGroup> groups;
  for (std::size_t dim = 0; dim < from.dims.size(); ++dim) {
    std::vector<bool> axes(mesh.axes.size(), false);
    for (const AxisRef& ref : from.dims[dim]) axes[static_cast<std::size_t>(ref.axis)] = true;
    for (const AxisRef& ref : to.dims[dim]) axes[static_cast<std::size_t>(ref.axis)] = true;
    addDim(groups, dim, std::move(axes));
  }
  return groups;
}

std::int64_t indexOver(const Mesh& mesh, const std::vector<AxisRef>& axes,
                       const std::vector<std::int64_t>& coordinates) {
  std::int64_t index = 0;
  for (const AxisRef& ref : axes) {
    const auto axis = static_cast<std::size_t>(ref.axis);
    const std::int64_t minor = mesh.axes[axis].size / (ref.pre * ref.size);
    index = index * ref.size + coordinates[axis] / minor % ref.size;
  }
  return index;
}

// ---- without a walk. A tile's size asks one thing of its index: is it below the first part that is not full, that
// part, or behind it? Where one of a dim's two splits refines the other and tiles nest, what is held is the finer tile,
// so the sizes of a whole group follow from these answers. They are counted digit by digit of the device number.

struct IndexList {
  std::vector<std::size_t> digits;  // major first
  std::vector<std::int64_t> first;  // the digits of the first index whose part is not full; empty: all are full
  std::int64_t part = 0, rest = 0;  // size of a full part, and of that one
};

// Per list: no digit differed yet (kSame), else the most significant that did, and how.
constexpr std::int8_t kSame = -1;
using Answers = std::vector<std::int8_t>;

// The pieces into which all lists together cut the axes of the group, or nothing when their cuts form no chain.
std::optional<std::vector<AxisRef>> digitsOf(const Mesh& mesh, const Sharding& from, const Sharding& to,
                                             const DimGroup& group) {
  std::vector<AxisRef> digits;
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
    if (!group.axes[a]) continue;
    std::set<std::int64_t> cuts = {1, mesh.axes[a].size};
    for (const std::size_t dim : group.dims) {
      for (const auto* list : {&from.dims[dim], &to.dims[dim]}) {
        for (const AxisRef& ref : *list) {
          if (ref.axis == static_cast<int>(a)) cuts.insert({ref.pre, ref.pre * ref.size});
        }
      }
    }
    for (auto cut = cuts.begin(), next = std::next(cut); next != cuts.end(); ++cut, ++next) {
      if (*next % *cut != 0) return std::nullopt;
      digits.push_back({static_cast<int>(a), *cut, *next / *cut});
    }
  }
  return digits;
}

IndexList indexListOf(const std::vector<AxisRef>& digits, const AxisList& axes, std::int64_t size) {
  IndexList list;
  for (const AxisRef& ref : axes) {
    for (std::size_t d = 0; d < digits.size(); ++d) {
      if (digits[d].axis == ref.axis && digits[d].pre >= ref.pre && digits[d].pre < ref.pre * ref.size)
        list.digits.push_back(d);
    }
  }
  list.part = partSize(size, productOf(axes));
  std::int64_t index = list.part == 0 ? 0 : size / list.part;
  list.rest = size - index * list.part;
  if (index >= productOf(axes)) return list;
  list.first.resize(list.digits.size());
  for (std::size_t k = list.digits.size(); k-- > 0;) {
    list.first[k] = index % digits[list.digits[k]].size;
    index /= digits[list.digits[k]].size;
  }
  return list;
}

void addDigit(const std::vector<IndexList>& lists, std::size_t digit, std::int64_t value, Answers& answers) {
  for (std::size_t l = 0; l < lists.size(); ++l) {
    for (std::size_t k = 0; k < lists[l].first.size(); ++k) {
      if (lists[l].digits[k] != digit || value == lists[l].first[k]) continue;
      if (answers[l] != kSame && static_cast<std::size_t>(answers[l] / 2) < k) continue;
      answers[l] = static_cast<std::int8_t>(2 * k + (value > lists[l].first[k] ? 1 : 0));
    }
  }
}

std::map<Answers, std::int64_t> countAnswers(const std::vector<AxisRef>& digits, const std::vector<IndexList>& lists) {
  std::map<Answers, std::int64_t> counts = {{Answers(lists.size(), kSame), 1}};
  for (std::size_t d = 0; d < digits.size(); ++d) {
    std::set<std::int64_t> turns;  // values at which some answer changes
    for (const IndexList& list : lists) {
      for (std::size_t k = 0; k < list.first.size(); ++k) {
        if (list.digits[k] == d) turns.insert({list.first[k], list.first[k] + 1});
      }
    }
    std::map<Answers, std::int64_t> next;
    const auto add = [&](std::int64_t low, std::int64_t high) {
      if (low >= high) return;
      for (const auto& [before, count] : counts) {
        Answers after = before;
        addDigit(lists, d, low, after);
        next[after] += count * (high - low);
      }
    };
    std::int64_t low = 0;
    for (const std::int64_t turn : turns) {
      add(low, std::min(turn, digits[d].size));
      low = std::min(turn, digits[d].size);
    }
    add(low, digits[d].size);
    counts = std::move(next);
  }
  return counts;
}

std::int64_t liveOf(const IndexList& list, std::int8_t answer) {
  if (list.first.empty()) return list.part;  // also the list of a dim that is not split
  if (answer == kSame) return list.rest;
  return answer % 2 == 1 ? 0 : list.part;
}

std::optional<Histogram> histogramByDigits(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to,
                                           const DimGroup& group) {
  for (const std::size_t dim : group.dims) {
    const std::int64_t before = productOf(from.dims[dim]), after = productOf(to.dims[dim]);
    const std::int64_t fewer = std::min(before, after), more = std::max(before, after);
    if (!isPrefix(from.dims[dim], to.dims[dim]) && !isPrefix(to.dims[dim], from.dims[dim])) return std::nullopt;
    // (A dim in one part: everything is inside it.)
    if (fewer > 1 && more > fewer && more / fewer * partSize(type.shape[dim], more) != partSize(type.shape[dim], fewer))
      return std::nullopt;
  }
  const std::optional<std::vector<AxisRef>> digits = digitsOf(mesh, from, to, group);
  if (!digits) return std::nullopt;
  std::vector<IndexList> lists;  // per dim of the group: before, after
  for (const std::size_t dim : group.dims) {
    for (const Sharding* side : {&from, &to}) lists.push_back(indexListOf(*digits, side->dims[dim], type.shape[dim]));
  }
  Histogram histogram;
  for (const auto& [answers, count] : countAnswers(*digits, lists)) {
    Sizes sizes{1, 1};
    for (std::size_t g = 0; g < group.dims.size(); ++g) {
      const std::size_t dim = group.dims[g];
      const std::int64_t held = liveOf(lists[2 * g], answers[2 * g]);
      const std::int64_t wanted = liveOf(lists[2 * g + 1], answers[2 * g + 1]);
      sizes.first *= wanted;
      sizes.second *= productOf(from.dims[dim]) > productOf(to.dims[dim]) ? held : wanted;
    }
    histogram[sizes] += count;
  }
  return histogram;
}

// ---- fast path and fallback

// When every dim is cut evenly and one of its two splits refines the other, all devices are alike.
std::optional<Sizes> evenSizes(const Type& type, const Sharding& from, const Sharding& to, const DimGroup& group) {
  Sizes sizes{1, 1};
  for (const std::size_t dim : group.dims) {
    const std::int64_t before = productOf(from.dims[dim]), after = productOf(to.dims[dim]), size = type.shape[dim];
    if (size % before != 0 || size % after != 0) return std::nullopt;
    if (!isPrefix(from.dims[dim], to.dims[dim]) && !isPrefix(to.dims[dim], from.dims[dim])) return std::nullopt;
    sizes.first *= size / after;
    sizes.second *= size / std::max(before, after);
  }
  return sizes;
}

std::int64_t devicesOf(const Mesh& mesh, const DimGroup& group) {
  std::int64_t devices = 1;
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) devices *= group.axes[a] ? mesh.axes[a].size : 1;
  return devices;
}

Histogram histogramOf(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to,
                      const DimGroup& group) {
  if (const std::optional<Sizes> sizes = evenSizes(type, from, to, group)) return {{*sizes, devicesOf(mesh, group)}};
  if (std::optional<Histogram> histogram = histogramByDigits(mesh, type, from, to, group)) return *std::move(histogram);
  // Splits that cut across each other: over the group's own axes.
  Histogram histogram;
  std::vector<std::int64_t> coordinates(mesh.axes.size(), 0);
  for (bool more = true; more;) {
    Sizes sizes{1, 1};
    for (const std::size_t dim : group.dims) {
      const Tile before =
          tileOf(type.shape[dim], productOf(from.dims[dim]), indexOver(mesh, from.dims[dim], coordinates));
      const Tile after = tileOf(type.shape[dim], productOf(to.dims[dim]), indexOver(mesh, to.dims[dim], coordinates));
      const std::int64_t low = std::max(before.offset, after.offset);
      const std::int64_t high = std::min(before.offset + before.live, after.offset + after.live);
      sizes.first *= after.live;
      sizes.second *= std::max<std::int64_t>(0, high - low);
    }
    ++histogram[sizes];
    more = false;
    for (std::size_t a = mesh.axes.size(); a-- > 0 && !more;) {
      if (!group.axes[a]) continue;
      more = ++coordinates[a] < mesh.axes[a].size;
      if (!more) coordinates[a] = 0;
    }
  }
  return histogram;
}

}  // namespace

void addDim(std::vector<DimGroup>& groups, std::size_t dim, std::vector<bool> axes) {
  DimGroup group{{dim}, std::move(axes)};
  for (std::size_t g = 0; g < groups.size();) {
    bool shared = false;
    for (std::size_t a = 0; a < group.axes.size(); ++a) shared = shared || (group.axes[a] && groups[g].axes[a]);
    if (!shared) {
      ++g;
      continue;
    }
    group.dims.insert(group.dims.end(), groups[g].dims.begin(), groups[g].dims.end());
    for (std::size_t a = 0; a < group.axes.size(); ++a) group.axes[a] = group.axes[a] || groups[g].axes[a];
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(g));
  }
  groups.push_back(std::move(group));
}

std::vector<TileClass> tileClasses(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to) {
  Histogram all{{{1, 1}, 1}};
  std::vector<bool> used(mesh.axes.size(), false);
  for (const DimGroup& group : groupsOf(mesh, from, to)) {
    Histogram next;
    const Histogram own = histogramOf(mesh, type, from, to, group);
    for (const auto& [a, countA] : all) {
      for (const auto& [b, countB] : own) next[{a.first * b.first, a.second * b.second}] += countA * countB;
    }
    all = std::move(next);
    for (std::size_t a = 0; a < used.size(); ++a) used[a] = used[a] || group.axes[a];
  }
  std::int64_t copies = 1;
  for (std::size_t a = 0; a < used.size(); ++a) copies *= used[a] ? 1 : mesh.axes[a].size;
  std::vector<TileClass> result;
  for (const auto& [sizes, count] : all) result.push_back({sizes.first, sizes.second, count * copies});
  return result;
}

}  // namespace gshard
