// IDX files, as MNIST has them.
#include "tests/fuzz/bytes/reader_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gshard;
  using namespace gshard::runtime;
  fuzz::accepts([&] { fuzz::checkArray(readIdx(fuzz::bytesOf(data, size), "file")); });
  return 0;
}
