// From a contraction's letters to the core product, its tile and its blocks. Pure functions of the description and the
// target's shape; apart from the emitter so that every choice is tested without LLVM.
#include <algorithm>
#include <optional>

#include "codegen/gemm.h"
#include "runtime/gemm_abi.h"
#include "support/check.h"

namespace gshard {

static constexpr std::int64_t kAlignment = 64;

static std::int64_t ceilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
static std::int64_t roundUp(std::int64_t a, std::int64_t b) {
  return ceilDiv(a, b) * b;
}
static std::int64_t elementBytes(GemmElement element) {
  return element == GemmElement::F32 ? 4 : 8;
}

// ---- letters

static GemmSide sideOf(const GemmDesc& desc, int index) {
  const GemmLetter& letter = desc.letters[static_cast<std::size_t>(index)];
  GemmSide side;
  side.size = letter.size;
  side.strideA = letter.group == GemmGroup::Columns ? 0 : letter.strideA;
  side.strideB = letter.group == GemmGroup::Rows ? 0 : letter.strideB;
  side.strideC = letter.group == GemmGroup::Sum ? 0 : letter.strideC;
  side.liveSlot = letter.liveSlot;
  side.letters = {index};
  return side;
}

// Two letters are one when a step of the major is `minor.size` steps of the minor in every operand. A minor letter with
// a live size of its own would leave holes.
static bool merges(const GemmSide& major, const GemmSide& minor) {
  return minor.liveSlot < 0 && major.strideA == minor.strideA * minor.size &&
         major.strideB == minor.strideB * minor.size && major.strideC == minor.strideC * minor.size;
}

static void mergeLetters(std::vector<GemmSide>& sides) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < sides.size() && !changed; ++i) {
      for (std::size_t j = 0; j < sides.size() && !changed; ++j) {
        if (i == j || !merges(sides[i], sides[j])) continue;
        GemmSide merged = sides[j];
        merged.size = sides[i].size * sides[j].size;
        merged.liveSlot = sides[i].liveSlot;
        merged.liveFactor = sides[i].liveFactor * sides[j].size;
        merged.letters = sides[i].letters;
        merged.letters.insert(merged.letters.end(), sides[j].letters.begin(), sides[j].letters.end());
        sides[i] = merged;
        sides.erase(sides.begin() + static_cast<std::ptrdiff_t>(j));
        changed = true;
      }
    }
  }
}

struct Groups {
  std::vector<GemmSide> batch, rows, columns, sum;
};

static Groups groupLetters(const GemmDesc& desc) {
  Groups groups;
  for (std::size_t i = 0; i < desc.letters.size(); ++i) {
    const GemmLetter& letter = desc.letters[i];
    const GemmSide side = sideOf(desc, static_cast<int>(i));
    // A letter of one value is no loop; one of a sum may still be empty on some device.
    if (letter.size == 1 && (letter.group != GemmGroup::Sum || letter.liveSlot < 0)) continue;
    switch (letter.group) {
      case GemmGroup::Batch:
        groups.batch.push_back(side);
        break;
      case GemmGroup::Rows:
        groups.rows.push_back(side);
        break;
      case GemmGroup::Columns:
        groups.columns.push_back(side);
        break;
      case GemmGroup::Sum:
        groups.sum.push_back(side);
        break;
    }
  }
  mergeLetters(groups.batch);
  mergeLetters(groups.rows);
  mergeLetters(groups.columns);
  mergeLetters(groups.sum);
  return groups;
}

static std::optional<std::size_t> adjacentInC(const std::vector<GemmSide>& sides) {
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (sides[i].strideC == 1) return i;
  }
  return std::nullopt;
}

static std::optional<std::size_t> largest(const std::vector<GemmSide>& sides) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (!best || sides[i].size >= sides[*best].size) best = i;
  }
  return best;
}

static GemmSide takeCore(std::vector<GemmSide>& sides, std::optional<std::size_t> index) {
  if (!index) return {};
  GemmSide core = sides[*index];
  sides.erase(sides.begin() + static_cast<std::ptrdiff_t>(*index));
  return core;
}

static void exchangeOperands(Groups& groups) {
  std::swap(groups.rows, groups.columns);
  for (std::vector<GemmSide>* sides : {&groups.batch, &groups.rows, &groups.columns, &groups.sum}) {
    for (GemmSide& side : *sides) std::swap(side.strideA, side.strideB);
  }
}

static void chooseCore(Groups groups, GemmPlan& plan) {
  if (!adjacentInC(groups.columns) && (adjacentInC(groups.rows) || groups.columns.empty())) {
    exchangeOperands(groups);
    plan.swapped = true;
  }
  const std::optional<std::size_t> adjacent = adjacentInC(groups.columns);
  plan.n = takeCore(groups.columns, adjacent ? adjacent : largest(groups.columns));
  plan.m = takeCore(groups.rows, largest(groups.rows));
  plan.k = takeCore(groups.sum, largest(groups.sum));
  plan.scatterC = plan.n.size > 1 && plan.n.strideC != 1;
  if (plan.n.size == 1) plan.n.strideC = 1;
  for (const std::vector<GemmSide>* sides : {&groups.batch, &groups.rows, &groups.columns}) {
    for (const GemmSide& side : *sides) plan.loops.push_back({side, false});
  }
  for (const GemmSide& side : groups.sum) plan.loops.push_back({side, true});
}

// A large transposed operand beside a small one, where packing the large one would cost as much as the product: a few
// rows against a transposed B (dX = dY * W^T for a small batch), a transposed A against a few columns (dW = X^T * dY of
// a last layer, P^T * dY of an attention head). With the operands exchanged the large one is read in place, and only
// the small result is scattered.
static void exchangeIfTransposed(std::int64_t lanes, GemmPlan& plan) {
  constexpr std::int64_t kMostLines = 64, kLeastSteps = 128;
  if (plan.scatterC || plan.k.size < kLeastSteps) return;
  const auto isSmall = [&](const GemmSide& side, const GemmSide& other) {
    return 2 * side.size >= lanes && side.size <= kMostLines && other.size >= 2 * side.size;
  };
  const bool transposedB = plan.n.size > 1 && plan.n.strideB != 1 && plan.k.strideB == 1;
  const bool transposedA = plan.m.size > 1 && plan.m.strideA == 1 && plan.k.strideA != 1;
  if (!(transposedB && isSmall(plan.m, plan.n)) && !(transposedA && isSmall(plan.n, plan.m))) return;
  std::swap(plan.m, plan.n);
  for (GemmSide* side : {&plan.m, &plan.n, &plan.k}) std::swap(side->strideA, side->strideB);
  for (GemmLoop& loop : plan.loops) std::swap(loop.side.strideA, loop.side.strideB);
  plan.swapped = !plan.swapped;
  plan.scatterC = true;
}

// ---- tile and blocks

namespace {
struct RegisterTile {
  std::int64_t height, vectors;
};
}  // namespace

// The tallest tile of so many vectors: sums, vectors of B and one broadcast (two values without FMA, where the product
// needs a register of its own) fit the registers.
static RegisterTile tallest(std::int64_t vectors, const TargetShape& shape) {
  constexpr std::int64_t kMostRows = 24;  // beyond, code grows and nothing gets faster
  const std::int64_t spare = shape.hasFma ? 1 : 2;
  return {std::clamp<std::int64_t>((shape.vectorRegisters - spare - vectors) / vectors, 1, kMostRows), vectors};
}

struct Panels {
  std::int64_t count, height, tall;  // balanced: `tall` panels have `height` rows, the others one less
};

static Panels balancedPanels(std::int64_t size, std::int64_t mostHeight) {
  const std::int64_t count = ceilDiv(size, mostHeight);
  const std::int64_t height = std::max<std::int64_t>(1, ceilDiv(size, std::max<std::int64_t>(1, count)));
  return {count, height, size - count * (height - 1)};
}

// Half cycles of one step of k at two multiply-adds and two loads a cycle, four cycles of latency.
static std::int64_t stepCost(std::int64_t height, std::int64_t vectors) {
  if (height == 0 || vectors == 0) return 0;
  return std::max<std::int64_t>({height * vectors, height + vectors, 8});
}

static std::int64_t tileCost(std::int64_t rows, std::int64_t vectorsN, const RegisterTile& tile) {
  const Panels panels = balancedPanels(rows, tile.height);
  const std::int64_t whole = vectorsN / tile.vectors, rest = vectorsN % tile.vectors;
  const auto cost = [&](std::int64_t height) {
    return whole * stepCost(height, tile.vectors) + stepCost(height, rest);
  };
  return panels.tall * cost(panels.height) + (panels.count - panels.tall) * cost(panels.height - 1);
}

static constexpr std::int64_t kSkinnyPanels = 2;  // so few readings of B never pay for a copy

// Better of two tiles of equal cost: one that leaves B in place, then most sums in flight, then B read less often, then
// fewest loads.
static bool isBetter(const RegisterTile& tile, const RegisterTile& other, std::int64_t rows) {
  const auto panels = [rows](const RegisterTile& each) { return ceilDiv(rows, each.height); };
  const auto skinny = [&](const RegisterTile& each) { return panels(each) <= kSkinnyPanels; };
  const auto sums = [&](const RegisterTile& each) {
    return each.vectors * (skinny(each) ? balancedPanels(rows, each.height).height : each.height);
  };
  if (skinny(tile) != skinny(other)) return skinny(tile);
  if (sums(tile) != sums(other)) return sums(tile) > sums(other);
  if (skinny(tile) && panels(tile) != panels(other)) return panels(tile) < panels(other);
  return tile.height + tile.vectors < other.height + other.vectors;
}

// Of the tiles that fit the registers, the cheapest; those within 2% count as equal. Large products get 14 x 2 at 32
// registers, 4 x 3 at 16 (toolchain.md, section 4); few rows or columns give other shapes.
static RegisterTile chooseTile(std::int64_t rows, std::int64_t vectorsN, const TargetShape& shape) {
  const std::int64_t mostVectors = std::clamp<std::int64_t>(vectorsN, 1, 6);
  std::int64_t least = tileCost(rows, vectorsN, tallest(1, shape));
  for (std::int64_t vectors = 2; vectors <= mostVectors; ++vectors) {
    least = std::min(least, tileCost(rows, vectorsN, tallest(vectors, shape)));
  }
  RegisterTile best{1, 1};
  for (std::int64_t vectors = 1; vectors <= mostVectors; ++vectors) {
    const RegisterTile tile = tallest(vectors, shape);
    if (50 * tileCost(rows, vectorsN, tile) <= 51 * least && isBetter(tile, best, rows)) best = tile;
  }
  return best;
}

// Lines of L1 that fall into one set when `count` rows lie `stride` bytes apart; 8 ways of 4 KiB are what both AMD and
// Intel have had for long (12 on the newest).
static std::int64_t linesPerSet(std::int64_t count, std::int64_t stride) {
  constexpr std::int64_t kSets = 64, kLine = 64;
  std::int64_t uses[kSets] = {}, most = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t set = ((row * stride / kLine) % kSets + kSets) % kSets;
    most = std::max(most, ++uses[set]);
  }
  return most;
}

static constexpr std::int64_t kLinesPerSet = 6;  // two of eight ways are left to B
static constexpr std::int64_t kLeastHeight = 6;  // enough sums in flight, nearly

static constexpr std::int64_t kMaxBlockK = 1024;
static constexpr std::int64_t kMaxPrefetchedK = 256;  // what is fetched ahead has to stay in L1 and L2 until it is used
static constexpr std::int64_t kMaxBlockColumns = 2048;
static constexpr std::int64_t kBlockBytesPackedA = 4 * 1024 * 1024;

static void shapePanels(const TargetShape& shape, GemmPlan& plan) {
  const std::int64_t bytes = elementBytes(plan.element);
  plan.vectorLanes = shape.lanes(bytes);
  RegisterTile tile = chooseTile(plan.m.size, ceilDiv(plan.n.size, plan.vectorLanes), shape);
  if (plan.scatterC && plan.k.strideA == 1) {
    while (tile.height > kLeastHeight && linesPerSet(tile.height, plan.m.strideA * bytes) > kLinesPerSet) --tile.height;
  }
  const Panels panels = balancedPanels(plan.m.size, tile.height);
  plan.panelsM = panels.count;
  plan.height = panels.height;
  plan.tallPanels = panels.tall;
  plan.width = tile.vectors * plan.vectorLanes;
  plan.panelsN = ceilDiv(plan.n.size, plan.width);
  plan.lastWidth = plan.n.size - std::max<std::int64_t>(0, plan.panelsN - 1) * plan.width;
}

static void chooseBlocks(const TargetShape& shape, GemmPlan& plan) {
  const std::int64_t bytes = elementBytes(plan.element);
  const std::int64_t limitK = plan.prefetchB ? kMaxPrefetchedK : kMaxBlockK;
  const std::int64_t maxK = std::max<std::int64_t>(64, std::min(limitK, shape.l2Bytes / (4 * bytes * plan.width)));
  plan.blockK = std::max<std::int64_t>(1, ceilDiv(plan.k.size, ceilDiv(std::max<std::int64_t>(1, plan.k.size), maxK)));
  const auto balanced = [](std::int64_t panels, std::int64_t limit) {
    const std::int64_t most = std::max<std::int64_t>(1, limit);
    return panels == 0 ? 1 : ceilDiv(panels, ceilDiv(panels, most));
  };
  const std::int64_t rowBytes = plan.blockK * bytes;
  plan.blockPanelsM = balanced(plan.panelsM, shape.l2Bytes / 2 / rowBytes / plan.height);
  // A packed A is packed again for every block of columns, so those are wide; B then streams from L3.
  const std::int64_t bytesB = plan.accessA == GemmAccess::Packed ? kBlockBytesPackedA : 2 * shape.l2Bytes;
  plan.blockPanelsN = balanced(plan.panelsN, std::min(kMaxBlockColumns, bytesB / rowBytes) / plan.width);
}

// Reading in place saves the copy; it loses when rows evict each other, or when an operand is read so often, from so
// many pages, that the copy is soon paid. Figures: bench/gemm on Zen 4 with AVX-512 and with AVX2, and toolchain.md
// section 4.
static GemmAccess accessOfA(const GemmPlan& plan) {
  if (plan.panelsN <= 1) return GemmAccess::InPlace;
  const bool steadyRows = plan.k.strideA == 1 || plan.k.size == 1;
  const std::int64_t stride = plan.m.strideA * elementBytes(plan.element);
  return steadyRows && linesPerSet(plan.height, stride) <= kLinesPerSet ? GemmAccess::InPlace : GemmAccess::Packed;
}

static GemmAccess accessOfB(const TargetShape& shape, const GemmPlan& plan) {
  const bool masked = plan.lastWidth % plan.vectorLanes != 0;
  const bool adjacent = plan.n.size == 1 || plan.n.strideB == 1;
  if (!adjacent || (masked && !shape.hasMaskedLoads)) return GemmAccess::Packed;
  if (plan.panelsM <= kSkinnyPanels) return GemmAccess::InPlace;
  const std::int64_t bytes = plan.k.size * plan.n.size * elementBytes(plan.element);
  const bool wide = shape.vectorBytes == 64;
  const bool conflicts = plan.k.strideB * elementBytes(plan.element) % 2048 == 0 && !wide;
  const bool fits = bytes <= (wide ? shape.l2Bytes : shape.l2Bytes / 2);
  constexpr std::int64_t kPanelsThatPayForPacking = 64;
  return fits && !conflicts && plan.panelsM <= kPanelsThatPayForPacking ? GemmAccess::InPlace : GemmAccess::Packed;
}

static void chooseAccess(const TargetShape& shape, GemmPlan& plan) {
  if (plan.source != GemmSource::Element) return;  // packed, as they are widened on the way
  plan.accessA = accessOfA(plan);
  plan.accessB = accessOfB(shape, plan);
  const std::int64_t bytesB = plan.k.size * plan.n.size * elementBytes(plan.element);
  // Bound by reading B once: hardware does not see the next columns coming.
  plan.prefetchB = plan.accessB == GemmAccess::InPlace && plan.panelsM <= kSkinnyPanels && bytesB > shape.l2Bytes / 8;
}

static bool planLetters(const GemmDesc& desc, GemmPlan& plan) {
  plan.element = desc.element;
  plan.source = desc.source;
  plan.addToC = desc.addToC;
  plan.skipsEmpty = desc.skipsEmpty;
  plan.epilogue = desc.epilogue;
  chooseCore(groupLetters(desc), plan);
  return plan.loops.size() <= static_cast<std::size_t>(GSHARD_RT_GEMM_MAX_LOOPS);
}

bool gemmFits(const GemmDesc& desc) {
  GemmPlan plan;
  return planLetters(desc, plan);
}

GemmPlan planGemm(const GemmDesc& desc, const TargetShape& shape) {
  GemmPlan plan;
  GSHARD_CHECK(planLetters(desc, plan), "a product has more loops outside its core than gemm_abi.h allows");
  exchangeIfTransposed(shape.lanes(elementBytes(plan.element)), plan);
  shapePanels(shape, plan);
  chooseAccess(shape, plan);
  chooseBlocks(shape, plan);
  return plan;
}

// ---- what callers ask

std::int64_t sourceBytes(GemmElement element, GemmSource source) {
  return source == GemmSource::Element ? elementBytes(element) : 2;
}

std::int64_t GemmPlan::packedWidth(std::int64_t columns) const {
  return roundUp(columns, vectorLanes);
}

std::int64_t GemmPlan::workspaceBytesA() const {
  if (accessA == GemmAccess::InPlace) return 0;
  return roundUp(blockPanelsM * height * blockK * elementBytes(element), kAlignment);
}

std::int64_t GemmPlan::workspaceBytesB() const {
  if (accessB == GemmAccess::InPlace) return 0;
  return roundUp(blockPanelsN * width * blockK * elementBytes(element), kAlignment);
}

std::int64_t GemmPlan::workspaceBytesTile() const {
  return scatterC ? roundUp(height * width * elementBytes(element), kAlignment) : 0;
}

std::int64_t GemmPlan::workspaceBytes(std::int64_t threads) const {
  return threads * (workspaceBytesA() + workspaceBytesB() + workspaceBytesTile());
}

double GemmPlan::flops() const {
  double product = 2.0 * static_cast<double>(m.size) * static_cast<double>(n.size) * static_cast<double>(k.size);
  for (const GemmLoop& loop : loops) product *= static_cast<double>(loop.side.size);
  return product;
}

static void appendSide(std::string& text, const GemmSide& side) {
  for (const std::int64_t value : {side.size, side.strideA, side.strideB, side.strideC,
                                   static_cast<std::int64_t>(side.liveSlot), side.liveFactor}) {
    text += std::to_string(value) + ',';
  }
  text += ';';
}

std::string GemmPlan::key() const {
  std::string text = element == GemmElement::F32 ? "f32;" : "f64;";
  text += source == GemmSource::Element ? "" : source == GemmSource::BF16 ? "bf16;" : "f16;";
  text += addToC ? "add;" : "set;";
  if (skipsEmpty) text += "skips;";
  text += epilogue + (swapped ? ";swapped;" : ";;");
  appendSide(text, m);
  appendSide(text, n);
  appendSide(text, k);
  for (const GemmLoop& loop : loops) {
    text += loop.isSum ? "sum:" : "loop:";
    appendSide(text, loop.side);
  }
  // Tile, blocks and access follow from the above and the target, but tests plan them by hand.
  for (const std::int64_t value :
       {vectorLanes, height, width, static_cast<std::int64_t>(accessA), static_cast<std::int64_t>(accessB), blockK,
        blockPanelsM, blockPanelsN, static_cast<std::int64_t>(prefetchB)}) {
    text += std::to_string(value) + ',';
  }
  return text;
}

}  // namespace gshard
