// Checkpoints: safetensors of GLOBAL tensors plus the step, so that any number of devices can load what any other
// number saved. Also the start from given parameters (--init).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi.h"
#include "runtime/array.h"
#include "runtime/device.h"
#include "runtime/safetensors.h"

namespace gshard::runtime {

// Tensors of a file, checked against the program, by the program's names. Of a checkpoint each device reads its own
// part, when it is asked to.
struct LoadedTensors {
  struct Entry {
    ElementType type = ElementType::F32;
    std::size_t begin = 0;  // in `file`, or in `bytes`
  };
  std::string path;
  std::shared_ptr<const FileReader> file;
  Bytes bytes;  // without a file
  std::map<std::string, Entry> tensors;
  std::int64_t step = 0;
};

// DIR holds step-N.safetensors and `latest`; DIR may also be a .safetensors file. `which`: "auto", "no" (both: the
// latest) or a step. None is an error unless `optional`. Throws Failure.
std::optional<LoadedTensors> loadCheckpoint(const gshard_rt_program& program, const std::string& folder,
                                            const std::string& which, bool optional);

// FILE[:PREFIX] with the parameters of the trained model by their names within it, or by whole paths. Missing, surplus
// and misshapen names are one error that lists them.
LoadedTensors loadParameters(const gshard_rt_program& program, const std::string& reference);

// This device's tiles of everything that was loaded. Throws Failure.
void applyTensors(Device& device, const LoadedTensors& loaded);

// Collective; every device writes its part of one file, which appears under its name when it is whole and on the disk.
// Returns the path (rank 0) or "" (others, or after an abort). Keeps the newest `keep`.
std::string saveCheckpoint(Device& device, const std::string& folder, std::int64_t step, std::uint64_t seed,
                           std::int64_t keep);

// The whole of a tensor on rank 0 (others: empty); false after an abort. Row dims have the device's current rows.
[[nodiscard]] bool assemble(Device& device, const gshard_rt_tensor& tensor, Array& whole);

}  // namespace gshard::runtime
