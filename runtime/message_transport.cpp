// Collectives by MPI messages; see message_transport.h. Buffers are made when a plan is prepared, so that a step
// allocates nothing. One file, though long: packing, requests and reports of a late device are one class's.
#include "runtime/message_transport.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "runtime/failure.h"
#include "runtime/reduce_kernels.h"
#include "runtime/shared_flags.h"

namespace gshard::runtime {
namespace {

constexpr int kReportTag = 5;
constexpr int kTag = 7;
// Messages of a collective bear its label, so that devices in different collectives wait, and are told apart, instead
// of taking each other's data. 32767 is the largest tag that every MPI has.
constexpr int kLabelTags = 16384;

// What one device asks of another: a box to send, in the order in which the reader unpacks.
struct SendItem {
  Box box;
  ElementType type = ElementType::F32;
};

struct Peer {
  int rank = 0;
  std::vector<std::byte> buffer;
};

struct PreparedMove {
  MovePlan plan;
  std::vector<std::vector<SendItem>> sends;  // beside outgoing
  std::vector<Peer> outgoing;
  std::vector<Peer> incoming;
  std::vector<MPI_Request> requests;
  std::int64_t bytes = 0;
};

// Per part: packed contributions of all members for the own range, and packed results of all owners.
struct PreparedPart {
  std::vector<OwnedPart> owned;                       // by member
  std::vector<std::vector<std::byte>> contributions;  // by member, packed own range
  std::vector<std::vector<std::byte>> toOwner;        // by member, packed range of that member
  std::vector<std::vector<std::byte>> results;        // by member, packed reduced range
  std::vector<std::byte> accumulator;
};

struct PreparedReduce {
  ReducePlan plan;
  int position = -1;
  std::vector<PreparedPart> parts;
  std::vector<MPI_Request> requests;
  std::int64_t bytes = 0;
};

void packRange(const Box& box, std::int64_t begin, std::int64_t end, const std::byte* base, std::int64_t size,
               std::byte* out) {
  Box dense{0, box.extents, denseStrides(box.extents)};
  std::int64_t at = 0;
  forEachRow(box, dense, begin, end,
             [&](std::int64_t from, std::int64_t, std::int64_t length, std::int64_t stride, std::int64_t) {
               for (std::int64_t i = 0; i < (stride == 1 ? 1 : length); ++i) {
                 const std::int64_t count = stride == 1 ? length : 1;
                 std::memcpy(out + at * size, base + box.offset + (from + i * stride) * size,
                             static_cast<std::size_t>(count * size));
                 at += count;
               }
             });
}

void unpackRange(const Box& box, std::int64_t begin, std::int64_t end, std::byte* base, std::int64_t size,
                 const std::byte* in) {
  Box dense{0, box.extents, denseStrides(box.extents)};
  std::int64_t at = 0;
  forEachRow(box, dense, begin, end,
             [&](std::int64_t to, std::int64_t, std::int64_t length, std::int64_t stride, std::int64_t) {
               for (std::int64_t i = 0; i < (stride == 1 ? 1 : length); ++i) {
                 const std::int64_t count = stride == 1 ? length : 1;
                 std::memcpy(base + box.offset + (to + i * stride) * size, in + at * size,
                             static_cast<std::size_t>(count * size));
                 at += count;
               }
             });
}

// Where a rank lives: those of one host see each other's end.
struct Process {
  char host[96] = "";
  std::int32_t pid = 0;
};

// What is equal where process numbers mean the same: the run of the kernel and the namespace. Host names may be equal
// on different hosts.
void describeHost(char (&host)[96]) {
  ssize_t length = 0;
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    length = std::max<ssize_t>(read(file, host, 40), 0);
    close(file);
  }
  length += std::max<ssize_t>(readlink("/proc/self/ns/pid", host + length, 40), 0);
  host[length] = '\0';
}

// What a device tells the others when somebody has waited too long.
struct Report {
  std::int32_t known = 0, label = Transport::kStarting;
  std::int64_t step = 0;
  CallList calls;
};

class MessageTransport : public Transport {
 public:
  MessageTransport(int rank, int size, std::int64_t arenaBytes) : Transport(rank, size), arenaBytes_(arenaBytes) {
    mapped_ = static_cast<std::size_t>(arenaBytes > 0 ? arenaBytes : 1);
    void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw failure(kExitMemory, diag::ArenaUnavailable, arenaBytes, std::string("per device"));
    }
    arena_ = static_cast<std::byte*>(memory);
    Process own;
    own.pid = getpid();
    describeHost(own.host);
    processes_.resize(static_cast<std::size_t>(size));
    MPI_Allgather(&own, sizeof own, MPI_BYTE, processes_.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD);
  }
  ~MessageTransport() override { munmap(arena_, mapped_); }

  const char* name() const override { return "mpi"; }
  std::byte* arena() override { return arena_; }
  std::int64_t arenaBytes() const override { return arenaBytes_; }

  int prepareMove(const MovePlan& plan) override;
  int prepareReduce(const ReducePlan& plan) override;
  [[nodiscard]] bool runMove(int handle) override;
  [[nodiscard]] bool runReduce(int handle) override;

  [[nodiscard]] bool barrier() override {
    note(kMeeting, own_.step);
    beginCall();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    return waitAll(&request, 1);
  }
  [[nodiscard]] bool agree(const void* mine, int bytes, void* all) override {
    note(kAgreeing, own_.step);
    beginCall();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
    return waitAll(&request, 1);
  }
  [[nodiscard]] bool collect(std::int64_t offset, std::int64_t length,
                             std::vector<std::vector<std::byte>>& all) override;
  // Without shared memory nobody can be told: the launcher ends the others, with our status.
  void abort(int code, const std::string& message) override {
    const std::lock_guard<std::mutex> lock(noteMutex_);
    if (isAborted_.exchange(true)) return;
    note_ = AbortNote{code, rank(), message};
  }
  AbortNote abortNote() override {
    const std::lock_guard<std::mutex> lock(noteMutex_);
    return note_;
  }
  int deadDevice() override {
    const Process& own = processes_[static_cast<std::size_t>(rank())];
    for (int device = 0; device < size(); ++device) {
      const Process& process = processes_[static_cast<std::size_t>(device)];
      if (std::strcmp(process.host, own.host) == 0 && !processAlive(process.pid)) return device;
    }
    return -1;
  }
  void note(int label, std::int64_t step) override {
    own_.label = label;
    own_.step = step;
    placeLabel_.store(label, std::memory_order_relaxed);
    placeStep_.store(step, std::memory_order_relaxed);
  }
  std::int64_t placeStep() const override { return placeStep_.load(std::memory_order_relaxed); }
  std::string whereText() override;
  std::string firstDifference() override;

 protected:
  int placeLabel() const override { return placeLabel_.load(std::memory_order_relaxed); }

 private:
  int tag() const { return own_.label < 0 ? kTag : kTag + 1 + own_.label % kLabelTags; }
  void beginCall() { own_.calls.labels[++own_.calls.count % kCallsKept] = own_.label; }
  bool isCalled();
  void hearAll();
  bool shareWithAll(const std::vector<std::byte>& mine, std::vector<std::vector<std::byte>>& all);
  bool waitAll(MPI_Request* requests, int count);

  std::int64_t arenaBytes_;
  std::size_t mapped_ = 0;
  std::byte* arena_ = nullptr;
  std::vector<PreparedMove> moves_;
  std::vector<PreparedReduce> reduces_;
  std::vector<Process> processes_;  // by rank
  std::mutex noteMutex_;            // the monitor of a rank may abort, too
  std::atomic<bool> isAborted_{false};
  AbortNote note_;
  Report own_;
  std::atomic<int> placeLabel_{kStarting};  // own_'s, for other threads
  std::atomic<std::int64_t> placeStep_{0};
  std::vector<Report> heard_;  // of all devices, once somebody has waited too long
  std::atomic<bool> hasHeard_{false};
};

// Whether another device has sent its report: it has waited too long, or has heard of one that has.
bool MessageTransport::isCalled() {
  int found = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, kReportTag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  return found != 0;
}

// Sends the own report to all and takes theirs; who does not answer within a second computes, hangs or is gone.
void MessageTransport::hearAll() {
  if (!heard_.empty()) return;
  own_.known = 1;
  heard_.resize(static_cast<std::size_t>(size()));
  heard_[static_cast<std::size_t>(rank())] = own_;
  std::vector<MPI_Request> requests;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    MPI_Irecv(&heard_[static_cast<std::size_t>(peer)], sizeof(Report), MPI_BYTE, peer, kReportTag, MPI_COMM_WORLD,
              &requests.emplace_back());
    MPI_Isend(&own_, sizeof(Report), MPI_BYTE, peer, kReportTag, MPI_COMM_WORLD, &requests.emplace_back());
  }
  constexpr double kPatience = 1;
  int done = 0;
  for (const double start = MPI_Wtime(); done == 0 && MPI_Wtime() - start < kPatience; sched_yield()) {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
  }
  hasHeard_.store(true);
}

std::string MessageTransport::whereText() {
  const auto line = [&](int device, const std::string& place) {
    return "\n  device " + std::to_string(device) + "  " + place;
  };
  const auto place = [&](int where, std::int64_t step) { return label(where) + ", step " + std::to_string(step); };
  if (!hasHeard_.load()) return line(rank(), place(placeLabel(), placeStep()));
  std::string text;
  for (int device = 0; device < size(); ++device) {
    const Report& report = heard_[static_cast<std::size_t>(device)];
    text += line(device, report.known != 0 ? "waits  " + place(report.label, report.step) : "does not answer");
  }
  return text;
}

std::string MessageTransport::firstDifference() {
  std::vector<CallList> lists;
  for (const Report& report : heard_) lists.push_back(report.calls);  // empty: it has not answered
  return differenceText(lists);
}

bool MessageTransport::waitAll(MPI_Request* requests, int count) {
  const double start = MPI_Wtime();
  constexpr double kLookAfter = 0.05;
  while (true) {
    int done = 0;
    MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    if (done != 0) break;
    sched_yield();
    if (isAborted_.load(std::memory_order_relaxed)) return false;
    const double waited = MPI_Wtime() - start;
    if (timeoutSeconds() > 0 && (waited > timeoutSeconds() || (waited > kLookAfter && isCalled()))) {
      hearAll();
      abort(kExitOtherDevice, waitedText(own_.label, own_.step, waited) + whereText());
      return false;
    }
  }
  countWait(MPI_Wtime() - start);
  return !isAborted_.load(std::memory_order_relaxed);
}

bool MessageTransport::shareWithAll(const std::vector<std::byte>& mine, std::vector<std::vector<std::byte>>& all) {
  std::vector<long long> lengths(static_cast<std::size_t>(size()));
  const long long own = static_cast<long long>(mine.size());
  MPI_Allgather(&own, 1, MPI_LONG_LONG, lengths.data(), 1, MPI_LONG_LONG, MPI_COMM_WORLD);
  all.assign(static_cast<std::size_t>(size()), {});
  constexpr long long kPiece = 1 << 28;  // counts are ints
  for (int from = 0; from < size(); ++from) {
    std::vector<std::byte>& part = all[static_cast<std::size_t>(from)];
    part.resize(static_cast<std::size_t>(lengths[static_cast<std::size_t>(from)]));
    if (from == rank()) part = mine;
    for (long long at = 0; at < static_cast<long long>(part.size()); at += kPiece) {
      const long long count = std::min(kPiece, static_cast<long long>(part.size()) - at);
      MPI_Bcast(part.data() + at, static_cast<int>(count), MPI_BYTE, from, MPI_COMM_WORLD);
    }
  }
  return true;
}

bool MessageTransport::collect(std::int64_t offset, std::int64_t length, std::vector<std::vector<std::byte>>& all) {
  all.clear();
  note(kCollecting, own_.step);
  beginCall();
  constexpr std::int64_t kPiece = std::int64_t{1} << 28;  // counts are ints
  for (int from = 0; from < size(); ++from) {
    if (rank() == 0) all.emplace_back(static_cast<std::size_t>(length));
    for (std::int64_t at = 0; at < length; at += kPiece) {
      const int count = static_cast<int>(std::min(kPiece, length - at));
      if (rank() == 0 && from == 0)
        std::memcpy(all[0].data() + at, arena_ + offset + at, static_cast<std::size_t>(count));
      MPI_Request request = MPI_REQUEST_NULL;
      if (rank() == 0 && from != 0) {
        MPI_Irecv(all.back().data() + at, count, MPI_BYTE, from, kTag, MPI_COMM_WORLD, &request);
      } else if (rank() == from && from != 0) {
        MPI_Isend(arena_ + offset + at, count, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &request);
      }
      if (!waitAll(&request, 1)) return false;
    }
  }
  return true;
}

int MessageTransport::prepareMove(const MovePlan& plan) {
  PreparedMove prepared;
  prepared.plan = plan;
  prepared.bytes = receivedBytes(plan, rank());
  // Every device tells all what it reads; who is named as a source learns what to send. Once, at start-up.
  static_assert(std::is_trivially_copyable_v<BoxCopy>);
  std::vector<std::byte> mine(plan.copies.size() * sizeof(BoxCopy));
  if (!mine.empty()) std::memcpy(mine.data(), plan.copies.data(), mine.size());
  std::vector<std::vector<std::byte>> all;
  if (!shareWithAll(mine, all)) return -1;
  for (int reader = 0; reader < size(); ++reader) {
    if (reader == rank()) continue;
    std::vector<SendItem> items;
    std::int64_t bytes = 0;
    const std::vector<std::byte>& copies = all[static_cast<std::size_t>(reader)];
    for (std::size_t at = 0; at < copies.size(); at += sizeof(BoxCopy)) {
      BoxCopy copy;
      std::memcpy(&copy, copies.data() + at, sizeof copy);
      if (copy.from != rank()) continue;
      items.push_back({copy.source, copy.type});
      bytes += copy.source.extents.count() * elementBytes(copy.type);
    }
    if (bytes == 0) continue;
    prepared.sends.push_back(std::move(items));
    prepared.outgoing.push_back({reader, std::vector<std::byte>(static_cast<std::size_t>(bytes))});
  }
  for (int from = 0; from < size(); ++from) {
    if (from == rank()) continue;
    std::int64_t bytes = 0;
    for (const BoxCopy& copy : plan.copies) {
      if (copy.from == from) bytes += copy.target.extents.count() * elementBytes(copy.type);
    }
    if (bytes > 0) prepared.incoming.push_back({from, std::vector<std::byte>(static_cast<std::size_t>(bytes))});
  }
  prepared.requests.resize(prepared.outgoing.size() + prepared.incoming.size());
  moves_.push_back(std::move(prepared));
  return static_cast<int>(moves_.size()) - 1;
}

bool MessageTransport::runMove(int handle) {
  PreparedMove& prepared = moves_[static_cast<std::size_t>(handle)];
  MPI_Request* request = prepared.requests.data();
  beginCall();
  for (Peer& peer : prepared.incoming) {
    MPI_Irecv(peer.buffer.data(), static_cast<int>(peer.buffer.size()), MPI_BYTE, peer.rank, tag(), MPI_COMM_WORLD,
              request++);
  }
  for (std::size_t i = 0; i < prepared.outgoing.size(); ++i) {
    Peer& peer = prepared.outgoing[i];
    std::byte* out = peer.buffer.data();
    for (const SendItem& item : prepared.sends[i]) {
      packBox(item.box, arena_, out, elementBytes(item.type));
      out += item.box.extents.count() * elementBytes(item.type);
    }
    MPI_Isend(peer.buffer.data(), static_cast<int>(peer.buffer.size()), MPI_BYTE, peer.rank, tag(), MPI_COMM_WORLD,
              request++);
  }
  if (!waitAll(prepared.requests.data(), static_cast<int>(prepared.requests.size()))) return false;
  // All own boxes are packed by now, so a target may overlap what was sent.
  for (const BoxCopy& copy : prepared.plan.copies) {
    if (copy.from == rank()) copyBox(copy.source, arena_, copy.target, arena_, elementBytes(copy.type));
  }
  for (Peer& peer : prepared.incoming) {
    const std::byte* in = peer.buffer.data();
    for (const BoxCopy& copy : prepared.plan.copies) {
      if (copy.from != peer.rank) continue;
      unpackBox(copy.target, arena_, in, elementBytes(copy.type));
      in += copy.target.extents.count() * elementBytes(copy.type);
    }
  }
  countBytes(prepared.bytes);
  return true;
}

int MessageTransport::prepareReduce(const ReducePlan& plan) {
  PreparedReduce prepared;
  prepared.plan = plan;
  prepared.position = positionIn(plan.group, rank());
  prepared.bytes = receivedBytes(plan, rank());
  const int members = static_cast<int>(plan.group.size());
  for (const ReducePart& part : plan.parts) {
    PreparedPart buffers;
    const std::size_t size = static_cast<std::size_t>(elementBytes(part.type));
    for (int member = 0; member < members; ++member) buffers.owned.push_back(ownedPart(part, member, members));
    const OwnedPart& own = buffers.owned[static_cast<std::size_t>(prepared.position)];
    const std::size_t ownBytes = static_cast<std::size_t>(own.end - own.begin) * size;
    for (const OwnedPart& owned : buffers.owned) {
      const std::size_t bytes = static_cast<std::size_t>(owned.end - owned.begin) * size;
      buffers.contributions.emplace_back(ownBytes);
      buffers.toOwner.emplace_back(bytes);
      buffers.results.emplace_back(part.scatterDim < 0 ? bytes : std::size_t{0});
    }
    buffers.accumulator.resize(static_cast<std::size_t>((own.end - own.begin) * accumulatorBytes(part.type)));
    prepared.parts.push_back(std::move(buffers));
  }
  prepared.requests.resize(static_cast<std::size_t>(2 * (members - 1)) * plan.parts.size());
  reduces_.push_back(std::move(prepared));
  return static_cast<int>(reduces_.size()) - 1;
}

bool MessageTransport::runReduce(int handle) {
  PreparedReduce& prepared = reduces_[static_cast<std::size_t>(handle)];
  const std::vector<int>& group = prepared.plan.group;
  const std::size_t me = static_cast<std::size_t>(prepared.position);
  beginCall();
  int count = 0;
  const auto post = [&](std::vector<std::byte>& in, std::vector<std::byte>& out, int peer) {
    MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_BYTE, peer, tag(), MPI_COMM_WORLD,
              &prepared.requests[static_cast<std::size_t>(count++)]);
    MPI_Isend(out.data(), static_cast<int>(out.size()), MPI_BYTE, peer, tag(), MPI_COMM_WORLD,
              &prepared.requests[static_cast<std::size_t>(count++)]);
  };
  for (std::size_t index = 0; index < prepared.parts.size(); ++index) {
    const ReducePart& part = prepared.plan.parts[index];
    PreparedPart& buffers = prepared.parts[index];
    for (std::size_t member = 0; member < group.size(); ++member) {
      const OwnedPart& owned = buffers.owned[member];
      packRange(owned.source, owned.begin, owned.end, arena_, elementBytes(part.type), buffers.toOwner[member].data());
      if (member != me) post(buffers.contributions[member], buffers.toOwner[member], group[member]);
    }
  }
  if (!waitAll(prepared.requests.data(), count)) return false;
  count = 0;
  for (std::size_t index = 0; index < prepared.parts.size(); ++index) {
    const ReducePart& part = prepared.plan.parts[index];
    PreparedPart& buffers = prepared.parts[index];
    const OwnedPart& own = buffers.owned[me];
    const std::int64_t length = own.end - own.begin;
    buffers.contributions[me] = buffers.toOwner[me];  // equal sizes: no allocation
    loadAccumulator(part.type, buffers.accumulator.data(), buffers.contributions[0].data(), 1, length);
    for (std::size_t member = 1; member < group.size(); ++member) {
      accumulate(part.type, part.reduction, buffers.accumulator.data(), buffers.contributions[member].data(), 1,
                 length);
    }
    std::vector<std::byte>& result = part.scatterDim < 0 ? buffers.results[me] : buffers.contributions[me];
    storeAccumulator(part.type, buffers.accumulator.data(), result.data(), 1, length);
    unpackRange(own.target, own.begin, own.end, arena_, elementBytes(part.type), result.data());
    if (part.scatterDim >= 0) continue;
    for (std::size_t member = 0; member < group.size(); ++member) {
      if (member != me) post(buffers.results[member], result, group[member]);
    }
  }
  if (!waitAll(prepared.requests.data(), count)) return false;
  for (std::size_t index = 0; index < prepared.parts.size(); ++index) {
    const ReducePart& part = prepared.plan.parts[index];
    if (part.scatterDim >= 0) continue;
    PreparedPart& buffers = prepared.parts[index];
    for (std::size_t member = 0; member < group.size(); ++member) {
      const OwnedPart& owned = buffers.owned[member];
      if (member == me) continue;
      unpackRange(owned.target, owned.begin, owned.end, arena_, elementBytes(part.type),
                  buffers.results[member].data());
    }
  }
  countBytes(prepared.bytes);
  return true;
}

}  // namespace

std::unique_ptr<Transport> makeMessageTransport(int rank, int size, std::int64_t arenaBytes) {
  return std::make_unique<MessageTransport>(rank, size, arenaBytes);
}

}  // namespace gshard::runtime
