// Slots: what propagation refines. Values that must end up alike share one: a parameter or state in all functions with
// its new value, an accumulator in the two halves of its function. Apart from the walk, which knows nothing of
// functions' ends.
#pragma once

#include "ir/module.h"
#include "partition/axis_list.h"

namespace gshard {

struct Slot {
  Type type;
  std::vector<AxisList> dims;
  std::vector<bool> fixed;      // per dim
  bool keepsInUpdates = false;  // parameters, accumulators: ops of the update do not refine them
  std::vector<SplitOrigin> origins;
};

class Slots {
 public:
  explicit Slots(const Module& module);

  std::size_t count() const { return slots_.size(); }
  Slot& at(std::size_t slot) { return slots_[slot]; }
  std::size_t of(std::size_t function, ValueId value) const { return byValue_[function][value.index]; }

  // Writes shardings and origins into values, parameters and states.
  void writeTo(Module& module) const;

 private:
  std::size_t add(const Type& type);
  void fix(std::size_t slot, const Annotation& annotation, const std::string& how);
  std::size_t accumulatorSlot(const std::string& stem, std::int64_t index, const Type& type);
  void placeArguments(const Module& module, std::size_t function);
  void placeResults(const Module& module, std::size_t function);

  std::vector<Slot> slots_;
  std::vector<std::vector<std::size_t>> byValue_;
  std::vector<std::size_t> parameters_, states_;
  std::vector<std::pair<std::pair<std::string, std::int64_t>, std::size_t>> accumulators_;
};

// "loss" of "loss.accumulate" and "loss.finish".
std::string stemOf(const Function& function);

}  // namespace gshard
