// A case of tests/run: a .gsd program with `//!` lines that say meshes, inputs, expected outputs and plans.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gshard::testing {

// Numbers of an input or an expected value, row-major. A literal list, or iota[…], ones[…], full[…] v, mod5[…],
// mod7[…].
struct Numbers {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};
Numbers parseNumbers(const std::string& text);  // throws std::runtime_error

struct ExpectedOutput {
  std::string name;              // "result.0"
  std::vector<std::int64_t> at;  // leading indices: "result.0[3, 1]"
  Numbers numbers;
};

// `plan MESH: none`, `plan MESH: all_reduce 4, exchange 12` (kind and bytes, in order), `plan MESH: at most N bytes
// each`.
struct ExpectedPlan {
  std::string mesh;
  std::vector<std::pair<std::string, std::int64_t>> collectives;
  std::optional<std::int64_t> atMost;
};

struct RunCase {
  std::string name, path;
  std::vector<std::string> meshes;  // "d=2", "x=4,y=2"
  std::vector<std::pair<std::string, Numbers>> inputs;
  std::vector<ExpectedOutput> outputs;
  std::vector<ExpectedPlan> plans;
  bool exact = false;
  double tolerance = 1e-6;  // relative to the larger of 1 and the expected value
  std::vector<std::string> defines;
  std::string fault;            // `fault TEXT`: the run ends with this in its message, the same on every mesh
  bool likeOneDevice = false;   // `like one device`: the outputs are, bit for bit, those of the program on one device
  std::int64_t trainSteps = 0;  // `train N`: so many steps first, from whose checkpoint the entry reads
};

RunCase parseRunCase(const std::string& path);  // throws std::runtime_error with file and line

}  // namespace gshard::testing
