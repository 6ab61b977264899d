// Feeding inputs on meshes: whatever the layout, the assembled input is the same, from arrays of any type, from seeded
// values, by random windows, and with a short block of rows. Also the way back: checkpoints of split tensors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "runtime/checkpoint.h"
#include "runtime/dataset.h"
#include "runtime/failure.h"
#include "runtime/local_transport.h"
#include "runtime/tile_runs.h"

namespace gshard::runtime {
namespace {

// One input x: TYPE[6, 2, 4] by rows and one parameter w: f32[5, 4], both split as told over one axis.
class FeedProgram {
 public:
  FeedProgram(int devices, int splitDim, std::int64_t type = GSHARD_RT_F32, std::int64_t rows = 6)
      : axis_{"d", devices} {
    const auto parts = [&](int dim) { return dim == splitDim ? std::int64_t{devices} : std::int64_t{1}; };
    const auto extent = [&](std::int64_t size, std::int64_t count, std::int64_t scale) {
      return gshard_rt_extent{size, (size + count - 1) / count, scale, count > 1 ? 1 : 0, &piece_};
    };
    piece_ = {0, 1, devices};
    extents_[0] = extent(rows, parts(0), 1);
    extents_[1] = extent(2, parts(1), 0);
    extents_[2] = extent(4, parts(2), 0);
    extents_[3] = extent(5, devices, 0);
    shape_[0] = rows;
    const ElementType element = static_cast<ElementType>(type);
    input_ = {
        "x",
        {type, 3, shape_, dims_, 1024, extents_[0].part * extents_[1].part * extents_[2].part * elementBytes(element)},
        1};
    parameter_ = {"net.w", {GSHARD_RT_F32, 2, weightShape_, weightDims_, 0, extents_[3].part * 16}, 1, ""};
    function_.name = "loss";
    function_.rows = rows;
    function_.input_count = 1;
    function_.inputs = &input_;
    program_.name = "feed";
    program_.axis_count = 1;
    program_.axes = &axis_;
    program_.devices = devices;
    program_.threads = 1;
    program_.extent_count = 4;
    program_.extents = extents_;
    program_.parameter_count = 1;
    program_.parameters = &parameter_;
    program_.arena_bytes = 4096;
  }
  FeedProgram(const FeedProgram&) = delete;
  FeedProgram& operator=(const FeedProgram&) = delete;

  const gshard_rt_program& program() const { return program_; }
  const gshard_rt_function& function() const { return function_; }
  const gshard_rt_tensor& input() const { return input_.tensor; }
  const gshard_rt_tensor& weight() const { return parameter_.tensor; }

  // Runs `body` on every device; returns what rank 0 assembled of `tensor` afterwards.
  Array assembled(const gshard_rt_tensor& tensor, const std::function<void(Device&)>& body) const {
    LocalWorld world(static_cast<int>(program_.devices), program_.arena_bytes);
    Array whole;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < world.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Device device(program_, world.device(rank), 1, 5);
        body(device);
        Array mine;
        EXPECT_TRUE(assemble(device, tensor, mine));
        if (rank == 0) whole = mine;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return whole;
  }

 private:
  gshard_rt_axis axis_;
  gshard_rt_axis_ref piece_{};
  gshard_rt_extent extents_[4] = {};
  std::int64_t shape_[3] = {6, 2, 4};
  std::int64_t dims_[3] = {0, 1, 2};
  std::int64_t weightShape_[2] = {5, 4};
  std::int64_t weightDims_[2] = {3, 2};
  gshard_rt_input input_{};
  gshard_rt_parameter parameter_{};
  gshard_rt_function function_{};
  gshard_rt_program program_{};
};

// A file of its own for each test; removed at the end.
class Feeding : public testing::Test {
 protected:
  void TearDown() override { unlink(file_.c_str()); }

  Options options(const std::vector<std::int64_t>& shape, ElementType type) {
    Array array{type, shape, {}};
    array.bytes.resize(static_cast<std::size_t>(array.count() * elementBytes(type)));
    for (std::int64_t i = 0; i < array.count(); ++i) {
      const double value = static_cast<double>(i % 200);
      convertElements(ElementType::F64, reinterpret_cast<const std::byte*>(&value), type,
                      array.bytes.data() + i * elementBytes(type), 1);
    }
    file_ = testing::TempDir() + "gshard_feed_" + std::to_string(getpid()) + ".npz";
    writeArrays(file_, {{"x", array}});
    Options options;
    options.data = file_;
    options.seed = 11;
    return options;
  }

  Array fed(const FeedProgram& program, const Options& options, RowRange rows) {
    const Dataset dataset(options);
    const Feed feed = dataset.bind(program.function());
    return program.assembled(program.input(), [&](Device& device) {
      device.setRows(rows.count, rows.count);
      feedInputs(device, feed, rows);
    });
  }

  void expectEqualOnAllLayouts(const Options& options, RowRange rows, std::int64_t type = GSHARD_RT_F32) {
    const Array expected = fed(FeedProgram(1, 0, type), options, rows);
    for (int devices = 2; devices <= 4; ++devices) {
      for (int dim = 0; dim < 3; ++dim) {
        const Array found = fed(FeedProgram(devices, dim, type), options, rows);
        EXPECT_EQ(found.shape, expected.shape);
        EXPECT_TRUE(found.bytes == expected.bytes) << devices << " devices, dim " << dim;
      }
    }
  }

  std::string file_;
};

TEST_F(Feeding, RowsInFileOrder) {
  // Trailing dims flatten: rows of 8 feed [2, 4]; u8 becomes f32.
  const Options given = options({20, 8}, ElementType::U8);
  const Array whole = fed(FeedProgram(3, 0), given, RowRange{6, 6, 0, 0, false});
  for (std::int64_t i = 0; i < 48; ++i) EXPECT_EQ(asDouble(whole, i), static_cast<double>(48 + i));
  expectEqualOnAllLayouts(given, RowRange{6, 6, 0, 0, false});
}

TEST_F(Feeding, AShortBlock) {
  const Options given = options({20, 8}, ElementType::F64);
  const Array whole = fed(FeedProgram(4, 0), given, RowRange{18, 2, 0, 0, false});
  EXPECT_EQ(whole.shape, (std::vector<std::int64_t>{2, 2, 4}));
  EXPECT_EQ(asDouble(whole, 15), 159.0);
  expectEqualOnAllLayouts(given, RowRange{18, 2, 0, 0, false});
}

TEST_F(Feeding, ShuffledRowsAreRowsOfTheData) {
  const Options given = options({20, 2, 4}, ElementType::I64);
  const RowRange rows{12, 6, 3, 9, true};
  const Array whole = fed(FeedProgram(2, 0), given, rows);
  const RowOrder order(given.seed, 20);
  for (std::int64_t row = 0; row < 6; ++row)
    EXPECT_EQ(asDouble(whole, 8 * row), static_cast<double>(8 * order.at(3, 12 + row)));
  expectEqualOnAllLayouts(given, rows);
}

TEST_F(Feeding, WindowsOfAFlatArray) {
  const Options given = options({100}, ElementType::U8);
  const RowRange rows{0, 6, 0, 4, true};
  const Array whole = fed(FeedProgram(1, 0), given, rows);
  for (std::int64_t row = 0; row < 6; ++row) {
    const double first = asDouble(whole, 8 * row);
    EXPECT_LE(first, 92.0);
    for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(asDouble(whole, 8 * row + i), first + static_cast<double>(i));
  }
  expectEqualOnAllLayouts(given, rows);
}

TEST_F(Feeding, SeededWithoutData) {
  for (const std::int64_t type : {GSHARD_RT_F32, GSHARD_RT_F64, GSHARD_RT_I32, GSHARD_RT_BOOL, GSHARD_RT_BF16}) {
    expectEqualOnAllLayouts(Options{}, RowRange{0, 6, 0, 2, false}, type);
  }
  const Array values = fed(FeedProgram(1, 0), Options{}, RowRange{0, 6, 0, 0, false});
  for (std::int64_t i = 0; i < 48; ++i) EXPECT_TRUE(asDouble(values, i) >= 0 && asDouble(values, i) < 1);
  const Array next = fed(FeedProgram(1, 0), Options{}, RowRange{0, 6, 0, 1, false});
  EXPECT_TRUE(values.bytes == next.bytes);  // the same in every step: a benchmark measures the program
}

TEST_F(Feeding, ChecksWhatItIsGiven) {
  const auto message = [&](const Options& options, std::int64_t type) -> std::string {
    try {
      const FeedProgram program(1, 0, type);
      Dataset(options).bind(program.function());
    } catch (const Failure& failed) {
      return failed.message;
    }
    return "";
  };
  EXPECT_NE(message(options({20, 9}, ElementType::F32), GSHARD_RT_F32).find("a row has 9 elements, not 8"),
            std::string::npos);
  EXPECT_NE(message(options({5}, ElementType::F32), GSHARD_RT_F32).find("a row has 1 elements, not 8"),
            std::string::npos);
  EXPECT_NE(message(options({40, 8}, ElementType::I64), GSHARD_RT_BOOL).find("holds 2 at element 2"),
            std::string::npos);
  EXPECT_EQ(message(options({40, 8}, ElementType::F64), GSHARD_RT_I32), "");
}

TEST(Checkpoint, LoadsOnAnyNumberOfDevices) {
  std::string folder = testing::TempDir() + "gshard_checkpoint_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const FeedProgram three(3, 0);
  three.assembled(three.weight(), [&](Device& device) {
    const Tile tile = device.tile(three.weight());
    float* weight = reinterpret_cast<float*>(device.arena());
    for (std::int64_t r = 0; r < tile.live[0]; ++r) {
      for (std::int64_t c = 0; c < tile.live[1]; ++c) {
        weight[r * tile.part[1] + c] = static_cast<float>(100 * (tile.offset[0] + r) + tile.offset[1] + c);
      }
    }
    saveCheckpoint(device, folder, 17, 3, 2);
    EXPECT_TRUE(device.transport().barrier());
  });
  for (int devices = 1; devices <= 4; ++devices) {
    const FeedProgram program(devices, 0);
    const auto loaded = loadCheckpoint(program.program(), folder, "no", false);
    ASSERT_TRUE(loaded.has_value());
    EXPECT_EQ(loaded->step, 17);
    const Array whole = program.assembled(program.weight(), [&](Device& device) { applyTensors(device, *loaded); });
    for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(asDouble(whole, i), static_cast<double>(100 * (i / 4) + i % 4));
  }
  std::system(("rm -rf '" + folder + "'").c_str());
}

}  // namespace
}  // namespace gshard::runtime
