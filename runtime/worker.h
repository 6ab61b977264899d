// What one device does in a run: initialise, then train, evaluate or compute an entry. All devices execute the same
// calls in the same order; decisions that could differ (faults, signals) are agreed after every call.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/check_numerics.h"
#include "runtime/device.h"
#include "runtime/reporter.h"
#include "runtime/session.h"
#include "runtime/step_profile.h"
#include "runtime/trace.h"

namespace gshard::runtime {

class Worker {
 public:
  Worker(Session& session, Device& device, Reporter& reporter);

  // The exit code; kExitOtherDevice after an abort, whose note the transport holds. Throws Failure.
  int run();

 private:
  // What every device contributes to the agreement after a call; at most Transport::kAgreeBytes.
  struct Contribution {
    Fault fault;
    std::int64_t bytes = 0;
    double compute = 0, communication = 0, wait = 0;
    std::int64_t signal = 0;
  };
  struct Agreement {
    Fault fault;
    int faultDevice = -1;
    std::int64_t bytesMax = 0, bytesTotal = 0;
    double compute = 0, communication = 0, wait = 0;  // means
    int signal = 0;
  };

  [[nodiscard]] bool startTrace();
  [[nodiscard]] bool endTrace();
  int initialise();
  int train();
  struct Evaluation {
    Metrics metrics;
    std::int64_t samples = 0, bytes = 0;
  };
  int evaluate(const std::vector<const gshard_rt_function*>& functions, Evaluation& evaluation);
  int evaluateAndPrint();
  int computeEntry();
  int writeResults(NamedArrays& results);
  int finishRun(int code);

  // All blocks of one call, and its finish function.
  // `afterBlock` sees the function whose outputs are complete: each block's, then the finish function's.
  using AfterBlock = std::function<bool(const gshard_rt_function&)>;
  [[nodiscard]] bool call(const gshard_rt_function& function, RowRange rows, const AfterBlock& afterBlock = {});
  [[nodiscard]] bool runFunction(const gshard_rt_function& function, const RowRange& rows, std::int64_t total);
  void writeScalars(const gshard_rt_function& function);

  // 0, or the exit code for a fault or a wrong byte count (told by device 0).
  int agree(const gshard_rt_function& function, std::int64_t plannedMax, std::int64_t plannedTotal, bool exact,
            Agreement& agreement);
  int reportFault(const Agreement& agreement);

  // Scalars and reports of the function that holds the call's outputs, put at `first` and after it (on rank 0); returns
  // their end. Allocates nothing when `metrics` has been filled so before.
  std::size_t readMetrics(const gshard_rt_function& function, Metrics& metrics, std::size_t first);
  const std::vector<std::string>& metricNames(const gshard_rt_function& function);
  // Appends rows to, or sets, the results of the function's outputs (on rank 0).
  [[nodiscard]] bool readResults(const gshard_rt_function& function, NamedArrays& results);
  [[nodiscard]] bool save(std::int64_t step);

  Session& session_;
  Device& device_;
  Reporter& reporter_;
  StepProfile profile_;
  NumericsCheck numerics_;
  std::unique_ptr<Trace> trace_;
  std::vector<Contribution> contributions_;  // of all devices
  std::map<const gshard_rt_function*, std::vector<std::string>> metricNames_;
  std::int64_t step_ = 0;
  std::int64_t plannedPeak_ = 0;
  std::int64_t bytesBefore_ = 0;
  RunTimes timesBefore_;
  double waitBefore_ = 0;
};

}  // namespace gshard::runtime
