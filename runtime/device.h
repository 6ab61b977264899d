// A device: arena, threads, transport, and the functions of the program run on it step by step. Knows nothing of files,
// options or training; session code feeds inputs and reads outputs.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/abi.h"
#include "runtime/extents.h"
#include "runtime/thread_pool.h"
#include "runtime/tile_runs.h"
#include "runtime/transport.h"

namespace gshard::runtime {

// The least fault of a device: smallest (first row of its block, order, index). Blocks are equal on every mesh.
struct Fault {
  std::int64_t order = 0, index = 0, site = -1, value = 0, limit = 0;
  std::int64_t firstRow = 0;

  bool happened() const { return site >= 0; }
  bool before(const Fault& other) const {
    return std::tie(firstRow, order, index) < std::tie(other.firstRow, other.order, other.index);
  }
};

class FaultRecorder {
 public:
  void record(Fault fault);
  Fault take();
  // Of the block whose faults come next; set while no kernel runs.
  void setFirstRow(std::int64_t row) { firstRow_ = row; }

 private:
  std::int64_t firstRow_ = 0;
  std::mutex mutex_;
  Fault least_;
};

struct RunTimes {
  double compute = 0;
  double communication = 0;  // collectives, waiting included
};

class Device;

// Sees every step of every function after it is done; what --trace, --profile and --check-numerics are.
class StepObserver {
 public:
  struct Span {
    double begin = 0, end = 0;  // seconds of the monotonic clock
    double wait = 0;            // of it spent in waiting and copying
    std::int64_t bytes = 0;     // received
    std::int64_t trainingStep = 0;
  };
  virtual ~StepObserver() = default;
  virtual void inputsFed(Device&, const gshard_rt_function&) {}
  virtual void stepDone(Device& device, const gshard_rt_function& function, std::int64_t index, const Span& span) = 0;
};

class Device {
 public:
  Device(const gshard_rt_program& program, Transport& transport, int threads, std::uint64_t seed);

  Transport& transport() { return transport_; }
  const gshard_rt_program& program() const { return program_; }
  const ExtentTable& extents() const { return table_; }
  std::byte* arena() { return transport_.arena(); }

  // Sets the rows of the block that the next function works on, and those of the whole call (dim_size of row dims).
  void setRows(std::int64_t block, std::int64_t total);
  std::int64_t rows() const { return rows_; }
  // Of the block in its call: which fault comes first, and what its message says.
  void setFirstRow(std::int64_t row) { faults_.setFirstRow(row); }
  const std::vector<std::int64_t>& pairs() const { return pairs_; }
  Tile tile(const gshard_rt_tensor& tensor) const { return tileOf(table_, tensor, pairs_); }

  // All steps of a function. False after an abort.
  [[nodiscard]] bool run(const gshard_rt_function& function, std::int64_t trainingStep);
  void fillAccumulators(const gshard_rt_function& function);

  Fault takeFault() { return faults_.take(); }
  // As kernels do by gshard_rt_record_fault.
  void recordFault(const Fault& fault) { faults_.record(fault); }
  const RunTimes& times() const { return times_; }
  // Seeded inputs (no data given) are the same in every step: made once, then copied, so that a benchmark measures the
  // program. Keyed by the input and its first row.
  std::map<std::pair<const gshard_rt_input*, std::int64_t>, std::vector<std::byte>>& seededInputs() { return seeded_; }
  // Where the rows of an input go: made once per number of rows, so that feeding a step allocates nothing.
  struct InputPlace {
    Tile tile;
    std::vector<TileRun> runs;  // of one row; of the whole, if it is not fed by rows
  };
  const InputPlace& inputPlace(const gshard_rt_input& input);
  // Observers outlive the device's runs.
  void observe(StepObserver& observer) { observers_.push_back(&observer); }
  const std::vector<StepObserver*>& observers() const { return observers_; }

 private:
  // A collective is prepared for each number of rows it has met, since short blocks have shorter tiles.
  struct Prepared {
    bool perRows = false;
    bool isReduce = false;
    std::map<std::int64_t, int> handles;                                          // by rows
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<BoxCopy>> local;  // slices, by (rows, transfer)
  };

  Prepared& preparedFor(const gshard_rt_collective& call);
  const std::vector<BoxCopy>& localCopies(const gshard_rt_collective& call, std::int64_t transfer);
  bool runStep(const gshard_rt_step& step, std::int64_t trainingStep);
  bool runCollective(const gshard_rt_collective& call);
  int prepare(const gshard_rt_collective& call, bool isReduce);
  void runLocalCopy(const gshard_rt_collective& call);
  void runKernel(const gshard_rt_kernel_call& call);
  void runGemm(const gshard_rt_gemm_call& call);
  std::vector<std::vector<std::int64_t>> pairsOf(const std::vector<int>& group) const;

  const gshard_rt_program& program_;
  Transport& transport_;
  ExtentTable table_;
  ThreadPool pool_;
  FaultRecorder faults_;
  std::vector<std::int64_t> pairs_;
  std::int64_t rows_ = 0;
  gshard_rt_context context_{};
  std::map<const gshard_rt_collective*, Prepared> prepared_;
  RunTimes times_;
  double mark_ = 0;  // until when the time is told apart into compute and communication
  std::map<std::pair<const gshard_rt_input*, std::int64_t>, std::vector<std::byte>> seeded_;
  std::map<std::pair<const gshard_rt_input*, std::int64_t>, InputPlace> inputPlaces_;
  std::vector<StepObserver*> observers_;
};

// Fills `count` elements with the value that changes nothing in the reduction: -0 for float sums (design.md section 2).
void fillIdentity(std::byte* out, std::int64_t count, ElementType type, Reduction reduction);

// Whether a step takes part in a collective of the plan; slices and partial values are local copies.
bool communicates(const gshard_rt_step& step);

// What the watchdog calls each step: sites first, then plan entries.
std::vector<std::string> waitLabels(const gshard_rt_program& program);

}  // namespace gshard::runtime
