// Mesh axes cut at every boundary that some references have, so that each piece lies in a reference as a whole or not
// at all: what "for each mesh axis separately" means when references are sub-axes.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/sharding.h"

namespace gshard {

class AxisPieces {
 public:
  void add(const AxisRef& ref);
  void add(const std::vector<AxisRef>& refs);
  // In order of axis, then from major to minor; never of size 1.
  std::vector<AxisRef> all() const;

 private:
  std::map<int, std::vector<std::int64_t>> cuts_;
};

bool covers(const std::vector<AxisRef>& axes, const AxisRef& piece);  // some reference overlaps the piece
std::optional<Reduction> partialOver(const Sharding& sharding, const AxisRef& piece);  // the one that pends over it

}  // namespace gshard
