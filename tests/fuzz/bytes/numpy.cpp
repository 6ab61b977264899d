// npy and npz files, each also in gzip, told apart as readArrays does.
#include "tests/fuzz/bytes/reader_target.h"

namespace gshard::runtime {
namespace {

bool beginsWith(const Bytes& bytes, const std::string& prefix) {
  return bytes.size() >= prefix.size() && std::memcmp(bytes.data(), prefix.data(), prefix.size()) == 0;
}

void checkWritten(const Array& array) {
  const std::string header = npyText(array);
  Bytes file = fuzz::bytesOf(header.data(), header.size());
  file.insert(file.end(), array.bytes.begin(), array.bytes.end());
  const bool read = fuzz::accepts([&] { fuzz::checkSame(array, readNpy(file, "again")); });
  if (!read) fuzz::finding("the npy file written of " + arrayText(array) + " is refused");
}

}  // namespace
}  // namespace gshard::runtime

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gshard;
  using namespace gshard::runtime;
  fuzz::accepts([&] {
    Bytes bytes = fuzz::bytesOf(data, size);
    if (isGzip(bytes)) bytes = gunzip(bytes, "file");
    const NamedArrays arrays =
        beginsWith(bytes, "PK") ? readNpz(bytes, "file") : NamedArrays{{"", readNpy(bytes, "file")}};
    for (const auto& [name, array] : arrays) {
      fuzz::checkArray(array);
      checkWritten(array);
    }
  });
  return 0;
}
