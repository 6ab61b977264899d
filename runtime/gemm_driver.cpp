// Walks the blocks of a matrix product and calls generated kernels; all that depends on the machine is in the
// descriptor. Threads share nothing: each takes part of the outer loops or whole panels, and packs for itself, because
// the barriers of a shared packed block cost more than packing twice.
#include "runtime/gemm_driver.h"

#include <algorithm>
#include <utility>

namespace gshard::runtime {
namespace {

struct Range {
  int64_t begin, end;
};

Range partOf(int64_t count, int64_t thread, int64_t threads) {
  return {count * thread / threads, count * (thread + 1) / threads};
}

const char* advance(const void* base, int64_t bytes) {
  return static_cast<const char*>(base) + bytes;
}
char* advance(void* base, int64_t bytes) {
  return static_cast<char*>(base) + bytes;
}

int64_t liveSize(int64_t size, int64_t slot, int64_t factor, const int64_t* live) {
  return slot < 0 || !live ? size : std::min(size, live[slot] * factor);
}

// One core product: pointers at its first elements, and the panels that this thread computes.
class Product {
 public:
  Product(const gshard_rt_gemm_desc& desc, const int64_t* live, void* workspace, void* context)
      : desc_(desc),
        liveM_(liveSize(desc.m.size, desc.m.liveSlot, desc.m.liveFactor, live)),
        liveN_(liveSize(desc.n.size, desc.n.liveSlot, desc.n.liveFactor, live)),
        liveK_(liveSize(desc.k.size, desc.k.liveSlot, desc.k.liveFactor, live)),
        packedA_(static_cast<char*>(workspace)),
        packedB_(packedA_ + desc.workspaceA),
        tile_(packedB_ + desc.workspaceB),
        context_(context) {}

  int64_t usedPanelsN() const { return (liveN_ + desc_.width - 1) / desc_.width; }
  int64_t usedPanelsM() const {
    int64_t panels = desc_.panelsM;
    while (panels > 0 && firstRow(panels - 1) >= liveM_) --panels;
    return panels;
  }

  int64_t liveK() const { return liveK_; }

  // `last`: no later call adds to this part. With no steps the result is 0, or what it was if `accumulate`.
  void run(const char* a, const char* b, char* c, int64_t allSteps, bool accumulate, bool last, const int64_t* loops,
           Range panelsM, Range panelsN) {
    a_ = a;
    b_ = b;
    c_ = c;
    loops_ = loops;
    for (int64_t n = panelsN.begin; n < panelsN.end; n += desc_.blockPanelsN) {
      const Range blockN{n, std::min(n + desc_.blockPanelsN, panelsN.end)};
      int64_t k = 0;
      do {
        const int64_t steps = std::min(desc_.blockK, allSteps - k);
        runSteps(k, steps, accumulate || k > 0, last && k + steps >= allSteps, panelsM, blockN);
        k += desc_.blockK;
      } while (k < allSteps);
    }
  }

 private:
  int64_t firstRow(int64_t panel) const {
    return panel * desc_.height - std::max<int64_t>(0, panel - desc_.tallPanels);
  }
  int64_t heightKind(int64_t panel) const { return panel < desc_.tallPanels ? 0 : 1; }
  int64_t widthKind(int64_t panel) const { return panel + 1 == desc_.panelsN ? 1 : 0; }
  int64_t widthOf(int64_t panel) const { return widthKind(panel) ? desc_.lastWidth : desc_.width; }

  void runSteps(int64_t k, int64_t steps, bool accumulate, bool last, Range panelsM, Range blockN) {
    if (desc_.packB[1]) packB(k, steps, blockN);
    for (int64_t m = panelsM.begin; m < panelsM.end; m += desc_.blockPanelsM) {
      const Range blockM{m, std::min(m + desc_.blockPanelsM, panelsM.end)};
      if (packsA()) packA(k, steps, blockM);
      if (desc_.skipsEmpty) findStepsOfA(k, steps, blockM);
      for (int64_t panelN = blockN.begin; panelN < blockN.end; ++panelN) {
        runColumn(k, steps, accumulate, blockM, blockN, panelN);
        if (last && desc_.epilogue) finish(blockM, panelN);
      }
    }
  }

  bool packsA() const { return desc_.packA[0] || desc_.packA[1]; }

  // Runs of panels of one size go to one call.
  void packA(int64_t k, int64_t steps, Range block) {
    const int64_t border = std::clamp(desc_.tallPanels, block.begin, block.end);
    packRun(desc_.packA[0], k, steps, block.begin, border, block.begin);
    packRun(desc_.packA[1], k, steps, border, block.end, block.begin);
  }
  void packRun(gshard_rt_gemm_pack pack, int64_t k, int64_t steps, int64_t begin, int64_t end, int64_t blockBegin) {
    if (begin == end) return;
    pack(steps, end - begin, advance(a_, firstRow(begin) * desc_.m.strideA + k * desc_.k.strideA),
         packedPanelA(begin, blockBegin, steps), desc_.m.strideA / desc_.sourceBytes,
         desc_.k.strideA / desc_.sourceBytes);
  }
  char* packedPanelA(int64_t panel, int64_t blockBegin, int64_t steps) {
    return advance(packedA_, (firstRow(panel) - firstRow(blockBegin)) * steps * desc_.elementBytes);
  }

  void packB(int64_t k, int64_t steps, Range block) {
    const int64_t full = std::min(block.end, desc_.panelsN - 1) - block.begin;
    const char* source = advance(b_, block.begin * desc_.width * desc_.n.strideB + k * desc_.k.strideB);
    const int64_t strideLine = desc_.n.strideB / desc_.sourceBytes, strideK = desc_.k.strideB / desc_.sourceBytes;
    if (full > 0) desc_.packB[0](steps, full, source, packedB_, strideLine, strideK);
    if (block.end == desc_.panelsN) {
      desc_.packB[1](steps, 1, advance(source, full * desc_.width * desc_.n.strideB), packedPanelB(full, steps),
                     strideLine, strideK);
    }
  }
  char* packedPanelB(int64_t index, int64_t steps) {
    return advance(packedB_, index * steps * desc_.packedWidthB * desc_.elementBytes);
  }

  // ---- empty rows: how many steps of a panel there are up to the last that is not all zeros

  // Of a row of `count` elements, whatever the sign of its zeros.
  bool isZero(const char* row, int64_t count) const {
    if (desc_.elementBytes == 4) return isZeroAs<uint32_t>(row, count);
    return isZeroAs<uint64_t>(row, count);
  }
  template <class Bits>
  static bool isZeroAs(const char* row, int64_t count) {
    const Bits* bits = reinterpret_cast<const Bits*>(row);
    for (int64_t i = 0; i < count; ++i) {
      if (static_cast<Bits>(bits[i] << 1) != 0) return false;
    }
    return true;
  }

  int64_t stepsOf(const char* panel, int64_t steps, int64_t width, int64_t stride) const {
    while (steps > 0 && isZero(panel + (steps - 1) * stride, width)) --steps;
    return steps;
  }
  // Of a packed panel of B, without its padding.
  int64_t stepsOfB(const char* panel, int64_t steps, int64_t panelN) const {
    return stepsOf(panel, steps, widthOf(panelN), desc_.strides[0][widthKind(panelN)].bK);
  }
  void findStepsOfA(int64_t k, int64_t steps, Range block) {
    for (int64_t panel = block.begin; panel < std::min(block.end, block.begin + kKnownPanels); ++panel) {
      const int64_t rows = desc_.height - heightKind(panel);
      int64_t& found = stepsOfA_[panel - block.begin];
      if (packsA()) {
        found = stepsOf(packedPanelA(panel, block.begin, steps), steps, rows, rows * desc_.elementBytes);
        continue;
      }
      found = desc_.k.strideA == desc_.elementBytes ? 0 : steps;
      const char* first = advance(a_, firstRow(panel) * desc_.m.strideA + k * desc_.k.strideA);
      for (int64_t row = 0; row < rows && found < steps; ++row)
        found = std::max(found, stepsOf(first + row * desc_.m.strideA, steps, 1, desc_.elementBytes));
    }
  }

  void runColumn(int64_t k, int64_t steps, bool accumulate, Range blockM, Range blockN, int64_t panelN) {
    const char* b = desc_.packB[1] ? packedPanelB(panelN - blockN.begin, steps)
                                   : advance(b_, panelN * desc_.width * desc_.n.strideB + k * desc_.k.strideB);
    const bool inPlaceA = !packsA();
    const int64_t most = desc_.skipsEmpty && desc_.packB[1] ? stepsOfB(b, steps, panelN) : steps;
    for (int64_t panelM = blockM.begin; panelM < blockM.end; ++panelM) {
      const char* a = inPlaceA ? advance(a_, firstRow(panelM) * desc_.m.strideA + k * desc_.k.strideA)
                               : packedPanelA(panelM, blockM.begin, steps);
      char* c = advance(c_, firstRow(panelM) * desc_.m.strideC + panelN * desc_.width * desc_.n.strideC);
      const gshard_rt_gemm_kernel kernel = desc_.kernels[heightKind(panelM)][widthKind(panelN)];
      const gshard_rt_gemm_strides* strides = &desc_.strides[heightKind(panelM)][widthKind(panelN)];
      const int64_t index = panelM - blockM.begin;
      const int64_t needed = desc_.skipsEmpty && index < kKnownPanels ? std::min(most, stepsOfA_[index]) : most;
      if (needed == 0 && accumulate) continue;
      if (!desc_.scatterC) {
        kernel(needed, a, b, c, accumulate, strides);
        continue;
      }
      const int64_t rows = desc_.height - heightKind(panelM), columns = widthOf(panelN);
      if (accumulate) copyTile(c, rows, columns, false);
      kernel(needed, a, b, tile_, accumulate, strides);
      copyTile(c, rows, columns, true);
    }
  }

  // Between the result, whose columns are apart, and the tile.
  void copyTile(char* c, int64_t rows, int64_t columns, bool toResult) {
    if (desc_.elementBytes == 4)
      copyElements(reinterpret_cast<int32_t*>(c), rows, columns, toResult);
    else
      copyElements(reinterpret_cast<int64_t*>(c), rows, columns, toResult);
  }

  template <class Bits>
  void copyElements(Bits* c, int64_t rows, int64_t columns, bool toResult) {
    Bits* tile = reinterpret_cast<Bits*>(tile_);
    const int64_t rowStride = desc_.m.strideC / desc_.elementBytes, columnStride = desc_.n.strideC / desc_.elementBytes;
    for (int64_t column = 0; column < columns; ++column) {
      Bits* outside = c + column * columnStride;
      Bits* inside = tile + column;
      if (toResult) {
        for (int64_t row = 0; row < rows; ++row) outside[row * rowStride] = inside[row * desc_.width];
      } else {
        for (int64_t row = 0; row < rows; ++row) inside[row * desc_.width] = outside[row * rowStride];
      }
    }
  }

  void finish(Range blockM, int64_t panelN) {
    const int64_t row = firstRow(blockM.begin);
    desc_.epilogue(context_, loops_, row, firstRow(blockM.end) - row, panelN * desc_.width, widthOf(panelN));
  }

  static constexpr int64_t kKnownPanels = 256;  // of a block of A; further ones are taken for full

  const gshard_rt_gemm_desc& desc_;
  int64_t stepsOfA_[kKnownPanels];
  const int64_t liveM_, liveN_, liveK_;
  char* packedA_;
  char* packedB_;
  char* tile_;
  void* context_;
  const char* a_ = nullptr;
  const char* b_ = nullptr;
  char* c_ = nullptr;
  const int64_t* loops_ = nullptr;
};

// The loops outside the core: those of batch letters are cut into items, those of sums run inside each item.
class Loops {
 public:
  Loops(const gshard_rt_gemm_desc& desc, const int64_t* live) : desc_(desc) {
    for (int64_t i = 0; i < desc.loopCount; ++i) {
      const gshard_rt_gemm_loop& loop = desc.loops[i];
      counts_[i] = liveSize(loop.count, loop.liveSlot, loop.liveFactor, live);
      (loop.isSum ? sums_ : items_) *= counts_[i];
    }
  }

  int64_t items() const { return items_; }

  void runItem(int64_t item, Product& product, const char* a, const char* b, char* c, Range panelsM, Range panelsN) {
    int64_t firstSum = desc_.loopCount;
    while (firstSum > 0 && desc_.loops[firstSum - 1].isSum) --firstSum;
    setIndices(item, 0, firstSum);
    // A sum over nothing is still written: one round with no steps.
    const int64_t rounds = std::max<int64_t>(1, sums_);
    const int64_t steps = sums_ == 0 ? 0 : product.liveK();
    for (int64_t sum = 0; sum < rounds; ++sum) {
      setIndices(sum, firstSum, desc_.loopCount);
      const bool accumulate = desc_.addToC || sum > 0;
      product.run(a + offset(&gshard_rt_gemm_loop::strideA), b + offset(&gshard_rt_gemm_loop::strideB),
                  c + offset(&gshard_rt_gemm_loop::strideC), steps, accumulate, sum + 1 == rounds, indices_, panelsM,
                  panelsN);
    }
  }

 private:
  void setIndices(int64_t flat, int64_t begin, int64_t end) {
    for (int64_t i = end; i-- > begin;) {
      const int64_t count = std::max<int64_t>(1, counts_[i]);
      indices_[i] = flat % count;
      flat /= count;
    }
  }

  int64_t offset(int64_t gshard_rt_gemm_loop::* stride) const {
    int64_t bytes = 0;
    for (int64_t i = 0; i < desc_.loopCount; ++i) bytes += indices_[i] * (desc_.loops[i].*stride);
    return bytes;
  }

  const gshard_rt_gemm_desc& desc_;
  int64_t counts_[GSHARD_RT_GEMM_MAX_LOOPS] = {};
  int64_t indices_[GSHARD_RT_GEMM_MAX_LOOPS] = {};
  int64_t items_ = 1, sums_ = 1;
};

// The larger side is cut, in whole panels.
void splitPanels(const gshard_rt_gemm_desc& desc, Range& panelsM, Range& panelsN, int64_t thread, int64_t threads) {
  const bool splitM = desc.m.size * 2 >= desc.n.size ? panelsM.end >= threads || panelsM.end >= panelsN.end
                                                     : panelsN.end < threads && panelsM.end >= panelsN.end;
  Range& cut = splitM ? panelsM : panelsN;
  cut = partOf(cut.end, thread, threads);
}

}  // namespace
}  // namespace gshard::runtime

extern "C" void gshard_rt_gemm(const gshard_rt_gemm_desc* desc, const void* a, const void* b, void* c, void* workspace,
                               const int64_t* live, void* context, int64_t thread, int64_t threads) {
  using namespace gshard::runtime;
  const int64_t perThread = desc->workspaceA + desc->workspaceB + desc->workspaceTile;
  Product product(*desc, live, static_cast<char*>(workspace) + thread * perThread, context);
  Loops loops(*desc, live);
  Range items{0, loops.items()};
  Range panelsM{0, product.usedPanelsM()}, panelsN{0, product.usedPanelsN()};
  if (items.end >= threads)
    items = partOf(items.end, thread, threads);
  else
    splitPanels(*desc, panelsM, panelsN, thread, threads);
  if (panelsM.begin == panelsM.end || panelsN.begin == panelsN.end) return;
  if (desc->swapped) std::swap(a, b);
  for (int64_t item = items.begin; item < items.end; ++item) {
    loops.runItem(item, product, static_cast<const char*>(a), static_cast<const char*>(b), static_cast<char*>(c),
                  panelsM, panelsN);
  }
}
