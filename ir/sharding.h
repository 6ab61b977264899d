// The sharding of a value: per dim the axes that split it (major first), and the axes over which it is partial.
// Axes in neither are replicated. Canonical: adjacent pieces joined, size 1 dropped, a piece at most once.
#pragma once

#include "ir/mesh.h"
#include "ir/type.h"
#include "support/source.h"

namespace gshard {

enum class Reduction : std::uint8_t { Sum, Prod, Max, Min, Any, All };
std::string_view reductionName(Reduction reduction);  // "sum"
std::optional<Reduction> reductionFromName(std::string_view name);

// The value is the reduction, over the devices along `axis`, of what they hold.
struct PartialAxis {
  AxisRef axis;
  Reduction reduction = Reduction::Sum;
  friend bool operator==(const PartialAxis&, const PartialAxis&) = default;
};

struct Sharding {
  std::vector<std::vector<AxisRef>> dims;
  std::vector<PartialAxis> partial;  // sorted by axis

  static Sharding replicated(std::int64_t rank);
  std::int64_t parts(std::int64_t dim) const { return productOf(dims[static_cast<std::size_t>(dim)]); }
  bool isReplicated() const;              // no split, nothing partial
  bool splits(const AxisRef& ref) const;  // some dim is split over a piece of it
  bool isPartialOver(const AxisRef& ref) const;
  Sharding withoutPartial() const;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

// Adjacent pieces of one axis joined, size 1 dropped: equal splits are then equal lists.
std::vector<AxisRef> joinedAxes(std::span<const AxisRef> axes);
Sharding canonical(const Mesh& mesh, Sharding sharding);
std::string printSharding(const Mesh& mesh, const Sharding& sharding);  // "{[data, _], sum: model}"
// As users see it: f32[16@y, 16, 16@(x,y)]{sum: model}
std::string printShardedType(const Mesh& mesh, const Type& type, const Sharding& sharding);
std::vector<std::int64_t> localShape(const Type& type, const Sharding& sharding);  // ceil shape of a tile
std::vector<Tile> tilesOf(const Mesh& mesh, const Type& type, const Sharding& sharding, std::int64_t device);
// An error text when `sharding` is not legal for `type` on `mesh`.
std::optional<std::string> checkSharding(const Mesh& mesh, const Type& type, const Sharding& sharding);

// What the source says about a tensor. `open`: dims without axes may still be split by inference.
struct Annotation {
  Sharding sharding;
  bool open = false;
  bool stored = false;  // parameters and states: how it is kept only
  SourceRange range;
  friend bool operator==(const Annotation& a, const Annotation& b) {
    return a.sharding == b.sharding && a.open == b.open && a.stored == b.stored;
  }
};

// Why one axis splits one dim of a value: an annotation (its range), or an op and the factor it came through.
struct SplitOrigin {
  std::int64_t dim = 0;
  AxisRef axis;
  SourceRange range;  // annotation or op
  std::string how;    // "fixed", "inferred from `matmul` through letter h"
};

}  // namespace gshard
