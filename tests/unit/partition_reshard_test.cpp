// The reshard planner: every pair of shardings on small meshes, the cases collected from Shardy, and T26.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "partition/cost_model.h"
#include "partition/reshard.h"

namespace gshard {
namespace {

// All shardings of `rank` dims over the whole axes of `mesh`: every axis unused or appended to some dim, in every
// order.
void extend(const Mesh& mesh, Sharding sharding, std::vector<bool> used, std::vector<Sharding>& out) {
  out.push_back(sharding);
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (used[axis]) continue;
    used[axis] = true;
    for (auto& dim : sharding.dims) {
      dim.push_back(wholeAxis(mesh, static_cast<int>(axis)));
      extend(mesh, sharding, used, out);
      dim.pop_back();
    }
    used[axis] = false;
  }
}

std::vector<Sharding> allShardings(const Mesh& mesh, std::int64_t rank) {
  std::vector<Sharding> found, unique;
  extend(mesh, Sharding::replicated(rank), std::vector<bool>(mesh.axes.size(), false), found);
  for (Sharding& sharding : found) {
    if (std::find(unique.begin(), unique.end(), sharding) == unique.end()) unique.push_back(std::move(sharding));
  }
  return unique;
}

void checkPlan(const Mesh& mesh, const Type& type, const Sharding& from, const Sharding& to) {
  const ReshardPlan plan = planReshard(mesh, type, from, to);
  SCOPED_TRACE(printShardedType(mesh, type, from) + " to " + printShardedType(mesh, type, to));
  if (canonical(mesh, from) == canonical(mesh, to)) {
    EXPECT_TRUE(plan.steps.empty());
    return;
  }
  ASSERT_FALSE(plan.steps.empty());
  EXPECT_EQ(plan.steps.back().to, canonical(mesh, to));
  EXPECT_EQ(plan.bytesMax, plan.lowerBound);
  std::int64_t total = 0;
  for (const ReshardStep& step : plan.steps) total += step.bytesTotal;
  EXPECT_EQ(total, plan.bytesTotal);
  for (const ReshardStep& step : plan.steps) EXPECT_FALSE(checkSharding(mesh, type, step.to));
}

TEST(Reshard, EveryPairOnSmallMeshesMeetsTheLowerBound) {
  const Mesh meshes[] = {
      {{{"x", 2}}}, {{{"x", 3}}}, {{{"x", 2}, {"y", 2}}}, {{{"x", 2}, {"y", 3}}}, {{{"x", 4}, {"y", 2}}}};
  const Type types[] = {
      {DType::F32, {12}}, {DType::F32, {7}}, {DType::F32, {8, 12}}, {DType::I32, {5, 3}}, {DType::U8, {2, 9}}};
  for (const Mesh& mesh : meshes) {
    for (const Type& type : types) {
      const std::vector<Sharding> shardings = allShardings(mesh, type.rank());
      for (const Sharding& from : shardings) {
        for (const Sharding& to : shardings) checkPlan(mesh, type, from, to);
      }
    }
  }
}

TEST(Reshard, PartialIsReducedOnceAndScatteredWhereTheTargetIsSplit) {
  const Mesh mesh{{{"x", 4}, {"y", 2}}};
  const Type type{DType::F32, {8, 8}};
  Sharding from = Sharding::replicated(2);
  from.partial = {{wholeAxis(mesh, 0), Reduction::Sum}};
  Sharding to = Sharding::replicated(2);
  to.dims[0] = {wholeAxis(mesh, 0)};
  ReshardPlan plan = planReshard(mesh, type, from, to);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, OpKind::ReduceScatter);
  EXPECT_EQ(plan.bytesMax, 3 * 2 * 8 * 4);  // T09: 192 bytes, where all_reduce moves 384
  plan = planReshard(mesh, type, from, Sharding::replicated(2));
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, OpKind::AllReduce);
  EXPECT_EQ(plan.bytesMax, 384);
  EXPECT_EQ(plan.lowerBound, 384);
  // What stays partial in the target is left alone.
  Sharding both = from;
  both.partial.push_back({wholeAxis(mesh, 1), Reduction::Sum});
  plan = planReshard(mesh, type, both, from);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].axes, std::vector<AxisRef>{wholeAxis(mesh, 1)});
  EXPECT_EQ(plan.steps[0].to, from);
}

TEST(Reshard, AllReduceBytesFollowTheCeilRule) {
  const Mesh mesh{{{"x", 4}}};
  const AxisRef axes[] = {wholeAxis(mesh, 0)};
  // Three elements on four devices: owners have 1, 1, 1, 0; an owner receives 3 + 2, the last device 3.
  const BytesReceived bytes = bytesOfAllReduce(mesh, {DType::F32, {3}}, Sharding::replicated(1), axes);
  EXPECT_EQ(bytes.max, 5 * 4);
  EXPECT_EQ(bytes.total, (5 + 5 + 5 + 3) * 4);
}

// X10: parts cost what the whole costs, more bytes or devices never cost less, and one device costs nothing.
TEST(Reshard, X10CostModel) {
  const Platform& platform = platforms()[0];
  double before = 0;
  std::int64_t bytesBefore = 0;
  for (const std::int64_t n : {1, 2, 3, 4, 8, 64, 100, 2048}) {
    const Mesh mesh{{{"x", n}}};
    const std::vector<AxisRef> axes = {wholeAxis(mesh, 0)};
    const Type type{DType::F32, {1024 * 2048}};
    const Sharding whole = Sharding::replicated(1);
    Sharding split = whole;
    if (n > 1) split.dims[0] = axes;
    const BytesReceived all = bytesOfAllReduce(mesh, type, whole, axes);
    const BytesReceived scatter = bytesOfReduceScatter(mesh, type, split, n),
                        gather = bytesOfMove(mesh, type, split, whole);
    if (type.shape[0] % n == 0) {
      EXPECT_EQ(all.max, scatter.max + gather.max) << n;
      EXPECT_EQ(all.total, scatter.total + gather.total) << n;
    }
    const double microseconds = collectiveMicroseconds(platform, 2 * (n - 1), all.max);
    EXPECT_GE(all.max, bytesBefore) << n;
    EXPECT_GE(microseconds, before) << n;
    if (n == 1) {
      EXPECT_EQ(all.max + scatter.max + gather.max, 0);
      EXPECT_EQ(microseconds, 0);
    }
    bytesBefore = all.max;
    before = microseconds;
  }
  // 4096 bytes on 4 devices: 6144 = 3072 + 3072.
  const Mesh mesh{{{"x", 4}}};
  const std::vector<AxisRef> axes = {wholeAxis(mesh, 0)};
  Sharding split = Sharding::replicated(1);
  split.dims[0] = axes;
  const Type type{DType::F32, {1024}};
  EXPECT_EQ(bytesOfAllReduce(mesh, type, Sharding::replicated(1), axes).max, 6144);
  EXPECT_EQ(bytesOfReduceScatter(mesh, type, split, 4).max, 3072);
  EXPECT_EQ(bytesOfMove(mesh, type, split, Sharding::replicated(1)).max, 3072);
  for (const Platform& each : platforms()) {
    double last = -1;
    for (const std::int64_t bytes : {0, 1, 4096, 1 << 20, 1 << 30}) {
      const double microseconds = collectiveMicroseconds(each, 3, bytes);
      EXPECT_GT(microseconds, last);
      last = microseconds;
    }
  }
}

TEST(Reshard, T26) {
  const Mesh mesh{{{"x", 4}, {"y", 2}}};
  const Type type{DType::F32, {16, 16, 16}};
  const AxisRef x = wholeAxis(mesh, 0), y = wholeAxis(mesh, 1);
  const ReshardPlan plan = planReshard(mesh, type, {{{y}, {}, {x}}, {}}, {{{}, {x, y}, {}}, {}});
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, OpKind::Exchange);
  EXPECT_EQ(plan.bytesMax, 1792);
  EXPECT_EQ(plan.lowerBound, 1792);
  ASSERT_FALSE(plan.rejected.empty());
  EXPECT_EQ(plan.rejected[0].bytesMax, 2560);

  const Mesh four{{{"x", 4}}};
  const AxisRef a = wholeAxis(four, 0);
  const ReshardPlan swap = planReshard(four, {DType::F32, {8, 8}}, {{{a}, {}}, {}}, {{{}, {a}}, {}});
  ASSERT_EQ(swap.steps.size(), 1u);
  EXPECT_EQ(swap.steps[0].kind, OpKind::AllToAll);
  EXPECT_EQ(swap.bytesMax, 48);
}

TEST(Reshard, T03UnevenTilesThatDoNotNestAreExchanged) {
  const Mesh mesh{{{"a", 3}, {"b", 2}}};
  const AxisRef a = wholeAxis(mesh, 0), b = wholeAxis(mesh, 1);
  const ReshardPlan plan = planReshard(mesh, {DType::F32, {7}}, {{{a, b}}, {}}, {{{a}}, {}});
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].kind, OpKind::Exchange);
  // Tiles over (a, b) start at 0 2 4 6 7 7, over a alone at 0 3 6: the device with [2, 4) reads 0 and 1.
  EXPECT_EQ(plan.bytesMax, 3 * 4);
}

// ---- cases collected from Shardy's tests: name, shape, meshes and shardings, mean of the lower bound over devices.

struct ParsedMesh {
  std::vector<std::pair<std::string, std::int64_t>> axes;
  std::int64_t devices = 1;
};

// "@mesh2d=x2xy3": axes of one letter, a size each, joined by x.
ParsedMesh parseMesh(const std::string& text) {
  ParsedMesh mesh;
  std::size_t at = text.find('=') + 1;
  while (at < text.size()) {
    const std::string name(1, text[at++]);
    std::size_t used = 0;
    const std::int64_t size = std::stoll(text.substr(at), &used);
    at += used;
    mesh.axes.emplace_back(name, size);
    mesh.devices *= size;
    if (at < text.size() && text[at] == 'x') ++at;
  }
  return mesh;
}

// As pieces of one axis over all devices, so that two meshes over the same devices can be compared.
Sharding parseSharding(const std::string& text, const ParsedMesh& mesh) {
  Sharding sharding;
  for (std::size_t at = 1; at < text.size() && text[at] != ']'; ++at) {
    if (text[at] == '{') sharding.dims.emplace_back();
    if (std::isalpha(static_cast<unsigned char>(text[at])) == 0) continue;
    std::int64_t pre = 1, size = 0;
    for (const auto& [name, axisSize] : mesh.axes) {
      if (name[0] == text[at]) {
        size = axisSize;
        break;
      }
      pre *= axisSize;
    }
    if (text.compare(at + 1, 2, ":(") == 0) {
      const std::size_t close = text.find(')', at);
      pre *= std::stoll(text.substr(at + 3, close - at - 3));
      size = std::stoll(text.substr(close + 1));
      at = close + 1;
    }
    sharding.dims.back().push_back({0, pre, size});
  }
  return sharding;
}

TEST(Reshard, ShardyCasesMeetTheirLowerBounds) {
  std::ifstream file(std::string(GSHARD_SOURCE_DIR) + "/tests/unit/reshard_cases.tsv");
  ASSERT_TRUE(file);
  std::string line;
  std::getline(file, line);
  int tested = 0;
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::stringstream parts(line);
    for (std::string cell; std::getline(parts, cell, '\t');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 8u);
    if (line.find(":ids=") != std::string::npos) continue;  // device lists come later
    const ParsedMesh before = parseMesh(cells[2]), after = parseMesh(cells[4]);
    if (before.devices != after.devices || cells[2].find("empty") != std::string::npos) continue;
    SCOPED_TRACE(cells[0]);
    Type type;
    std::stringstream shape(cells[1]);
    for (std::string size; std::getline(shape, size, 'x');) type.shape.push_back(std::stoll(size));
    const Mesh mesh{{{"d", before.devices}}};
    const Sharding from = canonical(mesh, parseSharding(cells[3], before)),
                   to = canonical(mesh, parseSharding(cells[5], after));
    const ReshardPlan plan = planReshard(mesh, type, from, to);
    const double mean = static_cast<double>(plan.bytesTotal) / static_cast<double>(4 * before.devices);
    EXPECT_NEAR(mean, std::stod(cells[6]), 1e-9);
    ++tested;
  }
  EXPECT_GE(tested, 50);
}

}  // namespace
}  // namespace gshard
