// Compiled programs against the sequential reference, on random gates: policies, sizes, device counts and both dtypes,
// each program with many groups, which are cases of their own. What must hold of any route is checked apart from the
// reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/moe/reference.h"
#include "tests/program/program.h"

namespace gshard::testing::moe {
namespace {

constexpr std::size_t kGroups = 60;
constexpr int kPrograms = 44;

struct Case {
  std::size_t S = 1, E = 1, M = 1;
  Policy policy;
  bool isDouble = false, isMasked = false;
  std::int64_t devices = 1;
  std::vector<double> gates, x, live, uniform, scale;  // of all groups; `scale` per expert
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits_() % n); }
  std::size_t from(std::size_t low, std::size_t high) { return low + below(high - low + 1); }
  double uniform() { return static_cast<double>(bits_() >> 40) * 0x1p-24; }
  bool chance(double p) { return uniform() < p; }

 private:
  std::mt19937_64 bits_;
};

// Scores of one group. Few different ones make ties; a loved expert overflows; one large score leaves its token no
// second choice to speak of.
void addGates(Case& item, Random& random) {
  const std::size_t kind = random.below(4), loved = random.below(item.E);
  for (std::size_t s = 0; s < item.S; ++s) {
    for (std::size_t e = 0; e < item.E; ++e) {
      double gate = kind == 0 ? static_cast<double>(random.from(1, 3)) / 8 : std::exp(4 * random.uniform() - 4);
      if (kind == 2 && e == loved) gate += 2;
      if (kind == 3 && random.chance(0.3)) gate *= 1e-6;
      item.gates.push_back(item.isDouble ? gate : static_cast<double>(static_cast<float>(gate)));
    }
  }
}

Case makeCase(std::uint64_t seed) {
  Random random(seed);
  Case item;
  item.S = seed % 11 == 0 ? 1 : random.from(2, 24);
  item.E = seed % 13 == 0 ? 1 : random.from(2, 7);
  item.M = random.from(1, 5);
  item.isDouble = random.chance(0.4);
  item.isMasked = random.chance(0.4);
  item.devices = static_cast<std::int64_t>(random.from(1, 4));
  Policy& policy = item.policy;
  policy.k = static_cast<int>(random.from(1, std::min<std::size_t>(item.E, 4)));
  policy.capacity = static_cast<std::int64_t>(random.chance(0.2) ? item.S + random.below(3) : random.from(1, item.S));
  policy.rest = static_cast<Rest>(seed % 4);
  policy.scale = random.chance(0.5) ? 2.0 : 1.25;
  policy.threshold = 0.2371;
  policy.normalise = static_cast<Normalise>(random.below(3));
  policy.balanced = random.chance(0.5);
  const bool isWide = item.isDouble;
  const auto rounded = [isWide](double value) {
    return isWide ? value : static_cast<double>(static_cast<float>(value));
  };
  for (std::size_t e = 0; e < item.E; ++e) item.scale.push_back(static_cast<double>(e + 1));
  for (std::size_t g = 0; g < kGroups; ++g) {
    addGates(item, random);
    const bool isEmpty = item.isMasked && random.chance(0.1);  // a group of padding alone
    for (std::size_t s = 0; s < item.S; ++s) {
      item.live.push_back(!item.isMasked || (!isEmpty && random.chance(0.8)) ? 1 : 0);
      item.uniform.push_back(random.uniform());
      for (std::size_t m = 0; m < item.M; ++m) item.x.push_back(rounded(random.uniform() + 0.5));
    }
  }
  return item;
}

std::string optionsOf(const Case& item) {
  const Policy& policy = item.policy;
  std::string text = "k: " + std::to_string(policy.k) + ", capacity: " + std::to_string(policy.capacity);
  switch (policy.rest) {
    case Rest::Random:
      text += ", scale: " + std::to_string(policy.scale) + ", uniform: u";
      break;
    case Rest::All:
      text += ", rest: \"all\"";
      break;
    case Rest::Threshold:
      text += ", rest: \"threshold\", threshold: " + std::to_string(policy.threshold);
      break;
    case Rest::None:
      text += ", rest: \"none\"";
      break;
  }
  if (policy.normalise == Normalise::AfterDrop) text += ", normalise: \"after_drop\"";
  if (policy.normalise == Normalise::Raw) text += ", normalise: \"none\"";
  if (policy.balanced) text += ", aux: \"balanced\"";
  if (item.isMasked) text += ", token_weight: live";
  return text;
}

std::string programOf(const Case& item) {
  const auto text = [](auto size) { return std::to_string(size); };
  const std::string type = item.isDouble ? "f64" : "f32", G = text(kGroups), S = text(item.S), E = text(item.E),
                    M = text(item.M), K = text(item.policy.k), C = text(item.policy.capacity);
  const auto of = [](const std::string& dtype, const std::vector<std::string>& sizes) {
    std::string shape = dtype + "[";
    for (std::size_t i = 0; i < sizes.size(); ++i) shape += (i == 0 ? "" : ", ") + sizes[i];
    return shape + "]";
  };
  const std::string choices = of("i32", {G, S, K}), perExpert = of("i32", {G, E});
  return "mesh [d: 2]\n"
         "entry fn t(gates: " +
         of(type, {G, S, E}) + " @split(0, d), x: " + of(type, {G, S, M}) +
         " @split(0, d), live: " + of("bool", {G, S}) + ", u: " + of("f32", {G, S}) + ", w: " + of(type, {E}) +
         " @split(0, d))\n    -> (" + choices + ", " + choices + ", " + of(type, {G, S, K}) + ", " + perExpert + ", " +
         perExpert + ", " + perExpert + ", " + type + ", " + of(type, {E, G, C, M}) + ", " + of(type, {G, S, M}) +
         ") {\n"
         "    let r = route(gates, " +
         optionsOf(item) +
         ")\n"
         "    let xe = moe_dispatch(x, r) @split(0, d)\n"
         "    let ye = xe * reshape(w, [" +
         E +
         ", 1, 1, 1]) @split(0, d)\n"
         "    return (r.expert, r.slot, r.weight, r.first, r.count, r.dropped, r.aux_loss, xe, moe_combine(ye, r))\n"
         "}\n";
}

template <class Element, class Source>
std::vector<Element> part(const std::vector<Source>& all, std::size_t group) {
  const std::size_t size = all.size() / kGroups;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(group * size);
  return std::vector<Element>(begin, begin + static_cast<std::ptrdiff_t>(size));
}

class MoeRandom : public ::testing::TestWithParam<int> {
 protected:
  std::map<std::string, Numbers> run(const Case& item) {
    const std::string source = scratch_.write("random.gsd", programOf(item));
    const Binary binary =
        compile(scratch_, source, "random", item.devices, {"-w", "--devices", std::to_string(item.devices)});
    const auto sizes = [](std::initializer_list<std::size_t> list) {
      return std::vector<std::int64_t>(list.begin(), list.end());
    };
    Words words = {"t", "-q", "--verify-plan", "-o", scratch_.file("out.npz")};
    const auto input = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                           const std::vector<double>& v) {
      words.insert(words.end(), {"--input", name + "=" + writeNumbers(scratch_.file(name + ".npy"), {shape, v})});
    };
    input("gates", sizes({kGroups, item.S, item.E}), item.gates);
    input("x", sizes({kGroups, item.S, item.M}), item.x);
    input("live", sizes({kGroups, item.S}), item.live);
    input("u", sizes({kGroups, item.S}), item.uniform);
    input("w", sizes({item.E}), item.scale);
    const Outcome outcome = binary(words);
    EXPECT_EQ(outcome.code, 0) << outcome.all() << programOf(item);
    return outcome.code == 0 ? numbersOf(scratch_.file("out.npz")) : std::map<std::string, Numbers>{};
  }
  Scratch scratch_;
};

// What holds of any route, whatever the policy.
void checkLaws(const Case& item, const std::vector<int>& expert, const std::vector<int>& slot) {
  const auto k = static_cast<std::size_t>(item.policy.k);
  std::vector<std::vector<std::int64_t>> holder(
      item.E, std::vector<std::int64_t>(static_cast<std::size_t>(item.policy.capacity), -1));
  for (std::size_t s = 0; s < item.S; ++s) {
    for (std::size_t j = 0; j < k; ++j) {
      const std::size_t r = s * k + j;
      ASSERT_GE(expert[r], 0);
      ASSERT_LT(static_cast<std::size_t>(expert[r]), item.E);
      for (std::size_t i = 0; i < j; ++i) ASSERT_NE(expert[s * k + i], expert[r]) << "an expert twice";
      if (slot[r] < 0) continue;
      ASSERT_LT(slot[r], item.policy.capacity) << "over capacity";
      std::int64_t& at = holder[static_cast<std::size_t>(expert[r])][static_cast<std::size_t>(slot[r])];
      ASSERT_EQ(at, -1) << "two tokens in one slot";
      at = static_cast<std::int64_t>(r);
    }
  }
  // Where a first choice was dropped, nobody but first choices has a slot of that expert.
  for (std::size_t e = 0; e < item.E; ++e) {
    const bool lost = std::any_of(holder[e].begin(), holder[e].end(),
                                  [&](std::int64_t r) { return r >= 0 && static_cast<std::size_t>(r) % k != 0; });
    for (std::size_t s = 0; lost && s < item.S; ++s) {
      const bool isLive = slot[s * k] >= 0;
      if (static_cast<std::size_t>(expert[s * k]) == e && !item.isMasked) {
        EXPECT_TRUE(isLive) << "displaced";
      }
    }
  }
}

template <class T>
void expectGroup(const Case& item, std::size_t g, const std::map<std::string, Numbers>& found, double& aux) {
  const std::vector<T> gates = part<T>(item.gates, g), x = part<T>(item.x, g);
  const std::vector<double> liveNumbers = part<double>(item.live, g);
  std::vector<bool> live(liveNumbers.begin(), liveNumbers.end());
  const Policy& policy = item.policy;
  const GroupRoutes<T> expected = routeGroup(gates, item.S, item.E, policy, live, part<float>(item.uniform, g));
  const auto ints = [&](const char* name) { return part<int>(found.at(name).values, g); };
  const std::vector<int> expert = ints("result.0"), slot = ints("result.1");
  ASSERT_EQ(expert, expected.expert);
  ASSERT_EQ(slot, expected.slot);
  EXPECT_EQ(ints("result.3"), expected.first);
  EXPECT_EQ(ints("result.4"), expected.count);
  EXPECT_EQ(ints("result.5"), expected.dropped);
  const std::vector<double> weight = part<double>(found.at("result.2").values, g);
  for (std::size_t r = 0; r < weight.size(); ++r) {
    if (slot[r] < 0) {
      EXPECT_EQ(weight[r], 0);
    }
    EXPECT_NEAR(weight[r], static_cast<double>(expected.weight[r]), 1e-6);
  }
  checkLaws(item, expert, slot);
  if (policy.capacity >= static_cast<std::int64_t>(item.S) && policy.rest == Rest::All) {
    EXPECT_EQ(expected.dropped, std::vector<int>(item.E, 0)) << "there is room for all";
  }
  // The tensor between the experts is [E, G, C, M].
  const auto C = static_cast<std::size_t>(policy.capacity);
  const std::vector<T> slots = dispatchGroup(x, item.M, item.E, policy, expected);
  const std::vector<double>& xe = found.at("result.7").values;
  std::vector<T> scaled = slots;
  for (std::size_t e = 0; e < item.E; ++e) {
    for (std::size_t i = 0; i < C * item.M; ++i) {
      EXPECT_EQ(xe[(e * kGroups + g) * C * item.M + i], static_cast<double>(slots[e * C * item.M + i]));
      scaled[e * C * item.M + i] *= static_cast<T>(item.scale[e]);
    }
  }
  const std::vector<T> mixed = combineGroup(scaled, item.M, item.S, policy, expected);
  const std::vector<double> y = part<double>(found.at("result.8").values, g);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], static_cast<double>(mixed[i]), 1e-5);
  aux += static_cast<double>(expected.aux) / kGroups;
}

TEST_P(MoeRandom, IsTheReference) {
  const Case item = makeCase(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE(programOf(item));
  const std::map<std::string, Numbers> found = run(item);
  if (found.empty()) return;
  double aux = 0;
  for (std::size_t g = 0; g < kGroups && !HasFailure(); ++g) {
    SCOPED_TRACE("group " + std::to_string(g));
    if (item.isDouble)
      expectGroup<double>(item, g, found, aux);
    else
      expectGroup<float>(item, g, found, aux);
  }
  EXPECT_NEAR(found.at("result.6").values[0], aux, 1e-5 * std::max(1.0, aux));
}

INSTANTIATE_TEST_SUITE_P(Seeds, MoeRandom, ::testing::Range(0, kPrograms));

}  // namespace
}  // namespace gshard::testing::moe
