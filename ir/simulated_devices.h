// Values on simulated devices: one tile per device, and the one way in which values change their tiles.
#pragma once

#include <span>

#include "ir/axis_pieces.h"
#include "ir/evaluator.h"

namespace gshard {

struct DeviceValue {
  Type type;  // global
  Sharding sharding;
  std::vector<std::int64_t> live;  // global live sizes: rows may be fewer than the dim
  std::vector<Tensor> tiles;       // per device, with tails
};

class SimulatedDevices {
 public:
  explicit SimulatedDevices(const Mesh& mesh) : mesh_(&mesh), count_(mesh.devices()) {}

  std::int64_t count() const { return count_; }
  // The tiles of one device, live sizes cut at the value's live rows.
  std::vector<Tile> tiles(const DeviceValue& value, std::int64_t device) const;
  // Every tile filled with what a tail holds.
  DeviceValue blank(Type type, Sharding sharding, std::vector<std::int64_t> live) const;
  // The same global value in the tiles of `to`; `to` has its type, sharding and blank tiles. Pending reductions that
  // `to` has no more are finished in rank order; new ones hold the value on part 0 and the identity elsewhere.
  // `received`, when given, gets the bytes that each device receives (design.md section 5).
  void redistribute(const DeviceValue& from, DeviceValue& to, std::vector<std::int64_t>* received = nullptr) const;
  Tensor assemble(const DeviceValue& value) const;
  DeviceValue distribute(const Tensor& global, Sharding sharding, std::vector<std::int64_t> live) const;
  // Devices that hold the same tile hold the same bits: a device that does not, if any.
  std::optional<std::int64_t> differingReplica(const DeviceValue& value) const;

 private:
  const Mesh* mesh_;
  std::int64_t count_;
};

}  // namespace gshard
