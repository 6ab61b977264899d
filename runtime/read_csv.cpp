// CSV of numbers, with or without a first header line. A first line that holds anything but numbers is a header, also
// one with another number of fields (scikit-learn's tables begin with "rows,columns,class names").
#include <charconv>
#include <cstring>
#include <string_view>

#include "runtime/array.h"
#include "runtime/failure.h"

namespace gshard::runtime {
namespace {

std::string_view trimmed(std::string_view field) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!field.empty() && blank(field.front())) field.remove_prefix(1);
  while (!field.empty() && blank(field.back())) field.remove_suffix(1);
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"') field = field.substr(1, field.size() - 2);
  return field;
}

bool parseNumber(std::string_view field, double& value) {
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error == std::errc{} && end == field.data() + field.size();
}

// Values of a line; the index of the first field that is no number, or -1.
std::int64_t parseLine(std::string_view line, std::vector<double>& values, std::string_view& guilty) {
  for (std::int64_t field = 0;; ++field) {
    const std::size_t comma = line.find_first_of(",;");
    const std::string_view text = trimmed(line.substr(0, comma));
    double value = 0;
    if (!parseNumber(text, value)) {
      guilty = text;
      return field;
    }
    values.push_back(value);
    if (comma == std::string_view::npos) return -1;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

Array readCsv(const Bytes& bytes, const std::string& path) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  std::vector<double> values;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (trimmed(line).empty()) continue;
    const std::size_t before = values.size();
    std::string_view guilty;
    const std::int64_t field = parseLine(line, values, guilty);
    if (field >= 0) {
      values.resize(before);
      if (number == 1) continue;  // the header
      throw failure(kExitIo, diag::CsvField, path, number, field + 1, std::string(guilty.substr(0, 40)));
    }
    const std::int64_t found = static_cast<std::int64_t>(values.size() - before);
    if (rows > 0 && found != columns) throw failure(kExitIo, diag::CsvColumns, path, number, columns, found);
    columns = found;
    ++rows;
  }
  if (rows == 0)
    throw failure(kExitIo, diag::FileMalformed, path, std::string("CSV"), std::string("it holds no row of numbers"));
  Array array;
  array.type = ElementType::F64;
  array.shape = {rows, columns};
  array.bytes.resize(values.size() * sizeof(double));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

}  // namespace gshard::runtime
