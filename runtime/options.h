// The produced binary's command line: one table of options, from which parsing, help and suggestions come.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard::runtime {

enum class ProgressKind { Auto, Bar, Plain, None };

struct Options {
  std::string command;
  std::string data;                                           // FILE or FILE:PREFIX
  std::vector<std::pair<std::string, std::string>> inputs;    // name, FILE[:NAME][selection]
  std::vector<std::pair<std::string, std::string>> settings;  // --set
  std::int64_t steps = -1;
  std::int64_t epochs = -1;
  std::uint64_t seed = 0;
  std::string checkpoint;
  std::string resume = "no";  // auto, no or a step
  std::int64_t saveEvery = 0;
  std::int64_t evalEvery = 0;
  std::string evalData;  // as data and inputs
  std::vector<std::pair<std::string, std::string>> evalInputs;
  std::int64_t keep = 3;
  std::string init;  // FILE[:PREFIX]
  std::string output;
  std::string metrics;
  std::string trace;
  ProgressKind progress = ProgressKind::Auto;
  std::string transport = "auto";
  std::int64_t threads = 0;  // 0: as compiled
  double timeout = 60;
  std::string logLevel = "info";
  bool quiet = false;
  bool help = false;
  bool json = false;
  bool measurePeak = false;
  bool profile = false;
  bool checkNumerics = false;
  bool verifyPlan = false;
};

// One row per option.
struct OptionRow {
  std::string_view name;      // without dashes
  char letter;                // short form, or 0
  std::string_view argument;  // "N", "FILE"; empty for a flag
  std::string_view group;
  std::string_view help;
  std::string_view takes;                                   // what a value may be, for messages
  bool (*set)(Options& options, const std::string& value);  // false: not such a value
};
const std::vector<OptionRow>& optionTable();

// Throws Failure (exit code 2). `program` is the name in messages.
Options parseOptions(int argc, char** argv, const std::string& program);

// The nearest of `known`, as ", did you mean `x`?", or "".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

// The options part of --help.
std::string optionHelp();

}  // namespace gshard::runtime
