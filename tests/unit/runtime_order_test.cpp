// X5 of cases.md: devices that do not make the same calls in the same order are found, whichever call is left out and
// on whichever device, and every device can say where the lists part. Also what the watchdog says of a device that is
// late.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "runtime/local_transport.h"
#include "tests/unit/runtime_collective_check.h"

namespace gshard::runtime {
namespace {

// Passes everything on to a device's transport, but leaves out one of its collectives.
class DroppingTransport : public Transport {
 public:
  DroppingTransport(Transport& real, int dropped)
      : Transport(real.rank(), real.size()), real_(real), untilDropped_(dropped) {}
  const char* name() const override { return real_.name(); }
  std::byte* arena() override { return real_.arena(); }
  std::int64_t arenaBytes() const override { return real_.arenaBytes(); }
  int prepareMove(const MovePlan& plan) override { return real_.prepareMove(plan); }
  int prepareReduce(const ReducePlan& plan) override { return real_.prepareReduce(plan); }
  bool runMove(int handle) override { return untilDropped_-- == 0 || real_.runMove(handle); }
  bool runReduce(int handle) override { return untilDropped_-- == 0 || real_.runReduce(handle); }
  bool barrier() override { return real_.barrier(); }
  bool agree(const void* mine, int bytes, void* all) override { return real_.agree(mine, bytes, all); }
  bool collect(std::int64_t offset, std::int64_t length, std::vector<std::vector<std::byte>>& all) override {
    return real_.collect(offset, length, all);
  }
  void abort(int code, const std::string& message) override { real_.abort(code, message); }
  AbortNote abortNote() override { return real_.abortNote(); }
  void note(int label, std::int64_t step) override { real_.note(label, step); }
  std::string whereText() override { return real_.whereText(); }
  std::string firstDifference() override { return real_.firstDifference(); }
  std::int64_t placeStep() const override { return real_.placeStep(); }

 protected:
  int placeLabel() const override { return kStarting; }

 private:
  Transport& real_;
  int untilDropped_;
};

constexpr int kDevices = 4, kSteps = 5, kCalls = 3;
const std::vector<std::string> kLabels = {"all_reduce over x (plan 0, a.gsd:1:2)",
                                          "all_reduce over y (plan 1, a.gsd:3:4)",
                                          "all_gather over x, y (plan 2, a.gsd:5:6)"};

// Steps of a program on a mesh of 2 x 2: a sum over each axis, a gather over both, the agreement.
bool steps(Transport& transport) {
  const int me = transport.rank();
  const auto sum = [&](std::vector<int> group) {
    ReducePart part;
    part.source = part.target = collective_check::boxOf(0, {5}, {5});
    return transport.prepareReduce({std::move(group), {part}});
  };
  const int first = sum({me % 2, me % 2 + 2}), second = sum({me / 2 * 2, me / 2 * 2 + 1});
  MovePlan gather{{0, 1, 2, 3}, {}};
  for (int from = 0; from < kDevices; ++from) {
    gather.copies.push_back({from, collective_check::boxOf(0, {5}, {5}),
                             collective_check::boxOf(1024 + 64 * from, {5}, {5}), ElementType::F32});
  }
  const int third = transport.prepareMove(gather);
  for (int step = 0; step < kSteps; ++step) {
    transport.note(0, step);
    if (!transport.runReduce(first)) return false;
    transport.note(1, step);
    if (!transport.runReduce(second)) return false;
    transport.note(2, step);
    if (!transport.runMove(third)) return false;
    int mine = step, all[kDevices];
    if (!transport.agree(&mine, sizeof mine, all)) return false;
  }
  return true;
}

TEST(CallOrder, ACompleteRunHasNoDifference) {
  LocalWorld world(kDevices, collective_check::kArena);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kDevices; ++rank) {
    threads.emplace_back([&, rank] { EXPECT_TRUE(steps(world.device(rank))); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < kDevices; ++rank) EXPECT_EQ(world.device(rank).firstDifference(), "");
}

TEST(CallOrder, X5_ADroppedCallIsToldByEveryDevice) {
  for (int guilty = 0; guilty < kDevices; ++guilty) {
    for (int dropped = 0; dropped < kSteps * kCalls; ++dropped) {
      SCOPED_TRACE("device " + std::to_string(guilty) + ", call " + std::to_string(dropped));
      LocalWorld world(kDevices, collective_check::kArena);
      std::vector<int> passed(kDevices, 0);
      std::vector<std::thread> threads;
      for (int rank = 0; rank < kDevices; ++rank) {
        threads.emplace_back([&, rank] {
          world.device(rank).setLabels(kLabels);
          world.device(rank).setTimeout(5);
          DroppingTransport transport(world.device(rank), rank == guilty ? dropped : -1);
          passed[static_cast<std::size_t>(rank)] = steps(transport) ? 1 : 0;
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_NE(world.device(0).abortNote().code, 0);
      // Of the calls that all make: 3 collectives and an agreement per step.
      const std::string first =
          "call " + std::to_string(dropped / kCalls * (kCalls + 1) + dropped % kCalls + 1) + " is ";
      const std::string& left = kLabels[static_cast<std::size_t>(dropped % kCalls)];
      for (int rank = 0; rank < kDevices; ++rank) {
        EXPECT_EQ(passed[static_cast<std::size_t>(rank)], 0) << rank;
        const std::string text = world.device(rank).firstDifference();
        EXPECT_NE(text.find("device " + std::to_string(rank) + ": " + first), std::string::npos) << text;
        EXPECT_NE(text.find(left), std::string::npos) << text;
      }
    }
  }
}

TEST(CallOrder, ListsThatAreOnlyShorterAreEqual) {
  CallList all, behind;
  for (std::uint32_t call = 1; call <= 3 * kCallsKept; ++call) {
    all.labels[call % kCallsKept] = static_cast<std::int32_t>(call % 7);
    all.count = call;
    if (call == 2 * kCallsKept + 9) behind = all;
  }
  EXPECT_FALSE(firstDifference({all, behind, CallList{}}, 0));
  behind.labels[(2 * kCallsKept + 5) % kCallsKept] = 77;
  const auto found = firstDifference({all, behind, CallList{}}, 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->call, 2 * kCallsKept + 5);
  EXPECT_EQ(found->device, 0u);
  EXPECT_EQ(found->other, 1u);
}

}  // namespace
}  // namespace gshard::runtime
