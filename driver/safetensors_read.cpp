// The safetensors format: u64 header length, JSON header, raw little-endian bytes.
#include "driver/safetensors_read.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace gshard {

namespace {

template <class T>
void append(std::vector<double>& numbers, const std::string& bytes) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    numbers.push_back(static_cast<double>(value));
  }
}

double ofBf16(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
}

double ofF16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023, sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

void appendShort(std::vector<double>& numbers, const std::string& bytes, double (*value)(std::uint16_t)) {
  std::uint16_t bits = 0;
  for (std::size_t at = 0; at + sizeof bits <= bytes.size(); at += sizeof bits) {
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    numbers.push_back(value(bits));
  }
}

bool decode(ReadTensor& tensor) {
  if (tensor.dtype == "F32")
    append<float>(tensor.numbers, tensor.bytes);
  else if (tensor.dtype == "F64")
    append<double>(tensor.numbers, tensor.bytes);
  else if (tensor.dtype == "BF16")
    appendShort(tensor.numbers, tensor.bytes, &ofBf16);
  else if (tensor.dtype == "F16")
    appendShort(tensor.numbers, tensor.bytes, &ofF16);
  else if (tensor.dtype == "I32")
    append<std::int32_t>(tensor.numbers, tensor.bytes);
  else if (tensor.dtype == "I64")
    append<std::int64_t>(tensor.numbers, tensor.bytes);
  else if (tensor.dtype == "U8" || tensor.dtype == "BOOL")
    append<std::uint8_t>(tensor.numbers, tensor.bytes);
  else
    return false;
  return true;
}

}  // namespace

std::optional<std::map<std::string, ReadTensor>> readSafetensors(const std::string& path, std::string& error) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  const std::string bytes = all.str();
  std::uint64_t header = 0;
  if (!file || bytes.size() < sizeof header) {
    error = "`" + path + "` holds no safetensors header";
    return std::nullopt;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header > bytes.size() - sizeof header) {
    error = "`" + path + "`: the header ends after the file";
    return std::nullopt;
  }
  const auto json =
      nlohmann::json::parse(bytes.begin() + 8, bytes.begin() + 8 + static_cast<std::ptrdiff_t>(header), nullptr, false);
  if (!json.is_object()) {
    error = "`" + path + "`: the header is no JSON object";
    return std::nullopt;
  }
  const std::size_t base = sizeof header + header;
  std::map<std::string, ReadTensor> tensors;
  for (const auto& [name, item] : json.items()) {
    if (name == "__metadata__") continue;
    ReadTensor tensor;
    tensor.dtype = item.at("dtype").get<std::string>();
    tensor.shape = item.at("shape").get<std::vector<std::int64_t>>();
    const auto offsets = item.at("data_offsets").get<std::vector<std::uint64_t>>();
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > bytes.size() - base) {
      error = "`" + path + "`: `" + name + "` lies outside the file";
      return std::nullopt;
    }
    tensor.bytes = bytes.substr(base + offsets[0], offsets[1] - offsets[0]);
    if (!decode(tensor)) {
      error = "`" + path + "`: `" + name + "` is of type " + tensor.dtype;
      return std::nullopt;
    }
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

}  // namespace gshard
