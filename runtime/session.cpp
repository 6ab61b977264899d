// Preparing a run; see session.h.
#include "runtime/session.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "runtime/array.h"
#include "runtime/failure.h"
#include "runtime/program_text.h"

namespace gshard::runtime {

std::int64_t rowsPerCall(const gshard_rt_function& function) {
  if (function.step_rows > 0) return function.step_rows;
  return function.rows * std::max<std::int64_t>(function.blocks, 1);
}

std::int64_t batchesPerEpoch(const Feed& feed, const gshard_rt_function& function) {
  if (!feed.hasData()) return 0;
  if (function.rows == 0) return 1;
  // Windows are drawn anew in each step and may overlap, so even a short text fills a batch.
  const std::int64_t batches = feed.rows / rowsPerCall(function);
  return feed.hasWindows() ? std::max<std::int64_t>(batches, 1) : batches;
}

const gshard_rt_function* finishOf(const gshard_rt_program& program, const gshard_rt_function& function) {
  return function.stage == GSHARD_RT_ACCUMULATE && function.finish >= 0 ? &program.functions[function.finish] : nullptr;
}

static void chooseCommand(Session& session) {
  const gshard_rt_program& program = session.program;
  const std::string& word = session.options.command;
  std::string entries;
  for (const gshard_rt_function* function : functionsOf(program, GSHARD_RT_ENTRY)) {
    entries += (entries.empty() ? "`" : ", `") + baseName(*function) + "`";
  }
  if (const gshard_rt_function* entry = entryNamed(program, word)) {
    session.command = Command::Entry;
    session.functions = {entry};
  } else if (word == "train" || word == "eval") {
    session.command = word == "train" ? Command::Train : Command::Eval;
    session.functions = functionsOf(program, word == "train" ? GSHARD_RT_TRAIN : GSHARD_RT_EVAL);
    if (session.functions.empty()) throw failure(kExitUsage, diag::NothingToTrain, entries);
  } else {
    throw failure(kExitUsage, diag::UnknownCommand, word, suggestion(word, commandNames(program)));
  }
}

static void applySettings(Session& session) {
  std::vector<std::string> known;
  for (std::int64_t i = 0; i < session.program.setting_count; ++i) known.push_back(session.program.settings[i].name);
  for (const auto& [name, text] : session.options.settings) {
    bool found = false;
    for (const std::string& setting : known) found = found || setting == name;
    if (!found) {
      std::string more = suggestion(name, known);
      for (std::int64_t i = 0; i < session.program.constant_count; ++i) {
        if (name == session.program.constants[i].name) more = "; it needs `gshardc -D " + name + "=" + text + "`";
      }
      throw failure(kExitUsage, diag::UnknownConstant, name, more);
    }
    char* end = nullptr;
    session.settings[name] = std::strtod(text.c_str(), &end);
    if (*end != '\0') throw failure(kExitUsage, diag::OptionValue, "--set " + name, text, std::string("a number"));
  }
}

static void checkInputNames(const Session& session) {
  std::string names;
  std::vector<std::string> known;
  for (const gshard_rt_function* function : session.functions) {
    for (std::int64_t i = 0; i < function->input_count; ++i) {
      known.push_back(function->inputs[i].name);
      names += (names.empty() ? "`" : ", `") + known.back() + "`";
    }
  }
  for (const auto* given : {&session.options.inputs, &session.options.evalInputs}) {
    for (const auto& [name, file] : *given) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      throw failure(kExitUsage, diag::UnknownInput, name, session.options.command, names.empty() ? "none" : names,
                    suggestion(name, known));
    }
  }
}

static void countSteps(Session& session) {
  const gshard_rt_function& first = *session.functions[0];
  const Feed& feed = session.feeds.at(&first);
  const std::int64_t batches = batchesPerEpoch(feed, first);
  if (feed.hasData() && batches == 0) {
    throw failure(kExitMismatch, diag::TooFewRows, feed.inputs[0].source, feed.rows, rowsPerCall(first));
  }
  session.steps = session.options.steps;
  if (session.steps >= 0) return;
  const std::int64_t epochs = session.options.epochs;
  if (epochs >= 0 && !feed.hasData()) {
    throw failure(kExitUsage, diag::OptionValue, std::string("--epochs"), std::to_string(epochs),
                  std::string("--data or --input beside it; without data, say --steps"));
  }
  session.steps = feed.hasData() ? batches * (epochs >= 0 ? epochs : 1) : 100;
}

// What an entry and its finish function write with -o.
static std::size_t resultCount(const Session& session) {
  std::size_t count = 0;
  for (const gshard_rt_function* function : session.functions) {
    for (const gshard_rt_function* part : {function, finishOf(session.program, *function)}) {
      for (std::int64_t i = 0; part != nullptr && i < part->output_count; ++i) {
        count += part->outputs[i].kind == GSHARD_RT_OUTPUT ? 1 : 0;
      }
    }
  }
  return count;
}

// What --eval-every evaluates while training, and on which data.
static void prepareEvaluation(Session& session) {
  const Options& options = session.options;
  const bool hasOwnData = !options.evalData.empty() || !options.evalInputs.empty();
  if (hasOwnData && options.evalEvery == 0) {
    throw failure(kExitUsage, diag::OptionNeedsValue,
                  std::string(options.evalData.empty() ? "--eval-input" : "--eval-data"),
                  std::string("--eval-every N beside it"));
  }
  if (options.evalEvery == 0 || session.command != Command::Train) return;
  session.evalFunctions = functionsOf(session.program, GSHARD_RT_EVAL);
  if (hasOwnData) {
    Options own = options;
    own.data = options.evalData;
    own.inputs = options.evalInputs;
    session.evalDataset = std::make_unique<Dataset>(own);
  }
  const Dataset& dataset = hasOwnData ? *session.evalDataset : *session.dataset;
  for (const gshard_rt_function* function : session.evalFunctions) {
    session.feeds[function] = dataset.bind(*function);
    if (const gshard_rt_function* finish = finishOf(session.program, *function)) {
      session.feeds[finish] = dataset.bind(*finish);
    }
  }
}

void prepareSession(Session& session) {
  chooseCommand(session);
  applySettings(session);
  checkInputNames(session);
  session.dataset = std::make_unique<Dataset>(session.options);
  for (const gshard_rt_function* function : session.functions) {
    session.feeds[function] = session.dataset->bind(*function);
    if (const gshard_rt_function* finish = finishOf(session.program, *function)) {
      session.feeds[finish] = session.dataset->bind(*finish);
    }
  }
  prepareEvaluation(session);
  const Options& options = session.options;
  if (session.command == Command::Entry && !options.output.empty() && options.output != "-") {
    checkWritable(options.output, resultCount(session));
  }
  if (!options.init.empty()) session.parameters = loadParameters(session.program, options.init);
  const bool loads = session.command == Command::Train ? options.resume != "no" : !options.checkpoint.empty();
  if (loads) {
    if (options.checkpoint.empty()) {
      throw failure(kExitUsage, diag::OptionNeedsValue, std::string("--resume"),
                    std::string("--checkpoint DIR beside it"));
    }
    session.checkpoint = loadCheckpoint(session.program, options.checkpoint, options.resume,
                                        session.command == Command::Train && options.resume == "auto");
    if (session.checkpoint) session.firstStep = session.checkpoint->step;
  }
  if (session.command == Command::Train) {
    countSteps(session);
    if (!options.checkpoint.empty()) makeFolders(options.checkpoint);
  }
}

}  // namespace gshard::runtime
