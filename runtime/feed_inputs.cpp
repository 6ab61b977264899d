// Filling tiles of inputs: from arrays, or with seeded values by global index. Apart
// from dataset.cpp, since this part runs every step on every device.
#include <algorithm>
#include <cstring>

#include "runtime/dataset.h"
#include "runtime/philox.h"
#include "runtime/program_text.h"
#include "runtime/tile_runs.h"

namespace gshard::runtime {
namespace {

void seedRun(const random_values::Stream& stream, std::int64_t first, std::int64_t count, ElementType type,
             std::byte* out) {
  const std::uint64_t begin = static_cast<std::uint64_t>(first);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t index = begin + static_cast<std::uint64_t>(i);
    if (type == ElementType::F64) {
      const double value = random_values::uniformF64(stream, index);
      std::memcpy(out + 8 * i, &value, 8);
    } else if (isFloat(type)) {
      const float value = random_values::uniformF32(stream, index);
      convertElements(ElementType::F32, reinterpret_cast<const std::byte*>(&value), type, out + i * elementBytes(type),
                      1);
    } else {
      const std::int32_t value = random_values::coin(stream, index);
      convertElements(ElementType::I32, reinterpret_cast<const std::byte*>(&value), type, out + i * elementBytes(type),
                      1);
    }
  }
}

class InputFiller {
 public:
  InputFiller(Device& device, const BoundInput& bound, const Feed& feed, const RowRange& rows)
      : bound_(bound),
        feed_(feed),
        rows_(rows),
        order_(feed.seed, std::max<std::int64_t>(feed.rows, 1)),
        place_(device.inputPlace(*bound.input)) {
    const gshard_rt_tensor& tensor = bound.input->tensor;
    type_ = static_cast<ElementType>(tensor.dtype);
    base_ = device.arena() + tensor.offset;
    stream_ = {feed.seed, siteOfName(bound.input->name), 0};
  }

  void fill() {
    const Tile& tile = place_.tile;
    if (tile.empty()) return;
    if (bound_.input->rows == 0) {
      fillRow(0, base_);
      return;
    }
    std::int64_t rowBytes = elementBytes(type_);
    for (std::size_t d = 1; d < tile.part.size(); ++d) rowBytes *= tile.part[d];
    for (std::int64_t i = 0; i < tile.live[0]; ++i)
      fillRow(elementOf(rows_.first + tile.offset[0] + i), base_ + i * rowBytes);
  }

 private:
  // The element at which the data of a row of this call begins: in its array, or in the seeded stream.
  std::int64_t elementOf(std::int64_t position) const {
    if (bound_.array == nullptr) return position * bound_.rowElements;
    if (bound_.windows && rows_.shuffled) {
      const std::uint64_t starts = static_cast<std::uint64_t>(bound_.array->count() - bound_.rowElements + 1);
      // Inputs that share rows share windows: the site does not hold the input's name.
      const random_values::Stream windows{feed_.seed, 0x57696E64u, static_cast<random_values::Word>(rows_.step)};
      const random_values::Pair pair = random_values::bits64(windows, static_cast<std::uint64_t>(position));
      return static_cast<std::int64_t>(((std::uint64_t{pair.second} << 32) | pair.first) % starts);
    }
    const std::int64_t row = rows_.shuffled ? order_.at(rows_.epoch, position) : position;
    return row * bound_.rowElements;
  }

  void fillRow(std::int64_t first, std::byte* out) {
    for (const TileRun& run : place_.runs) {
      std::byte* target = out + run.local * elementBytes(type_);
      if (bound_.array == nullptr) {
        seedRun(stream_, first + run.flat, run.count, type_, target);
        continue;
      }
      const Array& array = *bound_.array;
      convertElements(array.type, array.bytes.data() + (first + run.flat) * elementBytes(array.type), type_, target,
                      run.count);
    }
  }

  const BoundInput& bound_;
  const Feed& feed_;
  const RowRange& rows_;
  RowOrder order_;
  const Device::InputPlace& place_;
  ElementType type_ = ElementType::F32;
  std::byte* base_ = nullptr;
  random_values::Stream stream_{};
};

}  // namespace

void feedInputs(Device& device, const Feed& feed, const RowRange& rows) {
  for (const BoundInput& bound : feed.inputs) {
    if (bound.array != nullptr) {
      InputFiller(device, bound, feed, rows).fill();
      continue;
    }
    // A short last block fills less of its tile: it is made anew, since rows are few.
    const gshard_rt_tensor& tensor = bound.input->tensor;
    const bool whole = bound.input->rows == 0 || rows.count >= tensor.shape[0];
    std::vector<std::byte>& kept = device.seededInputs()[{bound.input, rows.first}];
    if (whole && !kept.empty()) {
      std::memcpy(device.arena() + tensor.offset, kept.data(), kept.size());
      continue;
    }
    InputFiller(device, bound, feed, rows).fill();
    if (whole) kept.assign(device.arena() + tensor.offset, device.arena() + tensor.offset + tensor.bytes);
  }
}

}  // namespace gshard::runtime
