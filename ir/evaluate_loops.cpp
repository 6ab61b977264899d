// Loops of evaluate rules; see evaluate_loops.h. Also the two evaluate rules that many ops share.
#include "ir/evaluate_loops.h"

#include <cmath>
#include <limits>

#include "ir/op_rules.h"
#include "support/check.h"

namespace gshard {

std::vector<std::int64_t> liveSizes(const std::vector<Tile>& tiles) {
  std::vector<std::int64_t> sizes(tiles.size());
  for (std::size_t i = 0; i < tiles.size(); ++i) sizes[i] = tiles[i].live;
  return sizes;
}

std::int64_t flatOf(const Index& index, const std::vector<std::int64_t>& shape) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

Index indexOf(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  Index index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

Index toGlobal(const Index& local, const std::vector<Tile>& tiles) {
  Index global(local);
  for (std::size_t i = 0; i < global.size(); ++i) global[i] += tiles[i].offset;
  return global;
}

std::int64_t placeOf(const Index& global, const Tensor& tile, const std::vector<Tile>& tiles) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < global.size(); ++i) {
    const std::int64_t local = global[i] - tiles[i].offset;
    GSHARD_CHECK(local >= 0 && local < tiles[i].live, "index " + std::to_string(global[i]) + " of dim " +
                                                          std::to_string(i) + " is not in this device's tile of `" +
                                                          printType(tile.type) + "`");
    flat = flat * tile.type.shape[i] + local;
  }
  return flat;
}

void copyElement(const Tensor& from, std::int64_t place, Tensor& to, std::int64_t at) {
  const std::size_t source = static_cast<std::size_t>(place);
  const std::size_t target = static_cast<std::size_t>(at);
  if (from.isFloat()) {
    to.floats[target] = from.floats[source];
  } else {
    to.ints[target] = from.ints[source];
  }
}

Number numberAt(const Tensor& tensor, std::int64_t place) {
  if (tensor.isFloat()) return {tensor.floats[static_cast<std::size_t>(place)], 0};
  return {0, tensor.ints[static_cast<std::size_t>(place)]};
}

void storeNumber(Tensor& tensor, std::int64_t place, const Number& number) {
  if (tensor.isFloat()) {
    tensor.floats[static_cast<std::size_t>(place)] = roundTo(tensor.type.dtype, number.real);
  } else {
    tensor.ints[static_cast<std::size_t>(place)] = wrapTo(tensor.type.dtype, number.integer);
  }
}

namespace {
std::int64_t lowestOf(DType dtype) {
  if (dtype == DType::I32) return std::numeric_limits<std::int32_t>::min();
  return dtype == DType::I64 ? std::numeric_limits<std::int64_t>::min() : 0;
}

std::int64_t highestOf(DType dtype) {
  if (dtype == DType::I32) return std::numeric_limits<std::int32_t>::max();
  if (dtype == DType::I64) return std::numeric_limits<std::int64_t>::max();
  return dtype == DType::U8 ? 255 : 1;
}

// IEEE 754-2019 maximum: NaN wins, -0 < +0.
double maximumOf(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

// Integer sums and products wrap, in unsigned arithmetic where that is defined.
std::int64_t wrappingAdd(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrappingMul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
}  // namespace

Number identityOf(Reduction reduction, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (reduction) {
    case Reduction::Sum:
      return {-0.0, 0};
    case Reduction::Prod:
      return {1, 1};
    case Reduction::Max:
      return {-kInfinity, lowestOf(dtype)};
    case Reduction::Min:
      return {kInfinity, highestOf(dtype)};
    case Reduction::Any:
      return {0, 0};
    case Reduction::All:
      return {1, 1};
  }
  GSHARD_UNREACHABLE("Reduction");
}

Number reduceStep(Reduction reduction, DType dtype, const Number& a, const Number& b, bool rounded) {
  Number result;
  switch (reduction) {
    case Reduction::Sum:
      result = {a.real + b.real, wrappingAdd(a.integer, b.integer)};
      break;
    case Reduction::Prod:
      result = {a.real * b.real, wrappingMul(a.integer, b.integer)};
      break;
    case Reduction::Max:
      result = {maximumOf(a.real, b.real), a.integer > b.integer ? a.integer : b.integer};
      break;
    case Reduction::Min:
      result = {-maximumOf(-a.real, -b.real), a.integer < b.integer ? a.integer : b.integer};
      break;
    case Reduction::Any:
      result = {0, (a.integer | b.integer) != 0 ? 1 : 0};
      break;
    case Reduction::All:
      result = {0, a.integer != 0 && b.integer != 0 ? 1 : 0};
      break;
  }
  if (!isFloat(dtype)) result.integer = wrapTo(dtype, result.integer);
  if (isFloat(dtype) && rounded) result.real = roundTo(dtype, result.real);
  return result;
}

void evaluateIdentity(const OpView&, EvalFrame& frame) {
  for (std::size_t i = 0; i < frame.results.size(); ++i) {
    const Tensor& x = frame.in(i);
    const std::vector<Tile>& tiles = frame.resultTiles[i];
    forEachIndex(liveSizes(tiles), [&](const Index& local) {
      const std::int64_t place = flatOf(local, frame.out(i).type.shape);
      copyElement(x, placeOf(toGlobal(local, tiles), x, frame.operandTiles[i]), frame.out(i), place);
    });
  }
}

namespace {
// The operand index that a global result index reads through the map; nothing where it falls into padding.
std::optional<Index> sourceIndex(const std::vector<MoveDim>& map, const Index& global,
                                 const std::vector<std::int64_t>& shape) {
  Index source(shape.size(), 0);  // dims of size 1 that the map does not name are read at 0
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i].operandDim < 0) continue;
    const std::int64_t scaled = map[i].scale * global[i] + map[i].offset;
    if (scaled < 0 || scaled % map[i].divide != 0) return std::nullopt;
    const std::size_t dim = static_cast<std::size_t>(map[i].operandDim);
    source[dim] = scaled / map[i].divide;
    if (source[dim] >= shape[dim]) return std::nullopt;
  }
  return source;
}
}  // namespace

void evaluateMove(const OpView& op, EvalFrame& frame) {
  const bool isConcat = moveKindOf(op) == OpKind::Concat;
  const std::size_t sources = isConcat ? op.operandCount() : 1;
  const std::size_t pieces = movePieces(op);
  std::vector<std::vector<MoveDim>> maps;
  for (std::size_t i = 0; i < sources * pieces; ++i) maps.push_back(moveMap(op, i / pieces, i % pieces));
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const std::int64_t place = flatOf(local, frame.out().type.shape);
    const Index global = toGlobal(local, frame.resultTiles[0]);
    for (std::size_t m = 0; m < maps.size(); ++m) {
      const std::size_t i = m / pieces;
      const std::optional<Index> source = sourceIndex(maps[m], global, op.operandType(i).shape);
      if (!source) continue;
      copyElement(frame.in(i), placeOf(*source, frame.in(i), frame.operandTiles[i]), frame.out(), place);
      return;
    }
    copyElement(frame.in(1), 0, frame.out(), place);  // padding
  });
}

}  // namespace gshard
