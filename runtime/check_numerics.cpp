// Searching tiles for NaN and infinities; see check_numerics.h.
#include "runtime/check_numerics.h"

#include <cmath>

#include "runtime/element_type.h"
#include "runtime/program_text.h"
#include "runtime/tile_runs.h"

namespace gshard::runtime {
namespace {

// Finds are ordered as functions and their steps run. They come after every fault that a kernel records: an index out
// of range is the cause of what is wrong with its result.
constexpr std::int64_t kOrderBase = std::int64_t{1} << 60;
constexpr std::int64_t kStepsPerFunction = std::int64_t{1} << 32;

std::int64_t orderOf(const Device& device, const gshard_rt_function& function, std::int64_t step) {
  return kOrderBase + (&function - device.program().functions) * kStepsPerFunction + step;
}

double valueAt(const std::byte* data, ElementType type, std::int64_t index) {
  double value = 0;
  convertElements(type, data + index * elementBytes(type), ElementType::F64, reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

}  // namespace

const gshard_rt_function& functionOfFind(const gshard_rt_program& program, const Fault& fault) {
  return program.functions[(fault.order - kOrderBase) / kStepsPerFunction];
}

const char* nonFiniteText(std::int64_t value) {
  return value == 0 ? "nan" : value > 0 ? "inf" : "-inf";
}

void NumericsCheck::search(Device& device, const gshard_rt_tensor& tensor, const Fault& find, bool mayBeInfinite) {
  const ElementType type = static_cast<ElementType>(tensor.dtype);
  if (!isFloat(type)) return;
  const Tile tile = device.tile(tensor);
  if (tile.empty()) return;
  for (const TileRun& run : tileRuns(tile, shapeOf(tensor), 0)) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      const double value = valueAt(device.arena() + tensor.offset, type, run.local + i);
      if (std::isfinite(value) || (mayBeInfinite && std::isinf(value))) continue;
      Fault fault = find;
      fault.index = run.flat + i;
      fault.value = std::isnan(value) ? 0 : value > 0 ? 1 : -1;
      device.recordFault(fault);
      found_ = true;
      return;
    }
  }
}

void NumericsCheck::inputsFed(Device& device, const gshard_rt_function& function) {
  for (std::int64_t i = 0; i < function.input_count && !found_; ++i) {
    Fault find;
    find.site = 0;
    find.order = orderOf(device, function, 0);
    find.limit = kNonFiniteInput - i;
    search(device, function.inputs[i].tensor, find, false);
  }
}

void NumericsCheck::stepDone(Device& device, const gshard_rt_function& function, std::int64_t index, const Span&) {
  const gshard_rt_step& step = function.steps[index];
  for (std::int64_t i = 0; i < step.made_count && !found_; ++i) {
    Fault find;
    find.site = step.made[i].site;
    find.order = orderOf(device, function, 1 + index);
    find.limit = kNonFinite;
    search(device, step.made[i].tensor, find, step.made[i].infinite != 0);
  }
}

}  // namespace gshard::runtime
