// CSV files, and the parts that `--input x=FILE[…]` selects of them: the first line of the input is the selection.
#include <string_view>

#include "tests/fuzz/bytes/reader_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gshard;
  using namespace gshard::runtime;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t line = all.find('\n');
  const std::string selection(all.substr(0, line));
  const std::string_view table = line == std::string_view::npos ? std::string_view{} : all.substr(line + 1);
  fuzz::accepts([&] {
    const Array array = readCsv(fuzz::bytesOf(table.data(), table.size()), "file");
    fuzz::checkArray(array);
    fuzz::checkArray(selectPart(array, selection, "x"));
  });
  return 0;
}
