// Recomputation (`@remat`): backward reads clones of forward ops instead of what they left in memory. A clone is the
// same op with a recompute id as an attribute that every op may carry, so that no pass takes it for the original; it
// stands where backward first needs it, and codegen runs nothing of it before what stands there.
#pragma once

#include <map>

#include "ir/module.h"

namespace gshard {

inline constexpr std::string_view kRecomputeId = "remat";
std::int64_t recomputeIdOf(const Op& op);  // 0: not recomputed
void setRecomputeId(Op& op, std::int64_t id);

// Which ops of a function belong to an expression whose values are recomputed: per op, a number from 1, or 0. May be
// shorter than the list of ops.
using RecomputedRegions = std::vector<std::int64_t>;

// For autodiff: moves what is read of a region over to clones.
class Recomputation {
 public:
  Recomputation(Function& function, const RecomputedRegions& regions);

  bool isNeeded() const { return !regions_.empty(); }
  // The ops from `firstNew` on were made for backward of an op of `region` (0: of none). What they read of regions
  // becomes clones, put before them. An op of one region reads the results of others as they were kept: so a region
  // starts from what it was given, and a chain of regions is not recomputed from its beginning.
  void redirect(std::size_t firstNew, std::int64_t region);
  std::int64_t regionOf(std::size_t op) const { return op < regions_.size() ? regions_[op] : 0; }

 private:
  ValueId clone(ValueId value, std::int64_t region);

  Function& function_;
  RecomputedRegions regions_;                // with what is only another name for one of their values
  std::vector<std::int64_t> definitions_;    // per value: the forward op that makes it, or -1
  std::map<std::uint32_t, ValueId> clones_;  // by value
  std::int64_t firstId_ = 0;                 // ids of an earlier gradient of the same function lie below
};

}  // namespace gshard
