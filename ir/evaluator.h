// The reference evaluator: executes any IR, global or SPMD on simulated devices, slowly and obviously. It is the oracle
// of most tests. In SPMD it fills tails with NaN (or the smallest integer), asserts that replicas are bit-equal, and
// can assemble every value (completing partial sums) and compare it with its global counterpart.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "ir/module.h"
#include "ir/tensor.h"

namespace gshard {

// What an op's evaluate rule works on: tiles of operands and results with their offsets and live sizes. In a global
// program there is one device, offsets are 0 and everything is live.
// A run-time error of the program: the op's least global index decides which one is told.
struct Fault {
  std::int64_t position = 0;  // flat index in the op's result, or of the index tensor
  std::string text;           // "index 9 is out of range for dim 0 of size 4"
};
class EvalFrame {
 public:
  std::vector<const Tensor*> operands;
  std::vector<Tensor> results;                  // preset to the right local type, filled with tail values
  std::vector<std::vector<Tile>> operandTiles;  // per operand, per dim
  std::vector<std::vector<Tile>> resultTiles;
  std::int64_t device = 0;
  std::uint64_t seed = 0;
  std::int64_t totalRows = 0;            // of dim_size over a row dim, when set at run time
  std::vector<Fault>* faults = nullptr;  // run-time errors, as they are met

  const Tensor& in(std::size_t i) const { return *operands[i]; }
  Tensor& out(std::size_t i = 0) { return results[i]; }
  void fault(std::int64_t position, std::string text) {
    if (faults != nullptr) faults->push_back({position, std::move(text)});
  }
};

struct EvalOptions {
  std::uint64_t seed = 0;
  bool global = false;     // as a global program, although values have shardings
  std::int64_t rows = -1;  // live rows of the row dim; -1: all
  std::int64_t totalRows = -1;
  // Called after every op with the assembled global value of each result (tests compare with the global program).
  std::function<void(const Op&, std::size_t result, const Tensor& global)> onValue;
};

struct EvalResult {
  std::vector<Tensor> results;              // global, in the order of Function::results
  std::vector<std::string> faults;          // run-time errors of the program
  std::vector<std::int64_t> bytesReceived;  // per device (SPMD), as section 5 of the design counts them
};

// Arguments are global tensors in the order of Function::arguments. Runs on one simulated device per device of the mesh
// when every value has a sharding, else as a global program. A broken rule (replicas that differ, a tile that an op
// reads beyond its live end) is an InternalError naming the op.
EvalResult evaluate(const Module& module, const Function& function, std::span<const Tensor> arguments,
                    const EvalOptions& options = {});
// One op on given global operands (constant folding, tests).
std::vector<Tensor> evaluateOp(const OpView& op, std::span<const Tensor> operands);

// The tile of a device cut from a global tensor; tails are NaN or the smallest integer.
Tensor tileOfTensor(const Tensor& global, const std::vector<Tile>& tiles, const std::vector<std::int64_t>& localShape);

}  // namespace gshard
