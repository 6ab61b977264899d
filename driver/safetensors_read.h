// Reading what the produced binary wrote with -o or --checkpoint, to compare it. Apart from the runtime's own reader,
// which belongs to the binary (the compiler includes nothing of runtime/ but abi.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gshard {

struct ReadTensor {
  std::string dtype;  // "F32"
  std::vector<std::int64_t> shape;
  std::vector<double> numbers;  // exact for all dtypes but I64 beyond 2^53
  std::string bytes;
};

// Nothing, and a reason in `error`, when the file is not what it says.
std::optional<std::map<std::string, ReadTensor>> readSafetensors(const std::string& path, std::string& error);

}  // namespace gshard
