// Resharding: the shortest list of collectives between two shardings of one value. Pure, and apart from the rewriting
// that asks for it, so that all pairs on small meshes can be tested.
#pragma once

#include <functional>

#include "ir/module.h"

namespace gshard {

struct ReshardStep {
  OpKind kind = OpKind::Exchange;
  std::vector<AxisRef> axes;             // the group; empty for exchange
  std::int64_t dim = -1;                 // gather, scatter, slice: the dim; all_to_all: the dim that is split
  std::int64_t otherDim = -1;            // all_to_all: the dim that is joined
  Reduction reduction = Reduction::Sum;  // all_reduce, reduce_scatter
  Sharding to;                           // after the step
  std::int64_t bytesMax = 0;             // received by the busiest device, live elements
  std::int64_t bytesTotal = 0;           // by all devices
  std::int64_t messages = 0;             // latency steps: group size - 1 (all_reduce: twice that)
};

struct RejectedPlan {
  std::string what;  // "all_to_all over x, then y"
  std::int64_t bytesMax = 0, messages = 0;
  std::string reason;  // "more bytes"
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;
  std::int64_t bytesMax = 0, bytesTotal = 0;
  std::int64_t lowerBound = 0;  // of bytesMax: what the target tile holds and the device does not
  std::vector<RejectedPlan> rejected;
};

// `from` may be partial; `to` may be partial only where `from` is. Equal shardings give no steps.
ReshardPlan planReshard(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to);

// "all_to_all over x, then all_gather over y".
std::string describeSteps(const Mesh& mesh, const std::vector<ReshardStep>& steps);

// May minor parts of total size b be added to or removed from a dim that is cut into a parts, in place? True when the
// tile of every device after is inside its tile before (design.md section 5, uneven).
bool tilesNest(std::int64_t dim, std::int64_t a, std::int64_t b);

struct BytesReceived {
  std::int64_t max = 0, total = 0;
  std::vector<std::int64_t> perDevice;  // on meshes of at most kPerDeviceLimit devices
  std::int64_t looks = 0;               // devices that were looked at one by one: the work of counting an exchange
};
inline constexpr std::int64_t kPerDeviceLimit = 64;
// Calls receivedBy(device) for every device of a small mesh, else once per combination of coordinates of the axes that
// are `used` (one flag per mesh axis; the others hold copies that behave alike).
BytesReceived collectBytes(const Mesh& mesh, std::vector<bool> used,
                           const std::function<std::int64_t(std::int64_t)>& receivedBy);
// What devices receive when a value goes from one whole (not partial) sharding to another and every missing element
// comes once: all_gather, all_to_all, collective_permute, exchange.
BytesReceived bytesOfMove(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to);
// all_reduce over `axes` of a value whose tiles are those of `sharding`: of C elements device r owns c by the ceil rule
// and receives (n - 1) c + (C - c).
BytesReceived bytesOfAllReduce(const Mesh& mesh, const Type& type, const Sharding& sharding,
                               std::span<const AxisRef> axes);
// reduce_scatter to the tiles of `to`: (n - 1) times the own part.
BytesReceived bytesOfReduceScatter(const Mesh& mesh, const Type& type, const Sharding& to, std::int64_t groupSize);

// An `exchange` op, which may be a move (slice, pad, concat, reshape …) at the same time.
class OpView;
BytesReceived bytesOfExchange(const OpView& op);

}  // namespace gshard
