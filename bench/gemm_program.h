// Products compiled and loaded into this process, for the benchmark and the tests of GEMM: many plans in one object.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/gemm.h"
#include "codegen/loaded_object.h"
#include "runtime/gemm_abi.h"

namespace gshard {

class GemmProgram {
 public:
  // Throws std::runtime_error when the object does not load.
  GemmProgram(const std::vector<GemmPlan>& plans, const Target& target);
  const gshard_rt_gemm_desc* desc(std::size_t plan) const { return descs_[plan]; }

 private:
  std::unique_ptr<LoadedObject> object_;
  std::vector<const gshard_rt_gemm_desc*> descs_;
};

// The object alone, for targets that this machine cannot run.
std::string gemmObject(const std::vector<GemmPlan>& plans, const Target& target);
std::string gemmAssembly(const std::vector<GemmPlan>& plans, const Target& target);

// Processor time of this thread.
double threadSeconds();

// Best rate of independent multiply-adds on one core, in floating-point operations per second: what a share is of.
class PeakProbe {
 public:
  explicit PeakProbe(const Target& target);
  double measure(GemmElement element, double seconds) const;

 private:
  std::unique_ptr<LoadedObject> object_;
  std::int64_t flopsPerStep_[2] = {0, 0};
};

}  // namespace gshard
