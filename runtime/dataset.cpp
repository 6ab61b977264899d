// Files to inputs; see dataset.h.
#include "runtime/dataset.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "runtime/failure.h"
#include "runtime/program_text.h"

namespace gshard::runtime {

FileReference parseFileReference(const std::string& text) {
  FileReference reference;
  reference.path = text;
  if (access(text.c_str(), F_OK) == 0) return reference;
  if (!text.empty() && text.back() == ']') {
    const std::size_t bracket = text.rfind('[');
    if (bracket != std::string::npos) {
      reference.selection = text.substr(bracket);
      reference.path = text.substr(0, bracket);
    }
  }
  const std::size_t colon = reference.path.rfind(':');
  if (colon == std::string::npos || access(reference.path.c_str(), F_OK) == 0) return reference;
  reference.suffix = reference.path.substr(colon + 1);
  reference.path.resize(colon);
  return reference;
}

static std::string namesOf(const NamedArrays& arrays) {
  std::string text;
  for (const auto& [name, array] : arrays) {
    text += (text.empty() ? "" : ", ") + (name.empty() ? std::string("one nameless array") : "`" + name + "`");
  }
  return text.empty() ? "nothing" : text;
}

Dataset::Dataset(const Options& options) : seed_(options.seed) {
  if (!options.data.empty()) {
    const FileReference reference = parseFileReference(options.data);
    files_ = reference.path;
    NamedArrays arrays = readArrays(reference.path);
    for (auto& [name, array] : arrays) {
      if (name.size() <= reference.suffix.size() || name.compare(0, reference.suffix.size(), reference.suffix) != 0)
        continue;
      const std::string input = name.substr(reference.suffix.size());
      arrays_[input] = Source{reference.path + ": " + name, std::move(array)};
    }
    if (arrays.size() == 1 && arrays[0].first.empty() && reference.suffix.empty()) {
      arrays_[""] = Source{reference.path, std::move(arrays[0].second)};
    }
    if (arrays_.empty()) {
      throw failure(kExitMismatch, diag::NoSuchArray, reference.path, reference.suffix + "*", namesOf(arrays),
                    std::string());
    }
  }
  for (const auto& [name, file] : options.inputs) {
    const FileReference reference = parseFileReference(file);
    files_ += (files_.empty() ? "" : ", ") + reference.path;
    NamedArrays arrays = readArrays(reference.path);
    Array* chosen = nullptr;
    if (reference.suffix.empty() && arrays.size() == 1) chosen = &arrays[0].second;
    const std::string& wanted = reference.suffix.empty() ? name : reference.suffix;
    std::vector<std::string> known;
    for (auto& [key, array] : arrays) {
      known.push_back(key);
      if (key == wanted) chosen = &array;
    }
    if (chosen == nullptr) {
      throw failure(kExitMismatch, diag::NoSuchArray, reference.path, wanted, namesOf(arrays),
                    suggestion(wanted, known));
    }
    Array array =
        reference.selection.empty() ? std::move(*chosen) : selectPart(*chosen, reference.selection, reference.path);
    arrays_[name] = Source{file, std::move(array)};
  }
}

const Dataset::Source* Dataset::find(const std::string& name) const {
  const auto found = arrays_.find(name);
  return found == arrays_.end() ? nullptr : &found->second;
}

// Float files feed integer inputs only with whole numbers in range; integer files only when they fit.
static void checkValues(const gshard_rt_input& input, const Array& array, const std::string& source) {
  const ElementType to = static_cast<ElementType>(input.tensor.dtype);
  if (isFloat(to) || to == array.type || array.type == ElementType::Bool) return;
  if (array.type == ElementType::U8 && (to == ElementType::I32 || to == ElementType::I64)) return;
  if (array.type == ElementType::I32 && to == ElementType::I64) return;
  double least = 0;
  double most = 1;
  if (to == ElementType::I32)
    least = std::numeric_limits<std::int32_t>::min(), most = std::numeric_limits<std::int32_t>::max();
  if (to == ElementType::U8) most = 255;
  if (to == ElementType::I64) least = -0x1p63, most = 0x1p63 - 1024;
  for (std::int64_t i = 0; i < array.count(); ++i) {
    const double value = asDouble(array, i);
    if (value >= least && value <= most && value == std::floor(value)) continue;
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    throw failure(kExitMismatch, diag::InputValue, std::string(input.name), tensorText(input.tensor), source,
                  std::string(text), i);
  }
}

Feed Dataset::bind(const gshard_rt_function& function) const {
  Feed feed;
  feed.seed = seed_;
  std::string firstRows;
  std::string known;
  for (std::int64_t i = 0; i < function.input_count; ++i)
    known += (i == 0 ? "`" : ", `") + std::string(function.inputs[i].name) + "`";
  for (std::int64_t i = 0; i < function.input_count; ++i) {
    const gshard_rt_input& input = function.inputs[i];
    BoundInput bound;
    bound.input = &input;
    const std::vector<std::int64_t> shape = shapeOf(input.tensor);
    for (std::size_t d = input.rows != 0 ? 1 : 0; d < shape.size(); ++d) bound.rowElements *= shape[d];
    const Source* source = find(input.name);
    // A file of one array without a name can only be meant for an input that is alone.
    if (source == nullptr && function.input_count == 1) source = find("");
    if (source == nullptr && arrays_.size() == 1 && find("") != nullptr) {
      throw failure(kExitMismatch, diag::NoSuchArray, files_, std::string(input.name),
                    std::string("one nameless array"), std::string("; --input NAME=FILE feeds it to one input"));
    }
    if (source == nullptr && !arrays_.empty()) {
      std::string holds;
      for (const auto& [name, unused] : arrays_) holds += (holds.empty() ? "`" : ", `") + name + "`";
      throw failure(kExitMismatch, diag::InputMissing, files_, std::string(input.name), baseName(function), holds);
    }
    if (source != nullptr) {
      const Array& array = source->array;
      bound.array = &array;
      bound.source = source->file;
      const auto misfit = [&](const std::string& why) {
        return failure(kExitMismatch, diag::InputShape, std::string(input.name), tensorText(input.tensor), source->file,
                       arrayText(array), why);
      };
      if (input.rows == 0) {
        if (array.count() != bound.rowElements) throw misfit("the numbers of elements differ");
      } else {
        std::int64_t trailing = 1;
        for (std::size_t d = 1; d < array.shape.size(); ++d) trailing *= array.shape[d];
        if (array.shape.empty()) throw misfit("it has no rows");
        std::int64_t rows = array.shape[0];
        if (trailing != bound.rowElements) {
          if (array.shape.size() != 1 || array.count() < bound.rowElements) {
            throw misfit("a row has " + std::to_string(trailing) + " elements, not " +
                         std::to_string(bound.rowElements));
          }
          bound.windows = true;
          rows = array.count() / bound.rowElements;
        }
        if (feed.rows >= 0 && rows != feed.rows) {
          throw failure(kExitMismatch, diag::RowCounts, firstRows, feed.rows, std::string(input.name), rows);
        }
        feed.rows = rows;
        firstRows = input.name;
      }
      checkValues(input, array, source->file);
    }
    feed.inputs.push_back(bound);
  }
  // A function whose inputs are all fed whole has one "row": the call.
  if (feed.rows < 0 && !arrays_.empty()) feed.rows = 1;
  return feed;
}

bool Feed::hasWindows() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const BoundInput& bound) { return bound.windows; });
}

std::string feedText(const Feed& feed) {
  std::string text;
  for (const BoundInput& bound : feed.inputs) {
    if (bound.array == nullptr) continue;
    text += (text.empty() ? "" : ", ") + std::string(bound.input->name) + " " + arrayText(*bound.array);
  }
  return text;
}

}  // namespace gshard::runtime
