// Checkpoints; see checkpoint.h.
#include "runtime/checkpoint.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "runtime/dataset.h"
#include "runtime/failure.h"
#include "runtime/parse_integer.h"
#include "runtime/program_text.h"
#include "runtime/tile_runs.h"

namespace gshard::runtime {
namespace {

struct Expected {
  std::string name;
  const gshard_rt_tensor* tensor = nullptr;
};

std::vector<Expected> savedTensors(const gshard_rt_program& program) {
  std::vector<Expected> expected;
  for (std::int64_t i = 0; i < program.parameter_count; ++i) {
    expected.push_back({program.parameters[i].name, &program.parameters[i].tensor});
  }
  for (std::int64_t i = 0; i < program.state_count; ++i) {
    if (program.states[i].saved != 0) expected.push_back({program.states[i].name, &program.states[i].tensor});
  }
  return expected;
}

std::string stepName(std::int64_t step) {
  return "step-" + std::to_string(step) + ".safetensors";
}

// The step of a file that stepName() named, and of no other ("step-07.safetensors").
std::optional<std::int64_t> stepOf(const std::string& name) {
  constexpr std::size_t kBefore = std::string_view("step-").size();
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos || dot < kBefore) return std::nullopt;
  const std::optional<std::int64_t> step = parseInteger(std::string_view(name).substr(kBefore, dot - kBefore));
  return step && *step >= 0 && name == stepName(*step) ? step : std::nullopt;
}

// Steps of the checkpoints in a folder, ascending.
std::vector<std::int64_t> stepsIn(const std::string& folder) {
  std::vector<std::int64_t> steps;
  DIR* handle = opendir(folder.c_str());
  if (handle == nullptr) return steps;
  while (const dirent* entry = readdir(handle)) {
    if (const std::optional<std::int64_t> step = stepOf(entry->d_name)) steps.push_back(*step);
  }
  closedir(handle);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string stepPath(const std::string& folder, std::int64_t step) {
  return folder + "/" + stepName(step);
}

bool isSafetensors(const std::string& path) {
  return path.size() > 12 && path.compare(path.size() - 12, 12, ".safetensors") == 0;
}

// Adds to `problems` what does not fit; `found` by the program's names.
void compare(const std::vector<Expected>& expected, const std::map<std::string, TensorHeader>& found,
             std::string& problems) {
  std::vector<std::string> names;
  for (const auto& [name, header] : found) names.push_back(name);
  const auto add = [&](const std::string& problem) { problems += (problems.empty() ? "" : "; ") + problem; };
  std::map<std::string, bool> wanted;
  bool isMissing = false;
  for (const Expected& tensor : expected) {
    wanted[tensor.name] = true;
    const auto entry = found.find(tensor.name);
    if (entry == found.end()) {
      add("`" + tensor.name + "` is missing");
      isMissing = true;
      continue;
    }
    const bool sameKind = isFloat(entry->second.type) == isFloat(static_cast<ElementType>(tensor.tensor->dtype));
    if (entry->second.shape != shapeOf(*tensor.tensor) || !sameKind) {
      add("`" + tensor.name + "` is " + std::string(elementName(entry->second.type)) + shapeText(entry->second.shape) +
          ", expected " + tensorText(*tensor.tensor));
    }
  }
  for (const std::string& name : names) {
    if (wanted.count(name) == 0) add("`" + name + "` is surplus");
  }
  if (!isMissing) return;
  std::string holds;
  for (const std::string& name : names) holds += (holds.empty() ? "`" : ", `") + name + "`";
  add("it holds " + (holds.empty() ? "nothing" : holds));
}

}  // namespace

std::optional<LoadedTensors> loadCheckpoint(const gshard_rt_program& program, const std::string& folder,
                                            const std::string& which, bool optional) {
  LoadedTensors loaded;
  loaded.path = folder;
  if (!isSafetensors(folder)) {
    const std::vector<std::int64_t> steps = stepsIn(folder);
    const bool named = which != "auto" && which != "no";
    std::int64_t step = named ? parseInteger(which).value_or(-1) : steps.empty() ? -1 : steps.back();
    if (!named && access((folder + "/latest").c_str(), R_OK) == 0) {
      const Bytes text = readFile(folder + "/latest");
      std::string name(reinterpret_cast<const char*>(text.data()), text.size());
      name.resize(std::min(name.find('\n'), name.size()));
      step = stepOf(name).value_or(step);
    }
    if (steps.empty() && optional) return std::nullopt;
    if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
      std::string list;
      for (const std::int64_t known : steps) list += (list.empty() ? "it holds steps " : ", ") + std::to_string(known);
      throw failure(kExitIo, diag::NoCheckpoint, folder,
                    steps.empty() ? std::string("it holds no step-N.safetensors") : list);
    }
    loaded.path = stepPath(folder, step);
  }
  loaded.file = std::make_shared<const FileReader>(loaded.path);
  const SafetensorsIndex index = indexSafetensors(*loaded.file);
  std::map<std::string, TensorHeader> found;
  for (const StoredTensor& tensor : index.tensors) {
    found[tensor.header.name] = tensor.header;
    loaded.tensors[tensor.header.name] = {tensor.header.type, tensor.begin};
  }
  std::string problems;
  compare(savedTensors(program), found, problems);
  if (!problems.empty()) throw failure(kExitMismatch, diag::CheckpointMismatch, loaded.path, problems);
  const auto step = index.metadata.find("step");
  if (step != index.metadata.end()) {
    loaded.step = parseInteger(step->second).value_or(-1);
    if (loaded.step < 0 || loaded.step > std::numeric_limits<std::int32_t>::max()) {
      throw failure(kExitIo, diag::FileMalformed, loaded.path, std::string("checkpoint"),
                    "its step is `" + step->second + "`");
    }
  }
  return loaded;
}

// The longest run of whole path segments that all trained parameters share: "net." of net.w1 and net.b1.
static std::string commonPath(const std::vector<Expected>& parameters) {
  if (parameters.empty()) return "";
  std::string common = parameters[0].name;
  for (const Expected& parameter : parameters) {
    std::size_t same = 0;
    while (same < common.size() && same < parameter.name.size() && common[same] == parameter.name[same]) ++same;
    common.resize(same);
  }
  const std::size_t dot = common.rfind('.');
  return dot == std::string::npos ? "" : common.substr(0, common.find('.') + 1);
}

LoadedTensors loadParameters(const gshard_rt_program& program, const std::string& reference) {
  const FileReference file = parseFileReference(reference);
  std::vector<Expected> expected;
  for (std::int64_t i = 0; i < program.parameter_count; ++i) {
    if (program.parameters[i].trained != 0)
      expected.push_back({program.parameters[i].name, &program.parameters[i].tensor});
  }
  if (expected.empty()) {
    for (std::int64_t i = 0; i < program.parameter_count; ++i) {
      expected.push_back({program.parameters[i].name, &program.parameters[i].tensor});
    }
  }
  const std::string model = commonPath(expected);
  LoadedTensors loaded;
  loaded.path = file.path;
  std::map<std::string, TensorHeader> found;
  for (auto& [name, array] : readArrays(file.path)) {
    if (name.compare(0, file.suffix.size(), file.suffix) != 0) continue;
    const std::string rest = name.substr(file.suffix.size());
    std::string full = model + rest;
    for (const Expected& parameter : expected) {
      if (parameter.name == rest) full = rest;
    }
    found[full] = TensorHeader{full, array.type, array.shape};
    loaded.tensors[full] = {array.type, loaded.bytes.size()};
    loaded.bytes.insert(loaded.bytes.end(), array.bytes.begin(), array.bytes.end());
  }
  std::string problems;
  compare(expected, found, problems);
  if (!problems.empty()) throw failure(kExitMismatch, diag::CheckpointMismatch, file.path, problems);
  return loaded;
}

void applyTensors(Device& device, const LoadedTensors& loaded) {
  for (const Expected& tensor : savedTensors(device.program())) {
    const auto entry = loaded.tensors.find(tensor.name);
    if (entry == loaded.tensors.end()) continue;
    const std::size_t begin = entry->second.begin;
    Bytes part;
    const auto read = [&](std::int64_t first, std::int64_t count) -> const std::byte* {
      if (loaded.file == nullptr) return loaded.bytes.data() + begin + first;
      part = loaded.file->read(begin + static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      return part.data();
    };
    wholeToTile(device.tile(*tensor.tensor), shapeOf(*tensor.tensor), entry->second.type, read,
                static_cast<ElementType>(tensor.tensor->dtype), device.arena() + tensor.tensor->offset);
  }
}

bool assemble(Device& device, const gshard_rt_tensor& tensor, Array& whole) {
  const gshard_rt_program& program = device.program();
  whole.type = static_cast<ElementType>(tensor.dtype);
  whole.shape = shapeOf(tensor);
  bool everywhere = true;
  for (std::int64_t d = 0; d < tensor.rank; ++d) {
    const gshard_rt_extent& extent = program.extents[tensor.extents[d]];
    if (extent.axis_count != 0) everywhere = false;
    if (extent.row_scale != 0) whole.shape[static_cast<std::size_t>(d)] = device.rows() * extent.row_scale;
  }
  std::vector<std::vector<std::byte>> tiles;
  if (!everywhere && !device.transport().collect(tensor.offset, tensor.bytes, tiles)) return false;
  if (device.transport().rank() != 0) return true;
  whole.bytes.resize(static_cast<std::size_t>(whole.count() * elementBytes(whole.type)));
  if (everywhere) {
    tileToWhole(device.tile(tensor), whole.shape, whole.type, device.arena() + tensor.offset, whole.bytes.data());
    return true;
  }
  for (int rank = 0; rank < device.transport().size(); ++rank) {
    const Tile tile = tileOf(device.extents(), tensor, device.extents().of(rank, device.rows()));
    tileToWhole(tile, whole.shape, whole.type, tiles[static_cast<std::size_t>(rank)].data(), whole.bytes.data());
  }
  return true;
}

// Of the devices that hold a tensor's tile alike, one writes it; which one goes round with the tensor's number, so that
// replicated tensors are shared out, too.
static bool writesTile(const Device& device, const gshard_rt_tensor& tensor, int rank, std::size_t number) {
  const gshard_rt_program& program = device.program();
  std::vector<gshard_rt_axis_ref> split;
  for (std::int64_t d = 0; d < tensor.rank; ++d) {
    const gshard_rt_extent& extent = program.extents[tensor.extents[d]];
    split.insert(split.end(), extent.axes, extent.axes + extent.axis_count);
  }
  const auto replicaOf = [&](int any) {
    return device.extents().base(any, split.data(), static_cast<std::int64_t>(split.size()));
  };
  std::vector<int> replicas;
  for (int any = 0; any < static_cast<int>(program.devices); ++any) {
    if (replicaOf(any) == any) replicas.push_back(any);
  }
  return replicas[number % replicas.size()] == replicaOf(rank);
}

static void writeTile(Device& device, const gshard_rt_tensor& tensor, std::int64_t offset, FilePart& file) {
  const Tile tile = device.tile(tensor);
  if (tile.empty()) return;
  const std::int64_t size = elementBytes(static_cast<ElementType>(tensor.dtype));
  for (const TileRun& run : tileRuns(tile, shapeOf(tensor), 0)) {
    file.writeAt(offset + run.flat * size, device.arena() + tensor.offset + run.local * size,
                 static_cast<std::size_t>(run.count * size));
  }
}

static void forgetOldest(const std::string& folder, std::int64_t step, std::int64_t keep) {
  std::vector<std::int64_t> steps = stepsIn(folder);
  while (keep > 0 && static_cast<std::int64_t>(steps.size()) > keep) {
    if (steps.front() != step) unlink(stepPath(folder, steps.front()).c_str());
    steps.erase(steps.begin());
  }
}

std::string saveCheckpoint(Device& device, const std::string& folder, std::int64_t step, std::uint64_t seed,
                           std::int64_t keep) {
  Transport& transport = device.transport();
  const std::vector<Expected> tensors = savedTensors(device.program());
  std::string path = stepPath(folder, step);
  std::vector<TensorHeader> headers;
  for (const Expected& tensor : tensors) {
    headers.push_back({tensor.name, static_cast<ElementType>(tensor.tensor->dtype), shapeOf(*tensor.tensor)});
  }
  const SafetensorsPlan plan = planSafetensors(headers, {{"format", "gshard-1"},
                                                         {"program", device.program().name},
                                                         {"seed", std::to_string(seed)},
                                                         {"step", std::to_string(step)}});
  // Device 0 makes the file, all write into it, device 0 gives it its name. Whatever fails on the way ends all devices,
  // and the unfinished file goes.
  std::optional<AtomicFile> whole;
  std::string temporary;
  if (transport.rank() == 0) {
    whole.emplace(path);
    whole->write(plan.header);
    whole->reserve(plan.bytes);
    temporary = whole->temporary();
  }
  char suffix[Transport::kAgreeBytes] = "";  // what the temporary name has beyond the final one
  if (!temporary.empty()) std::snprintf(suffix, sizeof suffix, "%s", temporary.c_str() + path.size());
  std::vector<char> suffixes(sizeof suffix * static_cast<std::size_t>(transport.size()));
  if (!transport.agree(suffix, sizeof suffix, suffixes.data())) return "";
  FilePart part(path, path + suffixes.data());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!writesTile(device, *tensors[i].tensor, transport.rank(), i)) continue;
    writeTile(device, *tensors[i].tensor, plan.offsets[i], part);
  }
  part.sync();
  if (!transport.barrier() || !whole) return "";
  whole->commit();
  AtomicFile latest(folder + "/latest");
  latest.write(stepName(step) + "\n");
  latest.commit();
  forgetOldest(folder, step, keep);
  return path;
}

}  // namespace gshard::runtime
