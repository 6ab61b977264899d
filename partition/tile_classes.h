// How many devices have tiles of which sizes, without walking all devices: dims whose axes differ are independent, so
// each group of dims is walked over its own axes alone. The byte counts of large meshes rest on this.
#pragma once

#include "ir/sharding.h"

namespace gshard {

// Dims that share a mesh axis with each other, and the axes that they use; groups share none.
struct DimGroup {
  std::vector<std::size_t> dims;
  std::vector<bool> axes;  // by axis of the mesh
};
// Adds a dim that uses `axes`, joining the groups that it connects.
void addDim(std::vector<DimGroup>& groups, std::size_t dim, std::vector<bool> axes);

struct TileClass {
  std::int64_t wanted = 0;  // live elements of the tile after
  std::int64_t held = 0;    // of them, those that the tile before has
  std::int64_t devices = 0;
};

// Of all devices of the mesh, going from one split to another (pending reductions are ignored). Sorted, without
// repeats.
std::vector<TileClass> tileClasses(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to);

}  // namespace gshard
