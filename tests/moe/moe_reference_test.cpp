// The sequential reference against golden vectors that were worked out elsewhere: moe.md 10.1, 10.2 and 10.4, cases.md
// T28.
#include <gtest/gtest.h>

#include "tests/moe/golden.h"
#include "tests/moe/reference.h"

namespace gshard::testing::moe {
namespace {

GroupRoutes<double> routed(const GoldenGroup& group, const Policy& policy, const std::vector<bool>& live = {},
                           const std::vector<float>& uniform = {}) {
  return routeGroup(group.gates(), group.S, group.E, policy, live, uniform);
}

void expectRoutes(const GroupRoutes<double>& found, int k, const std::vector<Route>& expected) {
  std::size_t next = 0;
  for (std::size_t r = 0; r < found.slot.size(); ++r) {
    if (found.slot[r] < 0) {
      EXPECT_EQ(found.weight[r], 0);
      continue;
    }
    ASSERT_LT(next, expected.size());
    const Route& want = expected[next++];
    EXPECT_EQ(static_cast<int>(r) / k, want.token);
    EXPECT_EQ(found.expert[r], want.expert) << "token " << want.token;
    EXPECT_EQ(found.slot[r], want.slot) << "token " << want.token;
    EXPECT_NEAR(found.weight[r], want.weight, 1e-6) << "token " << want.token;
  }
  EXPECT_EQ(next, expected.size());
}

using Ints = std::vector<int>;

TEST(MoeReference, GatingVector) {
  const std::vector<Route> all = {{0, 0, 0, .7310586}, {0, 1, 1, .2689414}, {1, 0, 1, .6224593}, {1, 2, 1, .3775407},
                                  {2, 1, 0, .8807971}, {3, 3, 1, .2689414}, {4, 2, 0, .7310586}, {6, 3, 0, .9088770}};
  Policy policy = {.capacity = 2, .rest = Rest::All};
  GroupRoutes<double> found = routed(kGating, policy);
  expectRoutes(found, 2, all);
  EXPECT_EQ(found.first, (Ints{5, 1, 1, 1}));
  EXPECT_EQ(found.count, (Ints{6, 6, 2, 2}));
  EXPECT_EQ(found.dropped, (Ints{4, 4, 0, 0}));
  EXPECT_NEAR(found.aux, .07850847, 1e-8);
  policy.balanced = true;
  EXPECT_NEAR(routed(kGating, policy).aux, 1.25613557, 1e-8);
  policy.normalise = Normalise::AfterDrop;
  std::vector<Route> after = all;
  for (const std::size_t alone : {4u, 5u, 6u, 7u}) after[alone].weight = 1;
  expectRoutes(routed(kGating, policy), 2, after);
}

TEST(MoeReference, GatingVectorByRandomAndThreshold) {
  const std::vector<Route> random = {
      {0, 0, 0, .7310586}, {1, 0, 1, .6224593}, {2, 1, 0, .8807971}, {4, 2, 0, .7310586}, {6, 3, 0, .9088770}};
  expectRoutes(routed(kGating, {.capacity = 2}, {}, kUniform), 2, random);
  const auto kept = [](const GroupRoutes<double>& found) {
    Ints tokens;
    for (std::size_t s = 0; s < 8; ++s) {
      if (found.slot[2 * s + 1] >= 0) tokens.push_back(static_cast<int>(s));
    }
    return tokens;
  };
  // With room for all, what the tests themselves keep.
  EXPECT_EQ(kept(routed(kGating, {.capacity = 8, .scale = 5.0}, {}, kUniform)), (Ints{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(kept(routed(kGating, {.capacity = 8, .rest = Rest::Threshold, .threshold = .3})), (Ints{1, 5, 7}));
  EXPECT_EQ(kept(routed(kGating, {.capacity = 8, .rest = Rest::None})), (Ints{}));
}

TEST(MoeReference, T28) {
  const std::vector<Route> routes[2] = {{{0, 0, 0, 0.731059},
                                         {0, 1, 1, 0.268941},
                                         {1, 0, 1, 0.731059},
                                         {3, 1, 0, 0.731059},
                                         {3, 2, 1, 0.268941},
                                         {4, 2, 0, 0.731059}},
                                        {{0, 1, 0, 0.731059},
                                         {0, 2, 1, 0.268941},
                                         {1, 1, 1, 0.731059},
                                         {3, 2, 0, 0.731059},
                                         {3, 0, 1, 0.268941},
                                         {4, 0, 0, 0.731059}}};
  const Ints first[2] = {{4, 1, 1, 0}, {1, 4, 1, 0}}, dropped[2] = {{3, 2, 1, 0}, {1, 3, 2, 0}};
  for (int g = 0; g < 2; ++g) {
    const GroupRoutes<double> found = routed(kT28[g], {.capacity = 2, .rest = Rest::All});
    expectRoutes(found, 2, routes[g]);
    EXPECT_EQ(found.first, first[g]);
    EXPECT_EQ(found.dropped, dropped[g]);
    EXPECT_NEAR(found.aux, 0.104076, 1e-6);
    EXPECT_NEAR(routed(kT28[g], {.capacity = 2, .rest = Rest::All, .balanced = true}).aux, 1.665222, 1e-6);
  }
}

TEST(MoeReference, T28OutputsPaddingAndRoom) {
  std::vector<double> x;
  for (int s = 0; s < 6; ++s) x.push_back(s + 1);
  const auto factors = [&](const Policy& policy, const std::vector<bool>& live = {}) {
    const GroupRoutes<double> found = routed(kT28[0], policy, live);
    std::vector<double> slots = dispatchGroup(x, 1, 4, policy, found);
    for (std::size_t i = 0; i < slots.size(); ++i)
      slots[i] *= static_cast<double>(i / static_cast<std::size_t>(policy.capacity)) + 1;
    std::vector<double> k = combineGroup(slots, 1, 6, policy, found);
    for (std::size_t s = 0; s < 6; ++s) k[s] /= x[s];
    return k;
  };
  const auto expectNear = [](const std::vector<double>& found, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
  };
  Policy policy = {.capacity = 2, .rest = Rest::All};
  expectNear(factors(policy), {1.268941, 0.731059, 0, 2.268941, 2.193176, 0});
  expectNear(factors(policy, {true, false, true, true, true, true}), {1.268941, 0, 0.731059, 2.268941, 2.193176, 0});
  policy.normalise = Normalise::AfterDrop;
  expectNear(factors(policy), {1.268941, 1, 0, 2.268941, 3, 0});
  expectNear(factors({.capacity = 6, .rest = Rest::All}), {1.268941, 1.268941, 1.268941, 2.268941, 2.462117, 1.537883});
}

// moe.md 10.2 C: nothing is dropped, so the order of placing shows in slots alone; weights and counts are those of any
// order.
TEST(MoeReference, NoDrops) {
  const std::vector<double> logits = {.95, .85, .90, .80, .70, .65, .75, .60, .50, .55, .45, .40, .35, .30, .25, .20};
  const GoldenGroup group = {4, 4, logits};
  const GroupRoutes<double> found =
      routed(group, {.capacity = 4, .rest = Rest::All, .normalise = Normalise::AfterDrop});
  EXPECT_EQ(found.expert, (Ints{0, 2, 2, 0, 1, 0, 0, 1}));
  EXPECT_EQ(found.count, (Ints{4, 2, 2, 0}));
  EXPECT_EQ(found.dropped, (Ints{0, 0, 0, 0}));
  const double a = .5124974, b = .4875026;
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(found.weight[i], i % 2 == 0 ? a : b, 1e-6);
}

// moe.md 10.4, the balance loss of Switch: its choices are given there, which are 0 three times and 1 twice. The loss
// knows only counts and means, so each column keeps its numbers, in an order in which the larger gate is the choice.
TEST(MoeReference, SwitchLoss) {
  const std::vector<double> gates = {.7678207, .7147456, .4275843, .2773057, .3549051,
                                     .2306160, .3298585, .6041991, .2509977, .4395366};
  const GroupRoutes<double> found = routeGroup(gates, 5, 2, {.k = 1, .capacity = 5, .balanced = true});
  EXPECT_EQ(found.first, (Ints{3, 2}));
  EXPECT_NEAR(found.aux, .8741045, 1e-6);
}

}  // namespace
}  // namespace gshard::testing::moe
