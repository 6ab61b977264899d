// Coordinates of devices and pieces of mesh axes; the tile rule.
#include "ir/mesh.h"

#include <algorithm>

#include "support/check.h"
#include "support/checked.h"

namespace gshard {

std::int64_t Mesh::devices() const {
  std::int64_t product = 1;
  for (const MeshAxis& axis : axes) product *= axis.size;
  return product;
}

std::optional<int> Mesh::find(std::string_view name) const {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::vector<std::int64_t> Mesh::coordinates(std::int64_t device) const {
  std::vector<std::int64_t> result(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    result[i] = device % axes[i].size;
    device /= axes[i].size;
  }
  return result;
}

std::int64_t Mesh::deviceAt(std::span<const std::int64_t> coordinates) const {
  std::int64_t device = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) device = device * axes[i].size + coordinates[i];
  return device;
}

AxisRef wholeAxis(const Mesh& mesh, int axis) {
  return {axis, 1, mesh.axes[static_cast<std::size_t>(axis)].size};
}

bool isWholeAxis(const Mesh& mesh, const AxisRef& ref) {
  return ref == wholeAxis(mesh, ref.axis);
}

// A piece covers the digits between pre and pre * size of its axis.
bool overlaps(const AxisRef& a, const AxisRef& b) {
  if (a.axis != b.axis || a.size == 1 || b.size == 1) return false;
  return a.pre < b.pre * b.size && b.pre < a.pre * a.size;
}

namespace {
std::int64_t postOf(const Mesh& mesh, const AxisRef& ref) {
  return mesh.axes[static_cast<std::size_t>(ref.axis)].size / (ref.pre * ref.size);
}

// How far apart two devices are that differ by one in the digit `ref`.
std::int64_t deviceStride(const Mesh& mesh, const AxisRef& ref) {
  std::int64_t stride = postOf(mesh, ref);
  for (std::size_t i = static_cast<std::size_t>(ref.axis) + 1; i < mesh.axes.size(); ++i) stride *= mesh.axes[i].size;
  return stride;
}
}  // namespace

std::int64_t axisCoordinate(const Mesh& mesh, const AxisRef& ref, std::int64_t device) {
  return device / deviceStride(mesh, ref) % ref.size;
}

std::int64_t productOf(std::span<const AxisRef> axes) {
  std::int64_t product = 1;
  for (const AxisRef& ref : axes) product *= ref.size;
  return product;
}

std::int64_t partIndex(const Mesh& mesh, std::span<const AxisRef> axes, std::int64_t device) {
  std::int64_t index = 0;
  for (const AxisRef& ref : axes) index = index * ref.size + axisCoordinate(mesh, ref, device);
  return index;
}

std::int64_t deviceInGroup(const Mesh& mesh, std::span<const AxisRef> axes, std::int64_t device, std::int64_t index) {
  for (std::size_t i = axes.size(); i-- > 0;) {
    const AxisRef& ref = axes[i];
    const std::int64_t digit = index % ref.size;
    index /= ref.size;
    device += (digit - axisCoordinate(mesh, ref, device)) * deviceStride(mesh, ref);
  }
  return device;
}

std::vector<std::int64_t> groupOf(const Mesh& mesh, std::span<const AxisRef> axes, std::int64_t device) {
  std::vector<std::int64_t> group(static_cast<std::size_t>(productOf(axes)));
  for (std::size_t i = 0; i < group.size(); ++i) {
    group[i] = deviceInGroup(mesh, axes, device, static_cast<std::int64_t>(i));
  }
  return group;
}

std::string printAxisRef(const Mesh& mesh, const AxisRef& ref) {
  const std::string& name = mesh.axes[static_cast<std::size_t>(ref.axis)].name;
  if (isWholeAxis(mesh, ref)) return name;
  return name + "(" + std::to_string(ref.pre) + "," + std::to_string(ref.size) + ")";
}

std::string printMesh(const Mesh& mesh) {
  std::string text = "[";
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    if (i > 0) text += ", ";
    text += mesh.axes[i].name + ": " + std::to_string(mesh.axes[i].size);
  }
  return text + "]";
}

std::int64_t partSize(std::int64_t dim, std::int64_t parts) {
  return ceilDiv(dim, parts);
}

Tile tileOf(std::int64_t dim, std::int64_t parts, std::int64_t index) {
  const std::int64_t part = partSize(dim, parts);
  const std::int64_t offset = std::min(index * part, dim);
  return {offset, std::min(part, dim - offset)};
}

}  // namespace gshard
