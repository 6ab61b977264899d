// Shardings: canonical form, printing, local shapes and what is legal.
#include "ir/sharding.h"

#include <algorithm>

#include "support/check.h"

namespace gshard {

namespace {
constexpr std::string_view kReductionNames[] = {"sum", "prod", "max", "min", "any", "all"};
}

std::string_view reductionName(Reduction reduction) {
  return kReductionNames[static_cast<std::size_t>(reduction)];
}

std::optional<Reduction> reductionFromName(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kReductionNames); ++i) {
    if (kReductionNames[i] == name) return static_cast<Reduction>(i);
  }
  return std::nullopt;
}

Sharding Sharding::replicated(std::int64_t rank) {
  Sharding result;
  result.dims.resize(static_cast<std::size_t>(rank));
  return result;
}

bool Sharding::isReplicated() const {
  return partial.empty() && std::all_of(dims.begin(), dims.end(), [](const auto& axes) { return axes.empty(); });
}

bool Sharding::splits(const AxisRef& ref) const {
  for (const std::vector<AxisRef>& axes : dims) {
    for (const AxisRef& axis : axes) {
      if (overlaps(axis, ref)) return true;
    }
  }
  return false;
}

bool Sharding::isPartialOver(const AxisRef& ref) const {
  return std::any_of(partial.begin(), partial.end(), [&](const PartialAxis& each) { return overlaps(each.axis, ref); });
}

Sharding Sharding::withoutPartial() const {
  Sharding result = *this;
  result.partial.clear();
  return result;
}

std::vector<AxisRef> joinedAxes(std::span<const AxisRef> axes) {
  std::vector<AxisRef> result;
  for (const AxisRef& ref : axes) {
    if (ref.size == 1) continue;
    if (!result.empty() && result.back().axis == ref.axis && result.back().pre * result.back().size == ref.pre) {
      result.back().size *= ref.size;
    } else {
      result.push_back(ref);
    }
  }
  return result;
}

// No piece of size 1 and none that goes on where the one before it ends: as most shardings are.
static bool isJoined(std::span<const AxisRef> axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].size == 1) return false;
    if (i > 0 && axes[i - 1].axis == axes[i].axis && axes[i - 1].pre * axes[i - 1].size == axes[i].pre) return false;
  }
  return true;
}

Sharding canonical(const Mesh&, Sharding sharding) {
  for (std::vector<AxisRef>& axes : sharding.dims) {
    if (!isJoined(axes)) axes = joinedAxes(axes);
  }
  if (sharding.partial.empty() || (sharding.partial.size() == 1 && sharding.partial[0].axis.size != 1)) return sharding;
  std::sort(sharding.partial.begin(), sharding.partial.end(),
            [](const PartialAxis& a, const PartialAxis& b) { return a.axis < b.axis; });
  std::vector<PartialAxis> partial;
  for (const PartialAxis& each : sharding.partial) {
    if (each.axis.size == 1) continue;
    if (!partial.empty()) {
      PartialAxis& last = partial.back();
      const bool adjacent = last.axis.axis == each.axis.axis && last.axis.pre * last.axis.size == each.axis.pre;
      if (adjacent && last.reduction == each.reduction) {
        last.axis.size *= each.axis.size;
        continue;
      }
    }
    partial.push_back(each);
  }
  sharding.partial = std::move(partial);
  return sharding;
}

namespace {
std::string printAxes(const Mesh& mesh, const std::vector<AxisRef>& axes, std::string_view comma) {
  std::string text;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i > 0) text += comma;
    text += printAxisRef(mesh, axes[i]);
  }
  return axes.size() > 1 ? "(" + text + ")" : text;
}

std::string printPartial(const Mesh& mesh, const Sharding& sharding) {
  std::string text;
  for (const PartialAxis& each : sharding.partial) {
    if (!text.empty()) text += ", ";
    text += std::string(reductionName(each.reduction)) + ": " + printAxisRef(mesh, each.axis);
  }
  return text;
}
}  // namespace

std::string printSharding(const Mesh& mesh, const Sharding& sharding) {
  std::string text = "{[";
  for (std::size_t i = 0; i < sharding.dims.size(); ++i) {
    if (i > 0) text += ", ";
    text += sharding.dims[i].empty() ? "_" : printAxes(mesh, sharding.dims[i], ", ");
  }
  text += "]";
  const std::string partial = printPartial(mesh, sharding);
  if (!partial.empty()) text += ", " + partial;
  return text + "}";
}

std::string printShardedType(const Mesh& mesh, const Type& type, const Sharding& sharding) {
  std::string text(dtypeName(type.dtype));
  if (!type.isScalar()) {
    text += "[";
    for (std::size_t i = 0; i < type.shape.size(); ++i) {
      if (i > 0) text += ", ";
      text += std::to_string(type.shape[i]);
      if (i < sharding.dims.size() && !sharding.dims[i].empty()) text += "@" + printAxes(mesh, sharding.dims[i], ",");
    }
    text += "]";
  }
  const std::string partial = printPartial(mesh, sharding);
  if (!partial.empty()) text += "{" + partial + "}";
  return text;
}

std::vector<std::int64_t> localShape(const Type& type, const Sharding& sharding) {
  GSHARD_CHECK(sharding.dims.size() == type.shape.size(), "a sharding of another rank than " + printType(type));
  std::vector<std::int64_t> shape(type.shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = partSize(type.shape[i], productOf(sharding.dims[i]));
  return shape;
}

std::vector<Tile> tilesOf(const Mesh& mesh, const Type& type, const Sharding& sharding, std::int64_t device) {
  GSHARD_CHECK(sharding.dims.size() == type.shape.size(), "a sharding of another rank than " + printType(type));
  std::vector<Tile> tiles(type.shape.size());
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const std::vector<AxisRef>& axes = sharding.dims[i];
    tiles[i] = tileOf(type.shape[i], productOf(axes), partIndex(mesh, axes, device));
  }
  return tiles;
}

namespace {
bool reductionFits(Reduction reduction, DType dtype) {
  switch (reduction) {
    case Reduction::Sum:
    case Reduction::Prod:
    case Reduction::Max:
    case Reduction::Min:
      return dtype != DType::Bool;
    case Reduction::Any:
    case Reduction::All:
      return dtype == DType::Bool;
  }
  GSHARD_UNREACHABLE("Reduction");
}

std::optional<std::string> checkAxisRef(const Mesh& mesh, const AxisRef& ref) {
  if (ref.axis < 0 || ref.axis >= static_cast<int>(mesh.axes.size())) return "an axis that the mesh does not have";
  const std::int64_t size = mesh.axes[static_cast<std::size_t>(ref.axis)].size;
  if (ref.pre < 1 || ref.size < 2 || size % (ref.pre * ref.size) != 0) {
    return "`" + printAxisRef(mesh, ref) + "` is no piece of an axis of size " + std::to_string(size);
  }
  return std::nullopt;
}
}  // namespace

std::optional<std::string> checkSharding(const Mesh& mesh, const Type& type, const Sharding& sharding) {
  if (sharding.dims.size() != type.shape.size()) {
    return "a sharding of " + std::to_string(sharding.dims.size()) + " dims on `" + printType(type) + "`";
  }
  std::vector<AxisRef> seen;
  for (const std::vector<AxisRef>& axes : sharding.dims) seen.insert(seen.end(), axes.begin(), axes.end());
  for (const PartialAxis& each : sharding.partial) {
    seen.push_back(each.axis);
    if (!reductionFits(each.reduction, type.dtype)) {
      return "a pending `" + std::string(reductionName(each.reduction)) + "` of `" +
             std::string(dtypeName(type.dtype)) + "`";
    }
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (std::optional<std::string> fault = checkAxisRef(mesh, seen[i])) return fault;
    for (std::size_t j = 0; j < i; ++j) {
      if (overlaps(seen[i], seen[j])) return "`" + printAxisRef(mesh, seen[i]) + "` is used twice";
    }
  }
  if (canonical(mesh, sharding) != sharding) return "`" + printSharding(mesh, sharding) + "` is not canonical";
  return std::nullopt;
}

}  // namespace gshard
