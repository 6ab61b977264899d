// Safetensors; see safetensors.h.
#include "runtime/safetensors.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/failure.h"

namespace gshard::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<ElementType, const char*> kTypeNames[] = {
    {ElementType::F32, "F32"}, {ElementType::F64, "F64"}, {ElementType::BF16, "BF16"}, {ElementType::F16, "F16"},
    {ElementType::I32, "I32"}, {ElementType::I64, "I64"}, {ElementType::U8, "U8"},     {ElementType::Bool, "BOOL"}};

const char* typeName(ElementType type) {
  for (const auto& [known, name] : kTypeNames) {
    if (known == type) return name;
  }
  return "";
}

}  // namespace

SafetensorsPlan planSafetensors(const std::vector<TensorHeader>& tensors,
                                const std::map<std::string, std::string>& metadata) {
  SafetensorsPlan plan;
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t place = 0;
  for (const TensorHeader& tensor : tensors) {
    std::int64_t bytes = elementBytes(tensor.type);
    for (const std::int64_t size : tensor.shape) bytes *= size;
    header[tensor.name] = {
        {"dtype", typeName(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {place, place + bytes}}};
    plan.offsets.push_back(place);
    place += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // data begins on 8 bytes
  for (int i = 0; i < 8; ++i) plan.header += static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i));
  plan.header += text;
  for (std::int64_t& offset : plan.offsets) offset += static_cast<std::int64_t>(plan.header.size());
  plan.bytes = static_cast<std::int64_t>(plan.header.size()) + place;
  return plan;
}

void writeSafetensors(const std::string& path, const NamedArrays& arrays) {
  std::vector<TensorHeader> headers;
  for (const auto& [name, array] : arrays) headers.push_back({name, array.type, array.shape});
  AtomicFile file(path);
  file.write(planSafetensors(headers, {}).header);
  for (const auto& [name, array] : arrays) file.write(array.bytes.data(), array.bytes.size());
  file.commit();
}

SafetensorsIndex indexSafetensors(const Bytes& bytes, std::uint64_t fileBytes, const std::string& path) {
  const auto malformed = [&](const std::string& why) {
    return failure(kExitIo, diag::FileMalformed, path, std::string("safetensors"), why);
  };
  ByteReader reader(bytes, path);
  const std::uint64_t length = reader.littleEndian(8, "the header's length");
  const char* text = reinterpret_cast<const char*>(reader.take(static_cast<std::size_t>(length), "the header"));
  const std::size_t dataAt = reader.position();
  const Json header = Json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) throw malformed("its header is not a JSON object");
  SafetensorsIndex index;
  std::uint64_t claimed = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) throw malformed("its metadata is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (value.is_string()) index.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    StoredTensor tensor;
    tensor.header.name = name;
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
        !entry["shape"].is_array() || !entry.contains("data_offsets") || !entry["data_offsets"].is_array() ||
        entry["data_offsets"].size() != 2) {
      throw malformed("the entry of `" + name + "` lacks dtype, shape or data_offsets");
    }
    bool known = false;
    for (const auto& [type, typeText] : kTypeNames) {
      if (entry["dtype"] == typeText) {
        tensor.header.type = type;
        known = true;
      }
    }
    if (!known) throw malformed("`" + name + "` has the type " + entry["dtype"].get<std::string>());
    for (const Json& size : entry["shape"]) {
      if (!size.is_number_unsigned() && !(size.is_number_integer() && size.get<std::int64_t>() >= 0)) {
        throw malformed("`" + name + "` has no usable shape");
      }
      tensor.header.shape.push_back(size.get<std::int64_t>());
    }
    for (const Json& offset : entry["data_offsets"]) {
      if (!offset.is_number_unsigned()) throw malformed("`" + name + "` has no usable data_offsets");
    }
    const std::uint64_t begin = entry["data_offsets"][0].get<std::uint64_t>();
    const std::uint64_t end = entry["data_offsets"][1].get<std::uint64_t>();
    const std::int64_t size = elementBytes(tensor.header.type);
    const std::int64_t needed = checkedCount(tensor.header.shape, size, path) * size;
    if (begin > end || end > fileBytes - dataAt) {
      throw failure(kExitIo, diag::FileTruncated, path, static_cast<std::int64_t>(fileBytes), "`" + name + "`",
                    static_cast<std::int64_t>(dataAt + std::min<std::uint64_t>(end, std::uint64_t{1} << 62)));
    }
    if (end - begin != static_cast<std::uint64_t>(needed)) {
      throw malformed("`" + name + "` of shape " + shapeText(tensor.header.shape) + " needs " + std::to_string(needed) +
                      " bytes, but has " + std::to_string(end - begin));
    }
    // Tensors that share bytes could make a small file as large as one likes.
    claimed += end - begin;
    if (claimed > fileBytes - dataAt) throw malformed("its tensors overlap");
    tensor.begin = dataAt + static_cast<std::size_t>(begin);
    tensor.end = dataAt + static_cast<std::size_t>(end);
    index.tensors.push_back(tensor);
  }
  return index;
}

SafetensorsIndex indexSafetensors(const FileReader& file) {
  constexpr std::uint64_t kLengthBytes = 8;
  Bytes head = file.read(0, static_cast<std::size_t>(std::min(file.size(), kLengthBytes)));
  if (head.size() == kLengthBytes) {
    const std::uint64_t length = ByteReader(head, file.path()).littleEndian(kLengthBytes, "the header's length");
    const std::uint64_t left = file.size() - kLengthBytes;
    head = file.read(0, static_cast<std::size_t>(kLengthBytes + std::min(length, left)));
  }
  return indexSafetensors(head, file.size(), file.path());
}

NamedArrays readSafetensors(const Bytes& bytes, const std::string& path) {
  NamedArrays arrays;
  for (const StoredTensor& tensor : indexSafetensors(bytes, bytes.size(), path).tensors) {
    Array array{tensor.header.type, tensor.header.shape, {}};
    array.bytes.assign(bytes.begin() + static_cast<std::ptrdiff_t>(tensor.begin),
                       bytes.begin() + static_cast<std::ptrdiff_t>(tensor.end));
    arrays.emplace_back(tensor.header.name, std::move(array));
  }
  return arrays;
}

void checkWritable(const std::string& path, std::size_t count) {
  const bool several = endsWith(path, ".safetensors") || endsWith(path, ".npz");
  if (!several && !endsWith(path, ".npy")) {
    throw failure(kExitUsage, diag::OptionValue, std::string("-o"), path,
                  std::string("a name ending in .npy, .npz or .safetensors"));
  }
  if (!several && count != 1) {
    throw failure(kExitUsage, diag::OptionValue, std::string("-o"), path,
                  ".npz or .safetensors, since there are " + std::to_string(count) + " results");
  }
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (access(folder.c_str(), W_OK) != 0) {
    throw failure(kExitIo, diag::FileUnwritable, path, std::string(std::strerror(errno)));
  }
}

void writeArrays(const std::string& path, const NamedArrays& arrays) {
  checkWritable(path, arrays.size());
  if (endsWith(path, ".safetensors")) return writeSafetensors(path, arrays);
  if (endsWith(path, ".npz")) return writeNpz(path, arrays);
  const Array array = numpyArray(arrays[0].second);
  AtomicFile file(path);
  file.write(npyText(array));
  file.write(array.bytes.data(), array.bytes.size());
  file.commit();
}

}  // namespace gshard::runtime
