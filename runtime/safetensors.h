// Safetensors, the format of checkpoints: a JSON header of names, types, shapes and places, then the data. Every place
// is known before anything is written, so that devices write one checkpoint together and none needs a second copy of
// it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/array.h"

namespace gshard::runtime {

struct TensorHeader {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> shape;
};

// What a file of these tensors begins with, and where each tensor's data lies in it. `metadata` becomes "__metadata__".
struct SafetensorsPlan {
  std::string header;
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;  // of the whole file
};
SafetensorsPlan planSafetensors(const std::vector<TensorHeader>& tensors,
                                const std::map<std::string, std::string>& metadata);

// Names, types, shapes and places; the data stays in the file's bytes.
struct StoredTensor {
  TensorHeader header;
  std::size_t begin = 0;  // in the file
  std::size_t end = 0;
};
struct SafetensorsIndex {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};
// `bytes` begins as a file of `fileBytes` does, and has its header.
SafetensorsIndex indexSafetensors(const Bytes& bytes, std::uint64_t fileBytes, const std::string& path);
// Reads no more of the file than its header.
SafetensorsIndex indexSafetensors(const FileReader& file);

void writeSafetensors(const std::string& path, const NamedArrays& arrays);

}  // namespace gshard::runtime
