// One run of the binary in one process: what its devices share. Built before any device starts, constant afterwards
// but for the words that signals set and read, so that device threads need no locks.
#pragma once
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi.h"
#include "runtime/checkpoint.h"
#include "runtime/dataset.h"
#include "runtime/options.h"

namespace gshard::runtime {

enum class Command { Train, Eval, Entry };

struct Session {
  const gshard_rt_program& program;
  Options options;
  Command command = Command::Train;
  std::vector<const gshard_rt_function*> functions;      // what the command runs, in order
  std::map<const gshard_rt_function*, Feed> feeds;       // of all of them and their finish functions
  std::vector<const gshard_rt_function*> evalFunctions;  // of --eval-every
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Dataset> evalDataset;     // --eval-data, --eval-input; else training data serve
  std::optional<LoadedTensors> parameters;  // --init
  std::optional<LoadedTensors> checkpoint;
  std::map<std::string, double> settings;  // by --set
  std::int64_t firstStep = 0;              // updates done before this run
  std::int64_t steps = 0;                  // of this run
  bool startedByMpi = false;
  std::atomic<int> signal{0};            // SIGINT, SIGTERM: finish the step, save, end
  std::atomic<bool> statusAsked{false};  // SIGUSR1: say where the run is
  std::atomic<std::int64_t> lastStep{0};
  std::atomic<double> lastLoss{std::numeric_limits<double>::quiet_NaN()};

  Session(const gshard_rt_program& theProgram, Options theOptions)
      : program(theProgram), options(std::move(theOptions)) {}
};

// Fills everything from program and options; reads all files. Throws Failure.
void prepareSession(Session& session);

// Rows of one call of a function: block rows times blocks per step.
std::int64_t rowsPerCall(const gshard_rt_function& function);

// Whole batches that a feed yields per epoch; 0 without data.
std::int64_t batchesPerEpoch(const Feed& feed, const gshard_rt_function& function);

const gshard_rt_function* finishOf(const gshard_rt_program& program, const gshard_rt_function& function);

}  // namespace gshard::runtime
