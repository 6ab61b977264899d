// The transport within a host: every device's arena is a segment that all can read, and offsets are equal everywhere,
// so a collective is a barrier, plain loads and stores, and a barrier (toolchain.md section 5). Serves threads of one
// process (`local`) and MPI ranks of one host; they differ only in how the segments come about.
#pragma once
#include <memory>
#include <vector>

#include "runtime/shared_flags.h"
#include "runtime/transport.h"

namespace gshard::runtime {

class SharedTransport : public Transport {
 public:
  std::byte* arena() override { return bases_[static_cast<std::size_t>(rank())]; }
  std::int64_t arenaBytes() const override { return arenaBytes_; }
  int prepareMove(const MovePlan& plan) override;
  int prepareReduce(const ReducePlan& plan) override;
  [[nodiscard]] bool runMove(int handle) override;
  [[nodiscard]] bool runReduce(int handle) override;
  [[nodiscard]] bool barrier() override;
  [[nodiscard]] bool agree(const void* mine, int bytes, void* all) override;
  [[nodiscard]] bool collect(std::int64_t offset, std::int64_t length,
                             std::vector<std::vector<std::byte>>& all) override;
  void abort(int code, const std::string& message) override;
  AbortNote abortNote() override;
  void note(int label, std::int64_t step) override;
  std::string whereText() override;
  std::string firstDifference() override;
  int deadDevice() override;
  bool oneHost() const override { return true; }
  std::int64_t placeStep() const override { return header_->device(rank())->step.load(std::memory_order_relaxed); }

 protected:
  int placeLabel() const override { return header_->device(rank())->label.load(std::memory_order_relaxed); }
  // `bases` by rank; `header` outlives the transport.
  SharedTransport(int rank, std::vector<std::byte*> bases, std::int64_t arenaBytes, SharedHeader* header);
  SharedHeader& header() { return *header_; }

 private:
  struct PreparedMove {
    MovePlan plan;
    std::int64_t bytes = 0;
  };
  struct PreparedReduce {
    ReducePlan plan;
    std::vector<OwnedPart> owned;
    std::int64_t bytes = 0;
  };

  void beginCall();
  bool meet(const std::vector<int>& group);
  bool waitFor(int peer);
  bool callsAgree(int peer);
  void reduceOwned(const PreparedReduce& prepared, std::size_t index);

  std::vector<std::byte*> bases_;
  std::int64_t arenaBytes_;
  SharedHeader* header_;
  std::vector<int> everyone_;
  std::vector<PreparedMove> moves_;
  std::vector<PreparedReduce> reduces_;
  std::uint32_t sequence_ = 0;
  std::uint32_t calls_ = 0;
  int spins_;
};

}  // namespace gshard::runtime
