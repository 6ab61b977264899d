// --check-numerics: after each step, what it made is searched for NaN and infinities. The first find ends the run as
// any other fault of the program does, so its op and line are agreed by all devices.
#pragma once
#include "runtime/device.h"

namespace gshard::runtime {

class NumericsCheck : public StepObserver {
 public:
  void inputsFed(Device& device, const gshard_rt_function& function) override;
  void stepDone(Device& device, const gshard_rt_function& function, std::int64_t index, const Span& span) override;

 private:
  // Records the first find in the live part of the device's tile, if there is one.
  void search(Device& device, const gshard_rt_tensor& tensor, const Fault& find, bool mayBeInfinite);

  bool found_ = false;  // what follows from the first find is not the cause
};

// Fault::limit of finds, below those of kernels (abi.h): a step's result, or input number kNonFiniteInput - limit.
constexpr std::int64_t kNonFinite = -2;
constexpr std::int64_t kNonFiniteInput = -3;
inline bool isNonFinite(const Fault& fault) {
  return fault.limit <= kNonFinite && fault.limit > GSHARD_RT_LIMIT_OF_START_MOST;
}

// "nan", "inf" or "-inf": Fault::value of a find.
const char* nonFiniteText(std::int64_t value);

// The function that a find's order was made from.
const gshard_rt_function& functionOfFind(const gshard_rt_program& program, const Fault& fault);

}  // namespace gshard::runtime
