// Safetensors, the format of checkpoints: a JSON header of names, types, shapes and places, then the data. Written
// tensor by tensor, so that a checkpoint never needs a second copy of the model in memory.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/array.h"

namespace gshard {

struct TensorHeader {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> shape;
};

class SafetensorsWriter {
 public:
  // `metadata` becomes "__metadata__". Tensors are then appended in the order given here.
  SafetensorsWriter(const std::string& path, const std::vector<TensorHeader>& tensors,
                    const std::map<std::string, std::string>& metadata);
  void append(const Bytes& tensor) { file_.write(tensor.data(), tensor.size()); }
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
};

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
SafetensorsIndex indexSafetensors(const Bytes& bytes, const std::string& path);

void writeSafetensors(const std::string& path, const NamedArrays& arrays);

}  // namespace gshard
