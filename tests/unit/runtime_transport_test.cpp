// The local transport: collectives on 1 to 5 threads with uneven and empty parts, element types, failure and watchdog.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "runtime/local_transport.h"
#include "runtime/reduce_kernels.h"
#include "tests/unit/runtime_collective_check.h"

namespace gshard::runtime {
namespace {

std::vector<std::string> onDevices(LocalWorld& world, const std::function<std::string(Transport&)>& body) {
  std::vector<std::string> results(static_cast<std::size_t>(world.size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.size(); ++rank) {
    threads.emplace_back([&, rank] { results[static_cast<std::size_t>(rank)] = body(world.device(rank)); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

class LocalCollectives : public testing::TestWithParam<int> {};

TEST_P(LocalCollectives, MatchTheReference) {
  LocalWorld world(GetParam(), collective_check::kArena);
  for (const std::string& result : onDevices(world, collective_check::checkAll)) EXPECT_EQ(result, "");
}

INSTANTIATE_TEST_SUITE_P(Devices, LocalCollectives, testing::Values(1, 2, 3, 4, 5));

TEST(LocalTransport, GroupsOfAMeshDoNotMix) {
  LocalWorld world(4, collective_check::kArena);
  const auto results = onDevices(world, [](Transport& transport) -> std::string {
    const int base = transport.rank() / 2 * 2;
    collective_check::floats(transport, 0)[0] = static_cast<float>(transport.rank() + 1);
    ReducePlan rows{{base, base + 1}, {}};
    ReducePart part;
    part.source = part.target = collective_check::boxOf(0, {1}, {1});
    rows.parts.push_back(part);
    ReducePlan columns{{transport.rank() % 2, transport.rank() % 2 + 2}, rows.parts};
    const int first = transport.prepareReduce(rows);
    const int second = transport.prepareReduce(columns);
    if (!transport.runReduce(first) || !transport.runReduce(second)) return "aborted";
    return collective_check::floats(transport, 0)[0] == 10.0f ? "" : "sum";
  });
  for (const std::string& result : results) EXPECT_EQ(result, "");
}

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
// Two devices write one element with no barrier between them: what the preset tsan is there to find.
TEST(LocalTransportDeathTest, ARaceIsReported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        LocalWorld world(2, 4096);
        float* element = collective_check::floats(world.device(0), 0);
        onDevices(world, [&](Transport& transport) -> std::string {
          *element = static_cast<float>(transport.rank());
          return "";
        });
        std::exit(0);
      },
      testing::ExitedWithCode(66), "data race");
}
#endif
#endif

TEST(LocalTransport, AnAbortEndsEveryWait) {
  LocalWorld world(3, 4096);
  const auto results = onDevices(world, [](Transport& transport) -> std::string {
    if (transport.rank() == 1) {
      transport.abort(4, "rows differ");
      return "";
    }
    return transport.barrier() ? "passed" : "";
  });
  for (const std::string& result : results) EXPECT_EQ(result, "");
  const AbortNote note = world.device(0).abortNote();
  EXPECT_EQ(note.code, 4);
  EXPECT_EQ(note.device, 1);
  EXPECT_EQ(note.message, "rows differ");
}

TEST(LocalTransport, TheWatchdogSaysWhoWaitsWhere) {
  LocalWorld world(2, 4096);
  const auto results = onDevices(world, [](Transport& transport) -> std::string {
    transport.setTimeout(0.1);
    transport.setLabels({"all_reduce over model, plan 0", "reduce (a.gsd:2:3)"});
    transport.note(transport.rank(), 212);
    if (transport.rank() == 1) return "";
    return transport.runReduce(transport.prepareReduce({{0, 1}, {}})) ? "passed" : "";
  });
  EXPECT_EQ(results[0], "");
  const AbortNote note = world.device(1).abortNote();
  EXPECT_EQ(note.code, 5);
  EXPECT_NE(note.message.find("step 212: device 0 has waited 0."), std::string::npos) << note.message;
  EXPECT_NE(note.message.find(" s in all_reduce over model, plan 0 [E0756]"), std::string::npos) << note.message;
  EXPECT_NE(note.message.find("device 1  computes  reduce (a.gsd:2:3), step 212"), std::string::npos);
}

template <class T>
T reduced(ElementType type, Reduction reduction, T a, T b) {
  accumulate(type, reduction, reinterpret_cast<std::byte*>(&a), reinterpret_cast<const std::byte*>(&b), 1, 1);
  return a;
}

TEST(ReduceKernels, MaximumAndMinimumAreIeee) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(reduced(ElementType::F32, Reduction::Max, nan, 1.0f)));
  EXPECT_TRUE(std::isnan(reduced(ElementType::F32, Reduction::Min, 1.0f, nan)));
  EXPECT_FALSE(std::signbit(reduced(ElementType::F32, Reduction::Max, -0.0f, 0.0f)));
  EXPECT_FALSE(std::signbit(reduced(ElementType::F32, Reduction::Max, 0.0f, -0.0f)));
  EXPECT_TRUE(std::signbit(reduced(ElementType::F32, Reduction::Min, 0.0f, -0.0f)));
  EXPECT_EQ(reduced(ElementType::F64, Reduction::Max, -3.0, -2.0), -2.0);
  EXPECT_EQ(reduced(ElementType::F64, Reduction::Min, -3.0, -2.0), -3.0);
}

TEST(ReduceKernels, IntegersWrapAndBooleansAreBytes) {
  EXPECT_EQ(reduced(ElementType::I32, Reduction::Sum, std::numeric_limits<std::int32_t>::max(), 1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(reduced<std::uint8_t>(ElementType::U8, Reduction::Sum, 250, 10), 4);
  EXPECT_EQ(reduced<std::int64_t>(ElementType::I64, Reduction::Prod, 1 << 30, 1 << 30), std::int64_t{1} << 60);
  EXPECT_EQ(reduced<std::uint8_t>(ElementType::Bool, Reduction::Any, 0, 1), 1);
  EXPECT_EQ(reduced<std::uint8_t>(ElementType::Bool, Reduction::All, 1, 0), 0);
}

TEST(ElementType, SixteenBitFloatsRoundToNearestEven) {
  EXPECT_EQ(floatToBfloat(1.0f), 0x3F80);
  EXPECT_EQ(floatToBfloat(1.00390625f), 0x3F80);  // halfway, to even
  EXPECT_EQ(floatToHalf(65504.0f), 0x7BFF);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(floatToHalf(0x1p-24f), 0x0001);
  EXPECT_EQ(floatToHalf(0x1p-25f), 0x0000);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint16_t half = static_cast<std::uint16_t>(bits);
    if ((half & 0x7C00) == 0x7C00 && (half & 0x3FF) != 0) continue;  // NaN bits are not promised
    ASSERT_EQ(floatToHalf(halfToFloat(half)), half);
    if ((half & 0x7F80) == 0x7F80 && (half & 0x7F) != 0) continue;
    ASSERT_EQ(floatToBfloat(bfloatToFloat(half)), half);
  }
}

}  // namespace
}  // namespace gshard::runtime
