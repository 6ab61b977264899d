// Command line; see options.h.
#include "runtime/options.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/failure.h"
#include "runtime/parse_integer.h"

namespace gshard::runtime {
namespace {

bool setInteger(const std::string& text, std::int64_t least, std::int64_t& value) {
  const std::optional<std::int64_t> number = parseInteger(text);
  value = number.value_or(0);
  return number && value >= least;
}

bool splitPair(const std::string& text, std::vector<std::pair<std::string, std::string>>& out) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) return false;
  out.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  return true;
}

bool setText(std::string& field, const std::string& value) {
  field = value;
  return !value.empty();
}

bool oneOf(std::string& field, const std::string& value, std::initializer_list<const char*> known) {
  field = value;
  return std::find(known.begin(), known.end(), value) != known.end();
}

bool setProgress(Options& options, const std::string& value) {
  const std::pair<const char*, ProgressKind> kinds[] = {{"auto", ProgressKind::Auto},
                                                        {"bar", ProgressKind::Bar},
                                                        {"plain", ProgressKind::Plain},
                                                        {"none", ProgressKind::None}};
  for (const auto& [name, kind] : kinds) {
    if (value != name) continue;
    options.progress = kind;
    return true;
  }
  return false;
}

bool setResume(Options& options, const std::string& value) {
  std::int64_t step = 0;
  options.resume = value;
  return value == "auto" || value == "no" || setInteger(value, 0, step);
}

bool setSeed(Options& options, const std::string& value) {
  const std::optional<std::uint64_t> number = parseInteger<std::uint64_t>(value);
  options.seed = number.value_or(0);
  return number.has_value();
}

bool setTimeout(Options& options, const std::string& value) {
  char* end = nullptr;
  options.timeout = std::strtod(value.c_str(), &end);
  return !value.empty() && *end == '\0' && options.timeout >= 0;
}

}  // namespace

const std::vector<OptionRow>& optionTable() {
  using O = Options;
  using S = const std::string&;
  static const std::vector<OptionRow> kTable = {
      {"data", 0, "FILE[:PREFIX]", "Inputs", "npz or safetensors whose keys (after PREFIX) are input names", "a file",
       [](O& o, S v) { return setText(o.data, v); }},
      {"input", 0, "NAME=FILE", "Inputs", "file of one input; FILE[:, 0:64] selects columns, FILE:KEY an array",
       "NAME=FILE", [](O& o, S v) { return splitPair(v, o.inputs); }},
      {"set", 0, "NAME=VALUE", "Inputs", "constant that shapes nothing, as a learning rate", "NAME=VALUE",
       [](O& o, S v) { return splitPair(v, o.settings); }},
      {"steps", 0, "N", "Training", "updates to make (default: one epoch, or 100 without data)",
       "a whole number of at least 0", [](O& o, S v) { return setInteger(v, 0, o.steps); }},
      {"epochs", 0, "N", "Training", "passes over the data, instead of --steps", "a whole number of at least 0",
       [](O& o, S v) { return setInteger(v, 0, o.epochs); }},
      {"seed", 0, "N", "Training", "of all random values (default 0)", "a whole number from 0 to 2^64-1", setSeed},
      {"init", 0, "FILE[:PREFIX]", "Training", "start from these parameters (npz or safetensors)", "a file",
       [](O& o, S v) { return setText(o.init, v); }},
      {"checkpoint", 0, "DIR", "Training", "train: saved here; eval, predict: loaded from here", "a folder",
       [](O& o, S v) { return setText(o.checkpoint, v); }},
      {"resume", 0, "auto|STEP|no", "Training", "train: go on from a checkpoint in DIR (default no)",
       "auto, no or a step", setResume},
      {"save-every", 0, "N", "Training", "also save every N steps (default: at the end only)",
       "a whole number of at least 0", [](O& o, S v) { return setInteger(v, 0, o.saveEvery); }},
      {"keep", 0, "N", "Training", "checkpoints kept, 0 for all (default 3)", "a whole number of at least 0",
       [](O& o, S v) { return setInteger(v, 0, o.keep); }},
      {"eval-every", 0, "N", "Training", "also evaluate every N steps, on the data of training unless told otherwise",
       "a whole number of at least 0", [](O& o, S v) { return setInteger(v, 0, o.evalEvery); }},
      {"eval-data", 0, "FILE[:PREFIX]", "Training", "data for --eval-every, as --data", "a file",
       [](O& o, S v) { return setText(o.evalData, v); }},
      {"eval-input", 0, "NAME=FILE", "Training", "one input for --eval-every, as --input", "NAME=FILE",
       [](O& o, S v) { return splitPair(v, o.evalInputs); }},
      {"transport", 0, "auto|local|mpi", "Devices", "threads of one process, or MPI ranks (default: as started)",
       "auto, local or mpi", [](O& o, S v) { return oneOf(o.transport, v, {"auto", "local", "mpi", "mpi-messages"}); }},
      {"threads", 0, "N", "Devices", "threads per device, at most as compiled", "a whole number of at least 1",
       [](O& o, S v) { return setInteger(v, 1, o.threads); }},
      {"timeout", 0, "SEC", "Devices", "a device may wait this long for others, 0 for ever (default 60)",
       "seconds, at least 0", setTimeout},
      {"output", 'o', "FILE", "Output", "results to FILE: .npy, .npz or .safetensors (default: text on stdout)",
       "a file", [](O& o, S v) { return setText(o.output, v); }},
      {"metrics", 0, "FILE", "Output", "one JSON record per step", "a file",
       [](O& o, S v) { return setText(o.metrics, v); }},
      {"trace", 0, "FILE", "Output", "what every device did when, as a Chrome trace (JSON)", "a file",
       [](O& o, S v) { return setText(o.trace, v); }},
      {"progress", 0, "auto|bar|plain|none", "Output", "how steps are shown on stderr (default auto)",
       "auto, bar, plain or none", setProgress},
      {"log-level", 0, "error|info|debug", "Output", "what is said on stderr (default info)", "error, info or debug",
       [](O& o, S v) { return oneOf(o.logLevel, v, {"error", "info", "debug"}); }},
      {"quiet", 'q', "", "Output", "say nothing but errors and results", "", [](O& o, S) { return o.quiet = true; }},
      {"json", 0, "", "Output", "info: as JSON", "", [](O& o, S) { return o.json = true; }},
      {"check-numerics", 0, "", "Checking", "end at the first NaN or infinity, naming its op, line and device", "",
       [](O& o, S) { return o.checkNumerics = true; }},
      {"profile", 0, "", "Checking", "report where the time of device 0 goes, by lines of the program", "",
       [](O& o, S) { return o.profile = true; }},
      {"measure-peak", 0, "", "Checking", "fill the arenas with a pattern and report the highest touched byte", "",
       [](O& o, S) { return o.measurePeak = true; }},
      {"verify-plan", 0, "", "Checking", "counted bytes of every call must equal the planned ones", "",
       [](O& o, S) { return o.verifyPlan = true; }},
      {"help", 'h', "", "Output", "this text", "", [](O& o, S) { return o.help = true; }},
  };
  return kTable;
}

static std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = editDistance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = &candidate;
  }
  return best == nullptr ? "" : ", did you mean `" + *best + "`?";
}

static const OptionRow* findOption(std::string_view name, char letter) {
  for (const OptionRow& row : optionTable()) {
    if (letter != 0 ? row.letter == letter : row.name == name) return &row;
  }
  return nullptr;
}

Options parseOptions(int argc, char** argv, const std::string& program) {
  Options options;
  std::vector<std::string> names;
  for (const OptionRow& row : optionTable()) names.push_back("--" + std::string(row.name));
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.size() < 2 || word[0] != '-') {
      if (!options.command.empty()) throw failure(kExitUsage, diag::ExtraArgument, options.command, word);
      options.command = word;
      continue;
    }
    const bool isLong = word[1] == '-';
    const std::size_t equals = isLong ? word.find('=') : std::string::npos;
    const std::string name = isLong ? word.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
    const OptionRow* row = findOption(name, isLong ? '\0' : word[1]);
    if (row == nullptr || (!isLong && row->argument.empty() && word.size() > 2)) {
      throw failure(kExitUsage, diag::UnknownOption, word, program, suggestion(word, names));
    }
    std::string value;
    if (!row->argument.empty()) {
      if (equals != std::string::npos) {
        value = word.substr(equals + 1);
      } else if (!isLong && word.size() > 2) {
        value = word.substr(2);
      } else if (++i < argc) {
        value = argv[i];
      } else {
        throw failure(kExitUsage, diag::OptionNeedsValue, word, std::string(row->takes));
      }
    } else if (equals != std::string::npos) {
      throw failure(kExitUsage, diag::OptionValue, "--" + name, word.substr(equals + 1), std::string("no value"));
    }
    if (!row->set(options, value)) {
      throw failure(kExitUsage, diag::OptionValue, "--" + std::string(row->name), value, std::string(row->takes));
    }
  }
  // Flag beats environment beats default; a variable that does not parse is an error, never ignored.
  if (const char* threads = std::getenv("GSHARD_THREADS"); threads != nullptr && options.threads == 0) {
    if (!setInteger(threads, 1, options.threads)) {
      throw failure(kExitUsage, diag::OptionValue, std::string("GSHARD_THREADS"), std::string(threads),
                    std::string("a whole number of at least 1"));
    }
  }
  return options;
}

std::string optionHelp() {
  std::string text;
  for (const std::string_view group : {"Inputs", "Training", "Devices", "Output", "Checking"}) {
    text += "\n" + std::string(group) + ":\n";
    for (const OptionRow& row : optionTable()) {
      if (row.group != group) continue;
      std::string left = row.letter != 0 ? std::string("  -") + row.letter + ", --" : "      --";
      left += row.name;
      if (!row.argument.empty()) left += " " + std::string(row.argument);
      if (left.size() < 30) left.append(30 - left.size(), ' ');
      text += left + "  " + std::string(row.help) + "\n";
    }
  }
  return text;
}

}  // namespace gshard::runtime
