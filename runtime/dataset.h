// What feeds the inputs of functions: files bound to input names, checked once against the program, then copied tile
// by tile. Loaded once per process; devices read it together.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/array.h"
#include "runtime/device.h"
#include "runtime/options.h"
#include "runtime/row_order.h"

namespace gshard::runtime {

// Rows of a call: block row i is data row order(epoch, first + i) when shuffled, else first + i.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // of seeded inputs and random windows
  bool shuffled = false;
};

// An input with its array, or with none: then its values are seeded.
struct BoundInput {
  const gshard_rt_input* input = nullptr;
  const Array* array = nullptr;
  std::string source;            // "digits.npz: x"
  std::int64_t rowElements = 1;  // of one row as the program sees it
  bool windows = false;          // a flat array feeds windows
};

// The inputs of one function.
struct Feed {
  std::vector<BoundInput> inputs;
  std::int64_t rows = -1;  // in the data; -1: no data, seeded
  std::uint64_t seed = 0;

  bool hasData() const { return rows >= 0; }
  bool hasWindows() const;
};

class Dataset {
 public:
  // Reads every file that the options name. Throws Failure.
  explicit Dataset(const Options& options);

  // Finds and checks the arrays of a function's inputs. Throws Failure (exit code 4 or 2).
  Feed bind(const gshard_rt_function& function) const;

  bool empty() const { return arrays_.empty(); }

 private:
  struct Source {
    std::string file;
    Array array;
  };
  const Source* find(const std::string& name) const;

  std::map<std::string, Source> arrays_;  // by input name
  std::string files_;
  std::uint64_t seed_;
};

// Copies this device's tiles of all inputs for the rows of a block.
void feedInputs(Device& device, const Feed& feed, const RowRange& rows);

// "x f32[1797, 64], y i32[1797]"; empty without data.
std::string feedText(const Feed& feed);

// FILE, FILE:PREFIX, FILE:NAME[0:3] taken apart; a file whose name holds a colon wins.
struct FileReference {
  std::string path, suffix, selection;
};
FileReference parseFileReference(const std::string& text);

}  // namespace gshard::runtime
