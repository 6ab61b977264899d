// Safetensors files: checkpoints and data.
#include "runtime/safetensors.h"

#include "tests/fuzz/bytes/reader_target.h"

namespace gshard::runtime {
namespace {

void checkWritten(const NamedArrays& arrays) {
  std::vector<TensorHeader> headers;
  for (const auto& [name, array] : arrays) headers.push_back({name, array.type, array.shape});
  const SafetensorsPlan plan = planSafetensors(headers, {});
  Bytes file = fuzz::bytesOf(plan.header.data(), plan.header.size());
  for (const auto& [name, array] : arrays) file.insert(file.end(), array.bytes.begin(), array.bytes.end());
  NamedArrays again;
  if (!fuzz::accepts([&] { again = readSafetensors(file, "again"); }) || again.size() != arrays.size())
    fuzz::finding("the file written of " + std::to_string(arrays.size()) + " tensors is refused, or has others");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].first != again[i].first)
      fuzz::finding("`" + arrays[i].first + "` is read as `" + again[i].first + "`");
    fuzz::checkSame(arrays[i].second, again[i].second);
  }
}

}  // namespace
}  // namespace gshard::runtime

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gshard;
  using namespace gshard::runtime;
  fuzz::accepts([&] {
    const NamedArrays arrays = readSafetensors(fuzz::bytesOf(data, size), "file");
    for (const auto& [name, array] : arrays) fuzz::checkArray(array);
    checkWritten(arrays);
  });
  return 0;
}
