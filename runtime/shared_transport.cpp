// Collectives over shared segments; see shared_transport.h.
#include "runtime/shared_transport.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/clock.h"
#include "runtime/failure.h"
#include "runtime/reduce_kernels.h"

namespace gshard::runtime {

SharedTransport::SharedTransport(int rank, std::vector<std::byte*> bases, std::int64_t arenaBytes, SharedHeader* header)
    : Transport(rank, static_cast<int>(bases.size())),
      bases_(std::move(bases)),
      arenaBytes_(arenaBytes),
      header_(header) {
  for (int device = 0; device < size(); ++device) everyone_.push_back(device);
  // Spinning steals the core that the awaited device needs when there are more devices than cores.
  spins_ = size() > static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) ? 50 : 3000;
}

int SharedTransport::prepareMove(const MovePlan& plan) {
  PreparedMove prepared{plan, receivedBytes(plan, rank())};
  for (BoxCopy& copy : prepared.plan.copies) coalesce(copy.source, copy.target);
  moves_.push_back(std::move(prepared));
  return static_cast<int>(moves_.size()) - 1;
}

int SharedTransport::prepareReduce(const ReducePlan& plan) {
  PreparedReduce prepared{plan, {}, receivedBytes(plan, rank())};
  const int members = static_cast<int>(plan.group.size());
  const int position = positionIn(plan.group, rank());
  for (const ReducePart& part : plan.parts) prepared.owned.push_back(ownedPart(part, position, members));
  reduces_.push_back(std::move(prepared));
  return static_cast<int>(reduces_.size()) - 1;
}

bool SharedTransport::runMove(int handle) {
  const PreparedMove& prepared = moves_[static_cast<std::size_t>(handle)];
  beginCall();
  if (!meet(prepared.plan.group)) return false;
  for (const BoxCopy& copy : prepared.plan.copies) {
    copyBox(copy.source, bases_[static_cast<std::size_t>(copy.from)], copy.target, arena(), elementBytes(copy.type));
  }
  countBytes(prepared.bytes);
  return meet(prepared.plan.group);
}

bool SharedTransport::runReduce(int handle) {
  const PreparedReduce& prepared = reduces_[static_cast<std::size_t>(handle)];
  beginCall();
  if (!meet(prepared.plan.group)) return false;
  for (std::size_t index = 0; index < prepared.owned.size(); ++index) reduceOwned(prepared, index);
  countBytes(prepared.bytes);
  return meet(prepared.plan.group);
}

void SharedTransport::reduceOwned(const PreparedReduce& prepared, std::size_t index) {
  const ReducePart& part = prepared.plan.parts[index];
  const OwnedPart& owned = prepared.owned[index];
  const std::vector<int>& group = prepared.plan.group;
  const std::int64_t size = elementBytes(part.type);
  alignas(64) std::byte block[16384];
  const std::int64_t blockLength = static_cast<std::int64_t>(sizeof block) / accumulatorBytes(part.type);
  const auto row = [&](std::int64_t from, std::int64_t to, std::int64_t length, std::int64_t fromStride,
                       std::int64_t toStride) {
    for (std::int64_t done = 0; done < length; done += blockLength) {
      const std::int64_t count = std::min(blockLength, length - done);
      const std::int64_t sourceAt = owned.source.offset + (from + done * fromStride) * size;
      const std::int64_t targetAt = owned.target.offset + (to + done * toStride) * size;
      loadAccumulator(part.type, block, bases_[static_cast<std::size_t>(group[0])] + sourceAt, fromStride, count);
      for (std::size_t member = 1; member < group.size(); ++member) {
        accumulate(part.type, part.reduction, block, bases_[static_cast<std::size_t>(group[member])] + sourceAt,
                   fromStride, count);
      }
      if (part.scatterDim >= 0) {
        storeAccumulator(part.type, block, arena() + targetAt, toStride, count);
        continue;
      }
      for (const int member : group) {
        storeAccumulator(part.type, block, bases_[static_cast<std::size_t>(member)] + targetAt, toStride, count);
      }
    }
  };
  forEachRow(owned.source, owned.target, owned.begin, owned.end, row);
}

bool SharedTransport::barrier() {
  note(kMeeting, header_->device(rank())->step.load(std::memory_order_relaxed));
  beginCall();
  return meet(everyone_);
}

void SharedTransport::beginCall() {
  DeviceFlags& own = *header_->device(rank());
  const std::int32_t label = own.label.load(std::memory_order_relaxed);
  ++calls_;
  own.calls[calls_ % kCallsKept].store(label, std::memory_order_relaxed);
  own.call.store(callWord(calls_, label), std::memory_order_relaxed);  // published by the sequence
}

// Every device runs the same sequence of collectives, so "how many I have entered" is comparable between any two of
// them and one number per device serves barriers of all groups.
bool SharedTransport::meet(const std::vector<int>& group) {
  DeviceFlags& own = *header_->device(rank());
  signalSequence(own, ++sequence_);
  bool begun = false;
  double start = 0;
  for (const int peer : group) {
    if (peer == rank()) continue;
    if (static_cast<std::int32_t>(header_->device(peer)->sequence.load(std::memory_order_acquire) - sequence_) < 0) {
      if (!begun) {
        begun = true;
        start = monotonicSeconds();
      }
      if (!waitFor(peer)) return false;
    }
    if (!callsAgree(peer)) return false;
  }
  if (begun) countWait(monotonicSeconds() - start);
  return header_->abortState.load(std::memory_order_relaxed) == 0;
}

bool SharedTransport::waitFor(int peer) {
  DeviceFlags& own = *header_->device(rank());
  DeviceFlags& other = *header_->device(peer);
  constexpr int kLookAroundMs = 20;
  const double start = monotonicSeconds();
  own.waiting.store(1, std::memory_order_relaxed);
  while (!awaitSequence(other, sequence_, spins_, kLookAroundMs)) {
    if (header_->abortState.load() != 0) return false;
    const double waited = monotonicSeconds() - start;
    if (!processAlive(other.pid.load(std::memory_order_relaxed))) {
      abort(kExitOtherDevice, diagText(diag::DeviceEnded, peer, rank(), label(own.label.load()), own.step.load()));
      return false;
    }
    if (timeoutSeconds() > 0 && waited > timeoutSeconds()) {
      abort(kExitOtherDevice, waitedText(own.label.load(), own.step.load(), waited) + whereText());
      return false;
    }
  }
  own.waiting.store(0, std::memory_order_relaxed);
  return true;
}

// A device that left out a call is found by the first that meets it: without this they would read each other's memory
// at the wrong time, and nobody would wait. Only equal numbers are compared, since after a barrier a device may be
// ahead.
bool SharedTransport::callsAgree(int peer) {
  DeviceFlags& own = *header_->device(rank());
  const std::uint64_t other = header_->device(peer)->call.load(std::memory_order_relaxed);
  const std::int32_t mine = own.label.load(std::memory_order_relaxed);
  if (other == callWord(calls_, mine) || static_cast<std::uint32_t>(other >> 32) != calls_) return true;
  abort(kExitBug, diagText(diag::CallsDiffer, own.step.load(), rank(), label(mine), peer,
                           label(static_cast<std::int32_t>(static_cast<std::uint32_t>(other)))) +
                      whereText());
  return false;
}

std::string SharedTransport::firstDifference() {
  std::vector<CallList> lists;
  for (int device = 0; device < size(); ++device) {
    const DeviceFlags& flags = *header_->device(device);
    CallList& list = lists.emplace_back();
    list.count = static_cast<std::uint32_t>(flags.call.load() >> 32);
    for (std::uint32_t i = 0; i < kCallsKept; ++i) list.labels[i] = flags.calls[i].load();
  }
  return differenceText(lists);
}

int SharedTransport::deadDevice() {
  for (int device = 0; device < size(); ++device) {
    DeviceFlags& flags = *header_->device(device);
    if (flags.ended.load() == 0 && !processAlive(flags.pid.load())) return device;
  }
  return -1;
}

std::string SharedTransport::whereText() {
  std::string text;
  for (int device = 0; device < size(); ++device) {
    DeviceFlags& flags = *header_->device(device);
    const bool hasEnded = flags.ended.load() != 0 || !processAlive(flags.pid.load());
    const char* state = hasEnded ? "ended   " : flags.waiting.load() != 0 ? "waits   " : "computes";
    text += "\n  device " + std::to_string(device) + "  " + state + "  " + label(flags.label.load()) + ", step " +
            std::to_string(flags.step.load());
  }
  return text;
}

bool SharedTransport::agree(const void* mine, int bytes, void* all) {
  const std::size_t length = static_cast<std::size_t>(bytes);
  std::memcpy(header_->device(rank())->slot, mine, length);
  note(kAgreeing, header_->device(rank())->step.load(std::memory_order_relaxed));
  beginCall();
  if (!meet(everyone_)) return false;
  for (int device = 0; device < size(); ++device) {
    std::memcpy(static_cast<std::byte*>(all) + static_cast<std::size_t>(device) * length, header_->device(device)->slot,
                length);
  }
  return meet(everyone_);
}

bool SharedTransport::collect(std::int64_t offset, std::int64_t length, std::vector<std::vector<std::byte>>& all) {
  all.clear();
  note(kCollecting, header_->device(rank())->step.load(std::memory_order_relaxed));
  beginCall();
  if (!meet(everyone_)) return false;
  if (rank() == 0) {
    for (const std::byte* base : bases_) all.emplace_back(base + offset, base + offset + length);
  }
  return meet(everyone_);
}

void SharedTransport::abort(int code, const std::string& message) {
  raiseAbort(*header_, code, rank(), message);
}

AbortNote SharedTransport::abortNote() {
  AbortNote note;
  // A message being written is complete within microseconds.
  while (header_->abortState.load() == 1) usleep(50);
  if (header_->abortState.load() != 2) return note;
  note.code = header_->abortCode;
  note.device = header_->abortDevice;
  note.message = header_->abortText;
  return note;
}

void SharedTransport::note(int label, std::int64_t step) {
  DeviceFlags& own = *header_->device(rank());
  own.label.store(label, std::memory_order_relaxed);
  own.step.store(step, std::memory_order_relaxed);
  if (label == kEnded) own.ended.store(1);
}

}  // namespace gshard::runtime
