// The mesh of devices and references to (pieces of) its axes, and THE tile rule: part size = ceil(dim / parts),
// device i holds from min(i * part, dim). Every stage that needs an offset or a local size calls these functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard {

struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// Device d stands at the coordinates of d in row-major order over the axes (first axis major).
struct Mesh {
  std::vector<MeshAxis> axes;

  std::int64_t devices() const;
  std::optional<int> find(std::string_view name) const;
  std::vector<std::int64_t> coordinates(std::int64_t device) const;
  std::int64_t deviceAt(std::span<const std::int64_t> coordinates) const;
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

// A piece of a mesh axis of size S = pre * size * post: the digit (coordinate / post) % size. The whole axis has pre 1,
// size S.
struct AxisRef {
  int axis = 0;
  std::int64_t pre = 1;
  std::int64_t size = 1;
  friend bool operator==(const AxisRef&, const AxisRef&) = default;
  friend auto operator<=>(const AxisRef&, const AxisRef&) = default;
};

AxisRef wholeAxis(const Mesh& mesh, int axis);
bool isWholeAxis(const Mesh& mesh, const AxisRef& ref);
bool overlaps(const AxisRef& a, const AxisRef& b);  // share a piece of one mesh axis
std::int64_t axisCoordinate(const Mesh& mesh, const AxisRef& ref, std::int64_t device);
std::int64_t productOf(std::span<const AxisRef> axes);  // number of parts
// Flat index of `device` over `axes`, major first.
std::int64_t partIndex(const Mesh& mesh, std::span<const AxisRef> axes, std::int64_t device);
// The device that differs from `device` only in the digits `axes`, which are those of flat index `index`.
std::int64_t deviceInGroup(const Mesh& mesh, std::span<const AxisRef> axes, std::int64_t device, std::int64_t index);
// The devices that differ from `device` only in the digits `axes`, in order of their flat index over `axes`.
std::vector<std::int64_t> groupOf(const Mesh& mesh, std::span<const AxisRef> axes, std::int64_t device);
std::string printAxisRef(const Mesh& mesh, const AxisRef& ref);  // "x" or "x(2,4)" (pre, size)
std::string printMesh(const Mesh& mesh);                         // "[data: 2, model: 2]"

struct Tile {
  std::int64_t offset = 0;  // global index of the first element
  std::int64_t live = 0;    // elements that exist; the rest of the part is tail
};

std::int64_t partSize(std::int64_t dim, std::int64_t parts);  // ceil(dim / parts)
Tile tileOf(std::int64_t dim, std::int64_t parts, std::int64_t index);

}  // namespace gshard
