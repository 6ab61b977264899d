// --profile: where the time of a device goes, by lines of the program.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace gshard::runtime {

class StepProfile : public StepObserver {
 public:
  void stepDone(Device& device, const gshard_rt_function& function, std::int64_t index, const Span& span) override;

  struct Summary {
    double products = 0, kernels = 0, collectives = 0;  // seconds
    std::vector<std::string> lines;                     // the slowest first; steps of one line and op together
  };
  Summary summary(const gshard_rt_program& program) const;

 private:
  std::map<const gshard_rt_function*, std::vector<double>> seconds_;
};

}  // namespace gshard::runtime
