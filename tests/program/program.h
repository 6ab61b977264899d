// gshardc and the binaries that it makes, started as a person starts them: for tests of the whole. Everything goes
// through the command line, so that what these tests hold is what users get.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gshard::testing {

using Words = std::vector<std::string>;

struct Outcome {
  int code = -1;  // exit code, or 128 + the signal
  std::string out, err;
  std::string all() const { return "exit code " + std::to_string(code) + "\n" + out + err; }
};

// A folder of its own for each test, removed at its end.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  // Writes `text` and answers the path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

// Under a sanitizer (test preset asan), which has an allocator and an address space of its own.
bool isSanitized();

// Runs `words` in `folder` (empty: the scratch folder's parent) and waits; what it says is kept, whatever its length.
Outcome runCommand(const Words& words, const std::string& folder = {});
Outcome gshardc(const Words& words, const std::string& folder = {});

enum class Transport { Local, Mpi };

// A compiled program. compile() fails the test when gshardc does.
struct Binary {
  std::string path;
  std::int64_t devices = 1;
  Transport transport = Transport::Local;

  Outcome operator()(const Words& words) const;
};
Binary compile(const Scratch& scratch, const std::string& source, const std::string& name, std::int64_t devices,
               const Words& options, Transport transport = Transport::Local);

// What mpirun needs in a container and with more ranks than cores; Binary sets it, too. For starting mpirun otherwise.
void setMpiEnvironment();

// Of a --metrics file: the losses of the training steps, in order.
std::vector<double> lossesOf(const std::string& metrics);
// Planned and measured peak of a --metrics file written with --measure-peak.
struct Peak {
  std::int64_t planned = 0, measured = 0;
};
Peak peakOf(const std::string& metrics);

// Arrays of an npy, npz or safetensors file as doubles, by name.
struct Numbers {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  bool operator==(const Numbers&) const = default;
};
std::map<std::string, Numbers> numbersOf(const std::string& path);
// An .npy file of float64, which programs convert to what they declare.
std::string writeNumbers(const std::string& path, const Numbers& numbers);

// Writes to `to` the arrays of `from` that `names` has, by their new names, and answers `to`.
std::string copyRenamed(const std::string& from, const std::string& to,
                        const std::map<std::string, std::string>& names);

// Largest difference over largest magnitude of `expected`; infinite when shapes differ.
double relativeDifference(const Numbers& expected, const Numbers& found);

std::string readFile(const std::string& path);

}  // namespace gshard::testing
