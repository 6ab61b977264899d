// What the command line says. One struct, filled once, passed by const reference; no stage copies parts of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gshard {

enum class Command { Compile, Run, Check, Explain, Verify, Format };
enum class ColorMode { Auto, Always, Never };
enum class DiagnosticsFormat { Text, Short, Json, Sarif };

struct Options {
  Command command = Command::Compile;
  std::string input;                // the .gsd or .ir file; explain: or a code
  std::vector<std::string> inputs;  // fmt
  std::string output;               // -o

  // Layout
  std::string mesh;  // "a=2,b=4"
  std::optional<std::int64_t> devices;
  std::vector<std::string> layouts;
  std::string platform;
  bool strictSharding = false;
  std::int64_t memoryLimit = 0;  // bytes of one device; 0: none
  std::int64_t rows = 0;
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<std::string> importPaths;

  // Output and optimisation
  std::vector<std::pair<std::string, std::string>> emit;  // kind, path (empty: by default)
  std::string depfile, depfileTarget;
  std::string target, cpu;
  int optimization = 3;
  bool debug = false;
  std::int64_t threads = 1;
  std::string dumpAfter;
  bool printPasses = false;
  bool timePasses = false;

  // Diagnostics
  ColorMode color = ColorMode::Auto;
  DiagnosticsFormat diagnostics = DiagnosticsFormat::Text;
  std::int64_t errorLimit = 20;
  bool warningsAsErrors = false;
  bool noWarnings = false;
  std::vector<std::string> silenced;  // -Wno-NAME
  std::vector<std::string> remarks;   // -RNAME
  bool verbose = false;
  bool quiet = false;

  // run, verify, explain, check, fmt
  bool mpi = false;
  std::vector<std::string> arguments;  // after --
  std::string counts = "1,2,3,4,8";    // verify -n
  std::int64_t steps = 3;              // verify: training steps
  bool planOnly = false;               // explain --plan
  std::int64_t line = 0;               // explain --line
  bool applyFixes = false;             // check --fix
  bool formatCheck = false;            // fmt --check
};

// Fills `options`. When there is nothing more to do (help, version, a usage error) the exit code comes back.
std::optional<int> parseOptions(int argc, char** argv, Options& options);

}  // namespace gshard
