// Products of many shapes, strides and targets against naive sums; and the promise that an element is one chain of
// multiply-adds, whatever its place, the tile, the block and the thread. Over 400 lines, since all share one harness.
#include "codegen/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/gemm_program.h"
#include "runtime/gemm_abi.h"

namespace gshard {
namespace {

std::unique_ptr<Target> targetFor(const std::string& cpu, const std::string& triple = "") {
  std::string error;
  std::unique_ptr<Target> target =
      Target::create({.triple = triple, .cpu = cpu, .level = OptimizationLevel::O2}, error);
  EXPECT_TRUE(target) << error;
  return target;
}

bool machineRuns(const std::string& cpu) {
#if defined(__x86_64__)
  if (cpu == "x86-64-v4") return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  if (cpu == "x86-64-v3") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return true;
#else
  return cpu == "native";
#endif
}

constexpr int kMostLetters = 12;  // of the products here

// Operand values lie between canaries: what the product must not touch keeps its bits.
template <class T>
class Operands {
 public:
  Operands(const GemmDesc& desc, std::int64_t threads, const GemmPlan& plan) : desc_(desc) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> values(-1, 1);
    for (int operand = 0; operand < 3; ++operand) {
      std::int64_t low = 0, high = 0;
      for (const GemmLetter& letter : desc.letters) {
        const std::int64_t reach = (letter.size - 1) * strideOf(letter, operand);
        (reach < 0 ? low : high) += reach;
      }
      origin_[operand] = kMargin - low;
      buffers_[operand].resize(static_cast<std::size_t>(high - low + 1 + 2 * kMargin));
      for (T& value : buffers_[operand]) value = static_cast<T>(values(random));
    }
    initialC_ = buffers_[2];
    workspace_.resize(static_cast<std::size_t>(plan.workspaceBytes(threads) / 64 + 1));
    std::memset(static_cast<void*>(workspace_.data()), 0xff, workspace_.size() * sizeof(Line));
  }

  static std::int64_t strideOf(const GemmLetter& letter, int operand) {
    switch (letter.group) {
      case GemmGroup::Rows:
        if (operand == 1) return 0;
        break;
      case GemmGroup::Columns:
        if (operand == 0) return 0;
        break;
      case GemmGroup::Sum:
        if (operand == 2) return 0;
        break;
      case GemmGroup::Batch:
        break;
    }
    return operand == 0 ? letter.strideA : operand == 1 ? letter.strideB : letter.strideC;
  }

  T* origin(int operand) { return buffers_[operand].data() + origin_[operand]; }
  void* workspace() { return workspace_.data(); }
  std::vector<T>& buffer(int operand) { return buffers_[operand]; }
  const std::vector<T>& initialC() const { return initialC_; }
  std::int64_t originC() const { return origin_[2]; }

  // Puts NaN into the tails: whoever reads one shows it.
  void poisonTails(const std::vector<std::int64_t>& live) {
    if (live.empty()) return;
    forEach([&](const Place& place) {
      for (std::size_t i = 0; i < desc_.letters.size(); ++i) {
        const GemmLetter& letter = desc_.letters[i];
        if (letter.group == GemmGroup::Sum && letter.liveSlot >= 0 &&
            place.index[i] >= live[static_cast<std::size_t>(letter.liveSlot)]) {
          at(0, place) = at(1, place) = std::numeric_limits<T>::quiet_NaN();
        }
      }
    });
  }

  // One index of every letter, and the elements of the operands there. An inner loop of these tests takes most of their
  // time, the more under a sanitizer: arrays, no vectors.
  struct Place {
    std::int64_t index[kMostLetters] = {};
    std::int64_t offsets[3] = {};
  };

  T& at(int operand, const Place& place) { return origin(operand)[place.offsets[operand]]; }

  template <class Body>
  void forEach(const Body& body) {
    ASSERT_LE(desc_.letters.size(), std::size_t{kMostLetters});
    Place place;
    walk(0, place, body);
  }

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  static constexpr std::int64_t kMargin = 37;

  template <class Body>
  void walk(std::size_t at, Place& place, const Body& body) {
    if (at == desc_.letters.size()) return body(place);
    const GemmLetter& letter = desc_.letters[at];
    const std::int64_t strides[3] = {strideOf(letter, 0), strideOf(letter, 1), strideOf(letter, 2)};
    for (std::int64_t i = 0; i < letter.size; ++i) {
      place.index[at] = i;
      walk(at + 1, place, body);
      for (int operand = 0; operand < 3; ++operand) place.offsets[operand] += strides[operand];
    }
    for (int operand = 0; operand < 3; ++operand) place.offsets[operand] -= letter.size * strides[operand];
  }

  const GemmDesc& desc_;
  std::vector<T> buffers_[3], initialC_;
  std::int64_t origin_[3] = {0, 0, 0};
  std::vector<Line> workspace_;
};

// Letters in the order of the desc, sums in double; tails of M and N are left out of the comparison.
template <class T>
void expectProduct(const GemmDesc& desc, Operands<T>& operands, const std::vector<std::int64_t>& live, bool bitExact,
                   const std::string& what) {
  const auto isTail = [&](std::size_t i, std::int64_t index) {
    return desc.letters[i].liveSlot >= 0 && index >= live[static_cast<std::size_t>(desc.letters[i].liveSlot)];
  };
  std::vector<double> expected(operands.buffer(2).size(), 0), magnitude(expected.size(), 0);
  std::vector<T> chain(operands.buffer(2).size(), T{0});
  std::vector<char> written(expected.size(), 0), tail(expected.size(), 0);
  operands.forEach([&](const auto& place) {
    const auto offset = static_cast<std::size_t>(&operands.at(2, place) - operands.buffer(2).data());
    if (!written[offset] && desc.addToC) {
      expected[offset] = static_cast<double>(operands.initialC()[offset]);
      chain[offset] = operands.initialC()[offset];
    }
    written[offset] = 1;
    for (std::size_t i = 0; i < (live.empty() ? 0 : desc.letters.size()); ++i) {
      if (!isTail(i, place.index[i])) continue;
      if (desc.letters[i].group != GemmGroup::Sum) tail[offset] = 1;
      return;
    }
    const T a = operands.at(0, place), b = operands.at(1, place);
    expected[offset] += static_cast<double>(a) * static_cast<double>(b);
    magnitude[offset] += std::abs(static_cast<double>(a) * static_cast<double>(b));
    chain[offset] = std::fma(a, b, chain[offset]);
  });
  const double unit = std::numeric_limits<T>::epsilon();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const T actual = operands.buffer(2)[i];
    if (!written[i]) {
      ASSERT_EQ(0, std::memcmp(&actual, &operands.initialC()[i], sizeof(T))) << what << ": wrote outside, at " << i;
    } else if (!tail[i]) {
      if (bitExact) {
        ASSERT_EQ(chain[i], actual) << what << ", element " << i;
      }
      ASSERT_NEAR(expected[i], static_cast<double>(actual), 8 * unit * (1 + magnitude[i])) << what << ", element " << i;
    }
  }
}

template <class T>
void runProduct(const gshard_rt_gemm_desc* code, Operands<T>& operands, const std::vector<std::int64_t>& live,
                std::int64_t threads) {
  const auto part = [&](std::int64_t thread) {
    gshard_rt_gemm(code, operands.origin(0), operands.origin(1), operands.origin(2), operands.workspace(),
                   live.empty() ? nullptr : live.data(), nullptr, thread, threads);
  };
  std::vector<std::thread> others;
  for (std::int64_t thread = 1; thread < threads; ++thread) others.emplace_back(part, thread);
  part(0);
  for (std::thread& other : others) other.join();
}

template <class T>
void checkOne(const gshard_rt_gemm_desc* code, const GemmDesc& desc, const GemmPlan& plan,
              const std::vector<std::int64_t>& live, std::int64_t threads, bool bitExact, const std::string& what) {
  Operands<T> operands(desc, threads, plan);
  operands.poisonTails(live);
  runProduct(code, operands, live, threads);
  expectProduct(desc, operands, live, bitExact, what);
}

// Compiles all descs for `target` into one object and runs each with 1 and 2 threads.
void checkAll(const std::vector<GemmDesc>& descs, const Target& target, const std::vector<std::int64_t>& live = {}) {
  std::vector<GemmPlan> plans;
  for (const GemmDesc& desc : descs) {
    ASSERT_TRUE(gemmFits(desc));
    plans.push_back(planGemm(desc, target.shape()));
  }
  const GemmProgram program(plans, target);
  for (std::size_t i = 0; i < descs.size(); ++i) {
    int sums = 0;
    for (const GemmLetter& letter : descs[i].letters) sums += letter.group == GemmGroup::Sum ? 1 : 0;
    const bool bitExact = target.shape().hasFma && sums <= 1;
    for (const std::int64_t threads : {1, 2, 3}) {
      const std::string what = target.cpu() + ", " + plans[i].key() + " on " + std::to_string(threads) + " threads";
      if (descs[i].element == GemmElement::F32) {
        checkOne<float>(program.desc(i), descs[i], plans[i], live, threads, bitExact, what);
      } else {
        checkOne<double>(program.desc(i), descs[i], plans[i], live, threads, bitExact, what);
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// C[m, n] = A * B. Bit 0 of `layout`: A transposed, bit 1: B, bit 2: C; bit 3: rows padded, bit 4: every second
// element.
GemmDesc plain(GemmElement element, std::int64_t m, std::int64_t n, std::int64_t k, int layout) {
  const std::int64_t pad = layout & 8 ? 3 : 0, step = layout & 16 ? 2 : 1;
  const auto strides = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
    return transposed ? std::pair<std::int64_t, std::int64_t>{step, (rows + pad) * step}
                      : std::pair<std::int64_t, std::int64_t>{(columns + pad) * step, step};
  };
  const auto [am, ak] = strides(m, k, layout & 1);
  const auto [bk, bn] = strides(k, n, layout & 2);
  const auto [cm, cn] = strides(m, n, layout & 4);
  GemmDesc desc;
  desc.element = element;
  desc.letters = {{.group = GemmGroup::Rows, .size = m, .strideA = am, .strideC = cm},
                  {.group = GemmGroup::Columns, .size = n, .strideB = bn, .strideC = cn},
                  {.group = GemmGroup::Sum, .size = k, .strideA = ak, .strideB = bk}};
  return desc;
}

class GemmOnCpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!machineRuns(GetParam())) GTEST_SKIP() << "SKIP: this machine has no " << GetParam();
    target_ = targetFor(GetParam());
    ASSERT_TRUE(target_);
  }
  std::unique_ptr<Target> target_;
};

TEST_P(GemmOnCpu, SmallShapes) {
  std::vector<GemmDesc> descs;
  const std::int64_t sizes[][3] = {{1, 1, 1},    {1, 40, 7},   {40, 1, 7},   {1, 1, 33},  {2, 3, 5},
                                   {3, 17, 4},   {4, 24, 16},  {5, 31, 19},  {7, 33, 16}, {13, 29, 23},
                                   {14, 32, 32}, {15, 35, 31}, {17, 9, 40},  {19, 37, 1}, {28, 64, 8},
                                   {29, 40, 20}, {31, 16, 15}, {33, 15, 17}, {37, 5, 39}, {40, 48, 40}};
  for (const auto& size : sizes) {
    descs.push_back(plain(GemmElement::F32, size[0], size[1], size[2], 0));
    descs.push_back(plain(GemmElement::F64, size[0], size[1], size[2], 0));
  }
  checkAll(descs, *target_);
}

TEST_P(GemmOnCpu, EveryLayout) {
  std::vector<GemmDesc> descs;
  for (int layout = 0; layout < 32; ++layout) {
    const GemmElement element = layout % 3 == 1 ? GemmElement::F64 : GemmElement::F32;
    descs.push_back(plain(element, 31, 45, 35, layout));
    descs.push_back(plain(element, 5, 70, 18, layout));
  }
  checkAll(descs, *target_);
}

TEST_P(GemmOnCpu, LargeEnoughForSeveralBlocks) {
  std::vector<GemmDesc> descs;
  descs.push_back(plain(GemmElement::F32, 70, 40, 1500, 0));
  descs.push_back(plain(GemmElement::F32, 40, 70, 2100, 3));
  descs.push_back(plain(GemmElement::F64, 150, 20, 1100, 2));
  descs.push_back(plain(GemmElement::F32, 6, 2500, 20, 0));
  descs.push_back(plain(GemmElement::F32, 30, 2500, 12, 1));
  descs.push_back(plain(GemmElement::F32, 3, 100, 1300, 0));
  checkAll(descs, *target_);
}

TEST_P(GemmOnCpu, FewRowsAgainstATransposedOperand) {
  std::vector<GemmDesc> descs;
  for (const std::int64_t rows : {2, 5, 8, 16, 30, 64}) {
    descs.push_back(plain(GemmElement::F32, rows, 150, 131, 2));
    descs.push_back(plain(GemmElement::F64, rows, 140, 256, 3));
    descs.push_back(plain(GemmElement::F32, rows, 130, 1024, 2));
    descs.back().addToC = true;
  }
  checkAll(descs, *target_);
}

TEST_P(GemmOnCpu, ATransposedOperandAgainstFewColumns) {
  std::vector<GemmDesc> descs;
  for (const std::int64_t columns : {2, 5, 8, 10, 30, 64}) {
    for (const int layout : {1, 3}) {
      descs.push_back(plain(GemmElement::F32, 150, columns, 131, layout));
      descs.push_back(plain(GemmElement::F64, 140, columns, 256, layout));
      descs.push_back(plain(GemmElement::F32, 130, columns, 1024, layout));
      descs.back().addToC = true;
    }
  }
  checkAll(descs, *target_);
  std::vector<GemmDesc> uneven = {plain(GemmElement::F32, 133, 10, 140, 1), plain(GemmElement::F32, 133, 10, 140, 3)};
  for (GemmDesc& desc : uneven) {
    for (std::size_t i = 0; i < 3; ++i) desc.letters[i].liveSlot = static_cast<int>(i);
  }
  checkAll(uneven, *target_, {133, 9, 139});
  checkAll(uneven, *target_, {1, 10, 1});
  checkAll(uneven, *target_, {0, 10, 140});
  checkAll(uneven, *target_, {100, 1, 0});
}

TEST_P(GemmOnCpu, AddsToTheResult) {
  std::vector<GemmDesc> descs;
  for (const int layout : {0, 1, 2, 4, 16, 23}) {
    descs.push_back(plain(GemmElement::F32, 31, 45, 1200, layout));
    descs.back().addToC = true;
  }
  checkAll(descs, *target_);
}

TEST_P(GemmOnCpu, LiveSizes) {
  std::vector<GemmDesc> descs;
  for (const int layout : {0, 1, 2, 3, 4, 7, 16}) {
    descs.push_back(plain(GemmElement::F32, 33, 47, 29, layout));
    for (std::size_t i = 0; i < 3; ++i) descs.back().letters[i].liveSlot = static_cast<int>(i);
    descs.push_back(plain(GemmElement::F32, 6, 47, 1100, layout));
    descs.back().letters[2].liveSlot = 2;
  }
  checkAll(descs, *target_, {33, 47, 29});
  checkAll(descs, *target_, {20, 46, 28});
  checkAll(descs, *target_, {1, 1, 1});
  checkAll(descs, *target_, {0, 47, 10});
  checkAll(descs, *target_, {33, 47, 0});
}

// Slots of experts without a token: rows of zeros, in the middle and at the end, of either operand and along the sum.
// What is skipped changes no bit, and is cleared where nothing is left.
TEST_P(GemmOnCpu, EmptyRowsAreSkipped) {
  std::vector<GemmDesc> descs;
  for (const int layout : {0, 1, 2, 3, 4, 7, 16}) {
    descs.push_back(plain(GemmElement::F32, 75, 64, 1100, layout));
    descs.push_back(plain(GemmElement::F64, 75, 33, 40, layout));
    for (std::size_t i = descs.size() - 2; i < descs.size(); ++i) descs[i].skipsEmpty = true;
    descs.push_back(descs.back());
    descs.back().addToC = true;
  }
  std::vector<GemmPlan> plans;
  for (const GemmDesc& desc : descs) plans.push_back(planGemm(desc, target_->shape()));
  const GemmProgram program(plans, *target_);
  for (std::size_t i = 0; i < descs.size(); ++i) {
    for (int pattern = 0; pattern < 4; ++pattern) {
      const std::string what = "product " + std::to_string(i) + ", pattern " + std::to_string(pattern);
      const auto check = [&]<class T>(T zero) {
        Operands<T> operands(descs[i], 2, plans[i]);
        operands.forEach([&](const auto& place) {
          // Letters: rows, columns, sum.
          if (pattern == 0 && place.index[0] >= 20 && place.index[0] != 60) operands.at(0, place) = zero;
          if (pattern == 1 && place.index[1] >= 7) operands.at(1, place) = zero;
          if (pattern == 2 && place.index[2] >= 21) operands.at(0, place) = operands.at(1, place) = zero;
          if (pattern == 3) operands.at(0, place) = -zero;
        });
        runProduct(program.desc(i), operands, {}, 2);
        expectProduct(descs[i], operands, {}, target_->shape().hasFma, what);
      };
      if (descs[i].element == GemmElement::F32)
        check(0.0f);
      else
        check(0.0);
    }
  }
}

// Attention and mixture-of-experts shapes: letters that merge and letters that do not, in every group.
TEST_P(GemmOnCpu, BatchesAndManyLetters) {
  const std::int64_t b = 3, h = 2, q = 9, k = 11, d = 5;
  std::vector<GemmDesc> descs(6);
  // bqhd,bkhd->bhqk
  descs[0].letters = {{GemmGroup::Batch, b, q * h * d, k * h * d, h * q * k},
                      {GemmGroup::Batch, h, d, d, q * k},
                      {GemmGroup::Rows, q, h * d, 0, k},
                      {GemmGroup::Columns, k, 0, h * d, 1},
                      {GemmGroup::Sum, d, 1, 1, 0}};
  // bhqk,bkhd->bqhd
  descs[1].letters = {{GemmGroup::Batch, b, h * q * k, k * h * d, q * h * d},
                      {GemmGroup::Batch, h, q * k, d, d},
                      {GemmGroup::Rows, q, k, 0, h * d},
                      {GemmGroup::Columns, d, 0, 1, 1},
                      {GemmGroup::Sum, k, 1, h * d, 0}};
  // bqd,bqe->de: two letters of the sum that merge; the first may be short
  descs[2].letters = {{GemmGroup::Sum, b, q * d, q * k, 0, 0},
                      {GemmGroup::Sum, q, d, k, 0},
                      {GemmGroup::Rows, d, 1, 0, k},
                      {GemmGroup::Columns, k, 0, 1, 1}};
  // bqd,qbe->de: two that do not; both may be short
  descs[3].letters = {{GemmGroup::Sum, b, q * d, k, 0, 0},
                      {GemmGroup::Sum, q, d, b * k, 0, 1},
                      {GemmGroup::Rows, d, 1, 0, k},
                      {GemmGroup::Columns, k, 0, 1, 1}};
  // bi,bj->ijb: the batch letter is the adjacent one of the result
  descs[4].letters = {
      {GemmGroup::Batch, b, q, k, 1}, {GemmGroup::Rows, q, 1, 0, k * b}, {GemmGroup::Columns, k, 0, 1, b}};
  // mb,na->abmn with reversed rows: two letters each of rows and columns, a sum of one term
  descs[5].letters = {{GemmGroup::Rows, q, -h, 0, k},
                      {GemmGroup::Rows, h, 1, 0, q * k},
                      {GemmGroup::Columns, k, 0, b, 1},
                      {GemmGroup::Columns, b, 0, 1, h * q * k}};
  checkAll(descs, *target_, {3, 9});
  checkAll(descs, *target_, {2, 4});
  checkAll(descs, *target_, {0, 9});
}

// The same operands, cut in M and in N: every element keeps its bits.
TEST_P(GemmOnCpu, SplitsKeepBits) {
  const std::int64_t m = 67, n = 121, k = 1300;
  const std::int64_t cuts[][4] = {{0, 67, 0, 121}, {0, 20, 0, 121}, {20, 67, 0, 121},
                                  {0, 67, 0, 3},   {0, 67, 3, 121}, {66, 67, 5, 90}};
  std::vector<GemmPlan> plans;
  for (const auto& cut : cuts) {
    GemmDesc desc = plain(GemmElement::F32, m, n, k, 0);
    desc.letters[0].size = cut[1] - cut[0];
    desc.letters[1].size = cut[3] - cut[2];
    plans.push_back(planGemm(desc, target_->shape()));
  }
  const GemmProgram program(plans, *target_);
  const GemmDesc whole = plain(GemmElement::F32, m, n, k, 0);
  Operands<float> operands(whole, 1, plans[0]);
  runProduct(program.desc(0), operands, {}, 1);
  const std::vector<float> expected = operands.buffer(2);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    Operands<float> part(whole, 1, plans[i]);
    const auto& cut = cuts[i];
    gshard_rt_gemm(program.desc(i), part.origin(0) + cut[0] * k, part.origin(1) + cut[2],
                   part.origin(2) + cut[0] * n + cut[2], part.workspace(), nullptr, nullptr, 0, 1);
    for (std::int64_t row = cut[0]; row < cut[1]; ++row) {
      for (std::int64_t column = cut[2]; column < cut[3]; ++column) {
        const std::size_t at = static_cast<std::size_t>(part.originC() + row * n + column);
        ASSERT_EQ(expected[at], part.buffer(2)[at]) << i << ": " << row << ", " << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, GemmOnCpu, testing::Values("native", "x86-64-v4", "x86-64-v3", "x86-64"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& letter : name) {
                             if (letter == '-') letter = '_';
                           }
                           return name;
                         });

// ---- epilogue

struct EpilogueUse {
  float* c;
  std::int64_t rowStride, columnStride, batchStride;
  std::vector<int> calls;
};

void doubleFinished(void* context, const std::int64_t* loops, std::int64_t row, std::int64_t rows, std::int64_t column,
                    std::int64_t columns) {
  EpilogueUse& use = *static_cast<EpilogueUse*>(context);
  for (std::int64_t r = row; r < row + rows; ++r) {
    for (std::int64_t c = column; c < column + columns; ++c) {
      const std::int64_t at = loops[0] * use.batchStride + r * use.rowStride + c * use.columnStride;
      use.c[at] *= 2;
      ++use.calls[static_cast<std::size_t>(at)];
    }
  }
}

TEST(GemmEpilogue, RunsOnceOnEveryFinishedElement) {
  const std::unique_ptr<Target> target = targetFor("native");
  const std::int64_t batch = 2, m = 45, n = 70, k = 1500;
  GemmDesc desc = plain(GemmElement::F32, m, n, k, 0);
  desc.letters.push_back(
      {.group = GemmGroup::Batch, .size = batch, .strideA = m * k, .strideB = n * k, .strideC = m * n});
  const GemmPlan plan = planGemm(desc, target->shape());
  const GemmProgram program({plan}, *target);
  Operands<float> once(desc, 1, plan), doubled(desc, 1, plan);
  runProduct(program.desc(0), once, {}, 1);
  gshard_rt_gemm_desc withEpilogue = *program.desc(0);
  withEpilogue.epilogue = &doubleFinished;
  EpilogueUse use{doubled.origin(2), n, 1, m * n, std::vector<int>(static_cast<std::size_t>(batch * m * n), 0)};
  gshard_rt_gemm(&withEpilogue, doubled.origin(0), doubled.origin(1), doubled.origin(2), doubled.workspace(), nullptr,
                 &use, 0, 1);
  for (std::int64_t i = 0; i < batch * m * n; ++i) {
    ASSERT_EQ(1, use.calls[static_cast<std::size_t>(i)]) << i;
    ASSERT_EQ(2 * once.origin(2)[i], doubled.origin(2)[i]) << i;
  }
}

// ---- plans

TEST(GemmPlan, TileFollowsTheRegisters) {
  const GemmDesc desc = plain(GemmElement::F32, 1024, 1024, 1024, 0);
  TargetShape avx512{
      .vectorBytes = 64, .vectorRegisters = 32, .l2Bytes = 1 << 20, .hasFma = true, .hasMaskedLoads = true};
  GemmPlan plan = planGemm(desc, avx512);
  EXPECT_EQ(14, plan.height);
  EXPECT_EQ(32, plan.width);
  EXPECT_EQ(74, plan.panelsM);
  EXPECT_EQ(1024, plan.blockK);
  TargetShape avx2{
      .vectorBytes = 32, .vectorRegisters = 16, .l2Bytes = 1 << 19, .hasFma = true, .hasMaskedLoads = true};
  plan = planGemm(desc, avx2);
  EXPECT_EQ(4, plan.height);
  EXPECT_EQ(24, plan.width);
}

TEST(GemmPlan, FewRowsGiveOneFlatPanel) {
  const TargetShape avx512{
      .vectorBytes = 64, .vectorRegisters = 32, .l2Bytes = 1 << 20, .hasFma = true, .hasMaskedLoads = true};
  const GemmPlan plan = planGemm(plain(GemmElement::F32, 8, 4096, 1024, 0), avx512);
  EXPECT_EQ(8, plan.height);
  EXPECT_EQ(48, plan.width);
  EXPECT_EQ(GemmAccess::InPlace, plan.accessB);
  EXPECT_TRUE(plan.prefetchB);
}

TEST(GemmPlan, SkinnyAndTransposedReadsTheLargeOperandInPlace) {
  const TargetShape avx512{
      .vectorBytes = 64, .vectorRegisters = 32, .l2Bytes = 1 << 20, .hasFma = true, .hasMaskedLoads = true};
  const GemmPlan plan = planGemm(plain(GemmElement::F32, 16, 784, 512, 2), avx512);
  EXPECT_TRUE(plan.swapped);
  EXPECT_TRUE(plan.scatterC);
  EXPECT_EQ(784, plan.m.size);
  EXPECT_EQ(GemmAccess::InPlace, plan.accessA);
}

TEST(GemmPlan, FewColumnsOfATransposedOperandReadItInPlace) {
  const TargetShape avx2{
      .vectorBytes = 32, .vectorRegisters = 16, .l2Bytes = 512 << 10, .hasFma = true, .hasMaskedLoads = true};
  const GemmPlan plan = planGemm(plain(GemmElement::F32, 512, 10, 256, 1), avx2);
  EXPECT_TRUE(plan.swapped);
  EXPECT_TRUE(plan.scatterC);
  EXPECT_EQ(10, plan.m.size);
  EXPECT_EQ(GemmAccess::InPlace, plan.accessB);
  // Many columns pay for the copy of the panel, and so do short sums for the scattering.
  EXPECT_FALSE(planGemm(plain(GemmElement::F32, 512, 100, 256, 1), avx2).swapped);
  EXPECT_FALSE(planGemm(plain(GemmElement::F32, 512, 10, 64, 1), avx2).swapped);
}

TEST(GemmPlan, HeightsAreBalanced) {
  const TargetShape avx512{
      .vectorBytes = 64, .vectorRegisters = 32, .l2Bytes = 1 << 20, .hasFma = true, .hasMaskedLoads = true};
  const GemmPlan plan = planGemm(plain(GemmElement::F32, 128, 1024, 64, 0), avx512);
  EXPECT_EQ(13, plan.height);
  EXPECT_EQ(10, plan.panelsM);
  EXPECT_EQ(8, plan.tallPanels);
}

TEST(GemmPlan, AdjacentRowsOfTheResultExchangeTheOperands) {
  const TargetShape shape;
  EXPECT_FALSE(planGemm(plain(GemmElement::F32, 50, 60, 70, 0), shape).swapped);
  EXPECT_TRUE(planGemm(plain(GemmElement::F32, 50, 60, 70, 4), shape).swapped);
  EXPECT_FALSE(planGemm(plain(GemmElement::F32, 50, 60, 70, 4), shape).scatterC);
  EXPECT_TRUE(planGemm(plain(GemmElement::F32, 50, 60, 70, 16), shape).scatterC);
}

TEST(GemmPlan, LettersMergeOnlyInAllOperands) {
  const TargetShape shape;
  GemmDesc desc = plain(GemmElement::F32, 12, 20, 30, 0);
  // Rows as 3 x 4, laid out alike in A and C.
  desc.letters[0] = {.group = GemmGroup::Rows, .size = 3, .strideA = 4 * 30, .strideC = 4 * 20};
  desc.letters.push_back({.group = GemmGroup::Rows, .size = 4, .strideA = 30, .strideC = 20});
  EXPECT_EQ(12, planGemm(desc, shape).m.size);
  EXPECT_TRUE(planGemm(desc, shape).loops.empty());
  // A minor letter with a live size of its own stays a loop.
  desc.letters[3].liveSlot = 0;
  EXPECT_EQ(1u, planGemm(desc, shape).loops.size());
}

TEST(GemmPlan, NineLoopsDoNotFit) {
  GemmDesc desc = plain(GemmElement::F32, 4, 4, 4, 0);
  for (std::int64_t i = 0; i < 9; ++i) {
    desc.letters.push_back(
        {.group = GemmGroup::Batch, .size = 2, .strideA = 100 + i * i, .strideB = 70 + i, .strideC = 16 << i});
  }
  EXPECT_FALSE(gemmFits(desc));
}

// ---- targets

TEST(GemmObjects, CompileForEveryTarget) {
  std::vector<GemmDesc> descs{plain(GemmElement::F32, 70, 100, 50, 0), plain(GemmElement::F64, 70, 101, 50, 3),
                              plain(GemmElement::F32, 3, 45, 50, 0)};
  const std::pair<const char*, const char*> targets[] = {{"x86_64-linux-gnu", "x86-64"},
                                                         {"x86_64-linux-gnu", "x86-64-v3"},
                                                         {"x86_64-linux-gnu", "x86-64-v4"},
                                                         {"aarch64-linux-gnu", ""},
                                                         {"aarch64-linux-gnu", "neoverse-n1"}};
  for (const auto& [triple, cpu] : targets) {
    const std::unique_ptr<Target> target = targetFor(cpu, triple);
    ASSERT_TRUE(target);
    std::vector<GemmPlan> plans;
    for (const GemmDesc& desc : descs) plans.push_back(planGemm(desc, target->shape()));
    const std::string object = gemmObject(plans, *target);
    EXPECT_EQ(0, object.compare(0, 4, "\177ELF")) << triple;
    EXPECT_EQ(object, gemmObject(plans, *target)) << "objects differ from run to run: " << triple;
  }
}

TEST(GemmObjects, KernelsUseTheWidestVectorsWithoutSpills) {
  const std::pair<const char*, const char*> targets[] = {{"x86-64-v4", "zmm"}, {"x86-64-v3", "ymm"}};
  for (const auto& [cpu, reg] : targets) {
    const std::unique_ptr<Target> target = targetFor(cpu, "x86_64-linux-gnu");
    const std::string text =
        gemmAssembly({planGemm(plain(GemmElement::F32, 1400, 1440, 500, 0), target->shape())}, *target);
    const std::size_t begin = text.find("gshard_gemm_kernel_f32");
    const std::string kernel = text.substr(begin, text.find(".Lfunc_end", begin) - begin);
    EXPECT_NE(std::string::npos, kernel.find("vfmadd"));
    EXPECT_NE(std::string::npos, kernel.find(reg));
    EXPECT_EQ(std::string::npos, kernel.find("(%rsp)")) << "a register is spilled on " << cpu;
  }
}

TEST(GemmObjects, EqualProductsShareCode) {
  const std::unique_ptr<Target> target = targetFor("x86-64-v3", "x86_64-linux-gnu");
  const GemmPlan one = planGemm(plain(GemmElement::F32, 70, 100, 50, 0), target->shape());
  const std::string once = gemmAssembly({one}, *target), twice = gemmAssembly({one, one}, *target);
  const auto count = [](const std::string& text, const std::string& word) {
    int found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
    return found;
  };
  EXPECT_GT(count(once, "@function"), 0);
  EXPECT_EQ(count(once, "@function"), count(twice, "@function"));
}

TEST(LlvmTarget, UnknownNamesAreExplained) {
  std::string error;
  EXPECT_FALSE(Target::create({.triple = "", .cpu = "pentagon"}, error));
  EXPECT_NE(std::string::npos, error.find("pentagon"));
  EXPECT_FALSE(Target::create({.triple = "tricorder-unknown-none", .cpu = ""}, error));
  EXPECT_FALSE(Target::create({.triple = "riscv64-linux-gnu", .cpu = ""}, error));
  EXPECT_FALSE(Target::create({.triple = "aarch64-linux-gnu", .cpu = "native"}, error) && !machineRuns("x86-64"));
}

TEST(LlvmTarget, ShapesOfKnownCpus) {
  EXPECT_EQ(4, targetFor("x86-64", "x86_64-linux-gnu")->shape().lanes(4));
  EXPECT_FALSE(targetFor("x86-64", "x86_64-linux-gnu")->shape().hasFma);
  EXPECT_EQ(8, targetFor("haswell", "x86_64-linux-gnu")->shape().lanes(4));
  EXPECT_EQ(16, targetFor("znver4", "x86_64-linux-gnu")->shape().lanes(4));
  EXPECT_EQ(4, targetFor("", "aarch64-linux-gnu")->shape().lanes(4));
  EXPECT_EQ(32, targetFor("", "aarch64-linux-gnu")->shape().vectorRegisters);
}

}  // namespace
}  // namespace gshard
