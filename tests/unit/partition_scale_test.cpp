// One program, any number of devices: the SPMD form and the cost of making it do not grow with the mesh (X11 of
// cases.md).
#include <time.h>

#include <memory>
#include <random>

#include "partition/comm_plan.h"
#include "partition/reshard.h"
#include "partition/tile_classes.h"
#include "partition_harness.h"

namespace gshard {
namespace {

using namespace testing_partition;

constexpr const char* kText = R"(mesh [data: N, model: M] declared
param w: f32[64, 4096] trained @{[_, model]}
param v: f32[4096, 2048] trained
state v.m: f32[4096, 2048] of v @{[_, data]} open
func @loss(%x: f32[4096, 64] @{[data, _]}, %i: i32[4096], %w: f32[64, 4096] param w, %v: f32[4096, 2048] param v, %m: f32[4096, 2048] state v.m) -> (f32[4096], i32[4096], f32[4095, 2048], f32[4096, 2048], f32[4096, 2048]) train {
  %p = contract "bi,ih->bh" %x, %w : f32[4096, 4096]
  %h = relu %p : f32[4096, 4096]
  %y = contract "bh,ho->bo" %h, %v : f32[4096, 2048]
  %s = reduce sum %y {dims = [1]} : f32[4096]
  %a = argmax %h {axis = 1} : i32[4096]
  %c = slice %y {limit = [4096, 2048], start = [1, 0], step = [1, 1]} : f32[4095, 2048]
  %g = contract "bh,bo->ho" %h, %y : f32[4096, 2048] backward
  %m1 = add %m, %g : f32[4096, 2048] update
  %v1 = sub %v, %m1 : f32[4096, 2048] update
  return %s, %a, %c, %v1 param v, %m1 state v.m
}
)";

std::string textFor(std::int64_t data, std::int64_t model) {
  return replaceAll(replaceAll(kText, "N", std::to_string(data)), "M", std::to_string(model));
}

std::size_t opsFor(std::int64_t data, std::int64_t model) {
  const auto program = partitionText(textFor(data, model));
  return program == nullptr ? 0 : program->spmd.functions[0].ops.size();
}

// Of this thread, so that waiting for a core does not count.
double threadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double secondsFor(const std::string& text) {
  const double start = threadSeconds();
  partitionText(text);
  return threadSeconds() - start;
}

Sharding randomSharding(std::mt19937_64& random, const Mesh& mesh, std::size_t rank) {
  Sharding sharding = Sharding::replicated(static_cast<std::int64_t>(rank));
  std::vector<AxisRef> pieces = {{0, 1, 2}, {0, 2, 2}, {1, 1, 3}, {2, 1, 2}};
  std::shuffle(pieces.begin(), pieces.end(), random);
  for (const AxisRef& piece : pieces) {
    if (random() % 3 != 0) sharding.dims[random() % rank].push_back(piece);
  }
  return canonical(mesh, std::move(sharding));
}

TEST(Scale, ClassesOfTilesCountAsDevicesDo) {
  const Mesh mesh{{{"a", 4}, {"b", 3}, {"c", 2}}};
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const Type type{DType::F32,
                    {static_cast<std::int64_t>(1 + random() % 9), static_cast<std::int64_t>(1 + random() % 9)}};
    const Sharding from = randomSharding(random, mesh, 2), to = randomSharding(random, mesh, 2);
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> expected, actual;
    for (std::int64_t device = 0; device < mesh.devices(); ++device) {
      const std::vector<Tile> before = tilesOf(mesh, type, from, device), after = tilesOf(mesh, type, to, device);
      std::int64_t wanted = 1, held = 1;
      for (std::size_t d = 0; d < 2; ++d) {
        wanted *= after[d].live;
        held *= std::max<std::int64_t>(0, std::min(before[d].offset + before[d].live, after[d].offset + after[d].live) -
                                              std::max(before[d].offset, after[d].offset));
      }
      ++expected[{wanted, held}];
    }
    for (const TileClass& each : tileClasses(mesh, type, from, to)) actual[{each.wanted, each.held}] += each.devices;
    EXPECT_EQ(actual, expected) << printShardedType(mesh, type, from) << " to " << printShardedType(mesh, type, to);
  }
}

TEST(Scale, ProgramsDoNotGrowWithTheMesh) {
  const std::size_t few = opsFor(4, 2);
  for (const auto& [data, model] : {std::pair{32, 2}, std::pair{64, 8}, std::pair{256, 8}, std::pair{1024, 2}}) {
    EXPECT_EQ(opsFor(data, model), few) << data << " x " << model;
  }
}

// X11: T06 with a middle dim of 4n; what is moved says the same whatever n is.
TEST(Scale, X11SameProgramForAnyNumber) {
  const auto programFor = [](std::int64_t n) {
    return partitionText(replaceAll(replaceAll(R"(mesh [x: N] declared
func @f(%a: f32[4, 2], %b: f32[2, MIDDLE] @{[_, x]}, %c: f32[MIDDLE, 8] @{[x, _]}) -> f32[4, 8] {
  %h = contract "ij,jk->ik" %a, %b : f32[4, MIDDLE]
  %y = contract "ik,kl->il" %h, %c : f32[4, 8]
  return %y
}
)",
                                               "N", std::to_string(n)),
                                    "MIDDLE", std::to_string(4 * n)));
  };
  const auto few = programFor(8);
  ASSERT_TRUE(few);
  EXPECT_EQ(collectivesOf(few->spmd, "f"), (std::vector<std::string>{"all_reduce f32[4, 8]"}));
  for (const std::int64_t n : {64, 512, 2048}) {
    const auto many = programFor(n);
    ASSERT_TRUE(many);
    EXPECT_EQ(many->spmd.functions[0].ops.size(), few->spmd.functions[0].ops.size()) << n;
    EXPECT_EQ(collectivesOf(many->spmd, "f"), collectivesOf(few->spmd, "f")) << n;
  }
}

// Moves on meshes of more than 64 devices are counted by classes of devices: as walking all of them counts.
TEST(Scale, ClassesOfMovesCountAsDevicesDo) {
  const char* moves[] = {
      "%y = slice %x {limit = [11, 6], start = [1, 0], step = [1, 2]} : f32[10, 3]",
      "%y = reverse %x {dims = [0]} : f32[12, 6]",
      "%y = transpose %x {perm = [1, 0]} : f32[6, 12]",
      "%y = concat %x, %x {dim = 0} : f32[24, 6]",
      "%y = broadcast %u {dims = [0, 1]} : f32[12, 6]",  // of a dim of size 1, which some device has
  };
  std::mt19937_64 random(3);
  int counted = 0;
  for (int round = 0; round < 75; ++round) {
    const std::string move = moves[round % 5];
    const std::string type = move.substr(move.rfind(" : ") + 3);
    const auto shardingText = [&](int rank) {
      std::vector<std::string> dims(static_cast<std::size_t>(rank), "_");
      std::vector<std::string> axes = {"a", "b", "c"};
      std::shuffle(axes.begin(), axes.end(), random);
      for (int d = 0; d < rank; ++d) {
        if (random() % 4 != 0) dims[static_cast<std::size_t>(d)] = axes[static_cast<std::size_t>(d)];
      }
      return "[" + dims[0] + ", " + dims[1] + "]";
    };
    const std::string given = shardingText(2), wanted = shardingText(2);
    const auto textFor = [&](const std::string& mesh) {
      return "mesh " + mesh + " declared\nfunc @f(%x: f32[12, 6] @{" + given + "}, %u: f32[1, 6] @{" + given +
             "}) -> " + type + " {\n  " + move + "\n  %z = annotate %y {annotation = {" + wanted + "}} : " + type +
             "\n  return %z\n}\n";
    };
    // The same tiles, once on 24 devices and once with copies of all of them on 96.
    const auto small = partitionText(textFor("[a: 4, b: 3, c: 2]")),
               large = partitionText(textFor("[a: 4, b: 3, c: 2, d: 4]"));
    ASSERT_TRUE(small && large);
    const CommPlan few = makeCommPlan(small->spmd, platforms()[0]), many = makeCommPlan(large->spmd, platforms()[0]);
    ASSERT_EQ(few.functions[0].collectives.size(), many.functions[0].collectives.size()) << textFor("");
    for (std::size_t i = 0; i < few.functions[0].collectives.size(); ++i) {
      EXPECT_EQ(few.functions[0].collectives[i].bytesMax, many.functions[0].collectives[i].bytesMax) << textFor("");
      EXPECT_EQ(few.functions[0].collectives[i].bytesTotal * 4, many.functions[0].collectives[i].bytesTotal)
          << textFor("");
      ++counted;
    }
  }
  EXPECT_GT(counted, 30);
}

TEST(Scale, TimeDoesNotGrowWithTheMesh) {
  // Least of interleaved rounds; growth with the number of devices would be a factor of hundreds.
  const std::string few = textFor(4, 2), many = textFor(1024, 2);
  double fewSeconds = secondsFor(few), manySeconds = secondsFor(many);
  for (int round = 0; round < 8; ++round) {
    fewSeconds = std::min(fewSeconds, secondsFor(few));
    manySeconds = std::min(manySeconds, secondsFor(many));
  }
  EXPECT_LT(manySeconds, fewSeconds * 3) << fewSeconds << " s and " << manySeconds << " s";
}

// A reshape of values that are cut along their outermost dim costs the same to count on every mesh, and counts what a
// walk over all devices counts.
TEST(Scale, ReshapesAreCountedWithoutAWalk) {
  const auto bytesFor = [](std::int64_t devices, const Type& from, const Type& to) {
    Module module;
    module.mesh.axes = {{"d", devices}, {"e", 65}};  // the second one makes every mesh a large one
    Function& function = module.functions.emplace_back();
    const auto sharded = [&](const Type& type) {
      Sharding sharding = Sharding::replicated(type.rank());
      sharding.dims[0] = {wholeAxis(module.mesh, 0)};
      return function.addValue({type, sharding});
    };
    Op op{OpKind::Exchange, {sharded(from)}, {}, {}, {}, Phase::Forward};
    op.results = {sharded(to)};
    op.attributes.set("move", std::string("reshape"));
    return bytesOfExchange(OpView(module, function, op));
  };
  std::int64_t looks = 0;
  for (const std::int64_t devices : {2, 64, 2048, 1 << 20}) {
    const BytesReceived bytes = bytesFor(devices, {DType::F32, {100000, 6}}, {DType::F32, {60000, 10}});
    EXPECT_LE(bytes.looks, 40) << devices;
    looks = std::max(looks, bytes.looks);
  }
  EXPECT_GT(looks, 0);
  // Against tiles one by one.
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const auto below = [&](std::int64_t n) {
      return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    const std::int64_t devices = below(70), p = below(12), q = below(12), r = below(12);
    const Type from{DType::F32, {p * q, r}}, to{DType::F32, {p, q * r}};
    if (from.shape[0] == 1 || to.shape[0] == 1) continue;
    const BytesReceived bytes = bytesFor(devices, from, to);
    std::int64_t total = 0, most = 0;
    for (std::int64_t d = 0; d < devices; ++d) {
      const Tile held = tileOf(from.shape[0], devices, d), wanted = tileOf(to.shape[0], devices, d);
      std::int64_t lacks = 0;
      for (std::int64_t i = wanted.offset * q * r; i < (wanted.offset + wanted.live) * q * r; ++i)
        lacks += i < held.offset * r || i >= (held.offset + held.live) * r ? 1 : 0;
      total += lacks;
      most = std::max(most, lacks);
    }
    EXPECT_EQ(bytes.total, total * 4 * 65) << devices << " " << printType(from) << " " << printType(to);
    EXPECT_EQ(bytes.max, most * 4) << devices << " " << printType(from) << " " << printType(to);
  }
}

}  // namespace
}  // namespace gshard
