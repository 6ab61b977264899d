// Transports: how devices exchange tiles. One interface, so that the executor does not know whether devices are
// threads or MPI ranks. A collective is prepared once (boxes, owners, byte counts) and then run any number of times
// without allocating.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/box.h"
#include "runtime/call_list.h"
#include "runtime/element_type.h"

namespace gshard::runtime {

// In the order of abi.h.
enum class Reduction : std::uint8_t { Sum, Prod, Max, Min, Any, All };

// One box read from device `from` and written on this device.
struct BoxCopy {
  int from = 0;
  Box source;  // in the arena of `from`
  Box target;  // in the own arena
  ElementType type = ElementType::F32;
};

// all_gather, all_to_all, collective_permute and exchange: what this device reads. `group` holds all who take part,
// in order, this device among them; copies from the device itself are not counted as bytes.
struct MovePlan {
  std::vector<int> group;
  std::vector<BoxCopy> copies;
};

// One value reduced over the group. `source` is the live box of the pending value, equal on all members.
// all_reduce (scatterDim < 0): the member at position p owns elements [p*c, (p+1)*c) of the live box in row-major
// order, c = ceil(count / n), reduces them in group order and copies them to every member's `target`, a box of equal
// extents; source and target may be the same buffer.
// reduce_scatter: the member at position p owns indices [p*chunk, (p+1)*chunk) of dim `scatterDim`; only its own
// `target` is written, and source and target must be disjoint.
struct ReducePart {
  Box source;
  Box target;
  ElementType type = ElementType::F32;
  Reduction reduction = Reduction::Sum;
  int scatterDim = -1;
  std::int64_t chunk = 0;
};

struct ReducePlan {
  std::vector<int> group;
  std::vector<ReducePart> parts;
};

struct AbortNote {
  int code = 0;     // exit code; 0: nothing happened
  int device = -1;  // who reported it
  std::string message;
};

class Transport {
 public:
  virtual ~Transport() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual const char* name() const = 0;  // "local" or "mpi"

  // The own arena; page aligned, zero at first.
  virtual std::byte* arena() = 0;
  virtual std::int64_t arenaBytes() const = 0;

  // Collective over all devices, in the same order on each. The handle is an index; plans stay valid for the
  // transport's life. Returns -1 after an abort.
  virtual int prepareMove(const MovePlan& plan) = 0;
  virtual int prepareReduce(const ReducePlan& plan) = 0;

  // False once any device has aborted or the watchdog expired; the caller then only unwinds.
  [[nodiscard]] virtual bool runMove(int handle) = 0;
  [[nodiscard]] virtual bool runReduce(int handle) = 0;
  [[nodiscard]] virtual bool barrier() = 0;

  // The runtime's own agreement, outside the plan and its byte counts: every device gives `bytes` (at most
  // kAgreeBytes) and receives those of all, by rank.
  static constexpr int kAgreeBytes = 96;
  [[nodiscard]] virtual bool agree(const void* mine, int bytes, void* all) = 0;

  // For results and checkpoints: rank 0 receives the bytes [offset, offset + length) of every arena, by rank; the
  // others receive nothing.
  [[nodiscard]] virtual bool collect(std::int64_t offset, std::int64_t length,
                                     std::vector<std::vector<std::byte>>& all) = 0;

  // The first abort wins; every waiting device leaves its wait soon after.
  virtual void abort(int code, const std::string& message) = 0;
  virtual AbortNote abortNote() = 0;

  // For the watchdog: what each label number means (equal on all devices), and where this device is.
  void setTimeout(double seconds) { timeoutSeconds_ = seconds; }
  void setLabels(std::vector<std::string> labels) { labels_ = std::move(labels); }
  virtual void note(int label, std::int64_t step) = 0;
  // What a device does between and after the steps of functions; negative, so that they are no labels of a program.
  static constexpr int kStarting = -1, kAgreeing = -2, kMeeting = -3, kCollecting = -4, kEnded = -5;

  // One line per device that can be seen from here: whether it waits, computes or has ended, where, and in which step.
  virtual std::string whereText() = 0;
  // All devices make the same calls in the same order. The first call in which this device's list differs from
  // another's, as far as the lists are remembered; "" when none does.
  virtual std::string firstDifference() = 0;
  // A device of this host whose process is gone, or -1.
  virtual int deadDevice() { return -1; }
  // Whether all devices share a host, and so its clock.
  virtual bool oneHost() const { return false; }
  // Where this device is, for handlers of crashes: allocates nothing.
  const char* placeText() const { return label(placeLabel()).c_str(); }
  virtual std::int64_t placeStep() const = 0;

  // Received bytes by the definition of design.md section 5, and seconds spent waiting and copying.
  std::int64_t bytesReceived() const { return bytesReceived_.load(std::memory_order_relaxed); }
  double waitSeconds() const { return waitSeconds_; }

 protected:
  virtual int placeLabel() const = 0;
  Transport(int rank, int size) : rank_(rank), size_(size) {}
  void countBytes(std::int64_t bytes) { bytesReceived_.fetch_add(bytes, std::memory_order_relaxed); }
  void countWait(double seconds) { waitSeconds_ += seconds; }
  double timeoutSeconds() const { return timeoutSeconds_; }
  const std::string& label(int index) const;
  // Of the watchdog, and of a call that differs: which device, where.
  std::string waitedText(int label, std::int64_t step, double seconds) const;
  // The first call in which the list of this device differs from another's; lists by rank.
  std::string differenceText(const std::vector<CallList>& lists) const;

 private:
  int rank_;
  int size_;
  std::atomic<std::int64_t> bytesReceived_{0};
  double waitSeconds_ = 0;
  double timeoutSeconds_ = 60;
  std::vector<std::string> labels_;
};

// Bytes this device receives in one run of the plan.
std::int64_t receivedBytes(const MovePlan& plan, int rank);
std::int64_t receivedBytes(const ReducePlan& plan, int rank);

// The part of `part.source` (and `part.target`) that the member at `position` of `members` owns.
struct OwnedPart {
  Box source;
  Box target;
  std::int64_t begin = 0;  // flat range of the boxes
  std::int64_t end = 0;
};
OwnedPart ownedPart(const ReducePart& part, int position, int members);

int positionIn(const std::vector<int>& group, int rank);

}  // namespace gshard::runtime
