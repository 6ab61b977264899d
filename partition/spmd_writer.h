// Writes the SPMD form of one function: keeps every value in the shardings in which it exists by now and makes others
// by the cheapest collectives. Apart from the decisions (op_plan, pending), which it only carries out.
#pragma once

#include "ir/builder.h"
#include "partition/move_warnings.h"

namespace gshard {

class SpmdWriter {
 public:
  SpmdWriter(Module& module, Function& function, DiagSink& diag, ReshardCosts& costs, ToldMoves& told);

  // The value as the next op finds it first.
  void setMade(ValueId value, const Sharding& sharding, Phase phase);
  // An op without operands of weight: it is written again for other tiles, instead of moving elements.
  void setGenerator(ValueId value, Op op) { generators_[value.index] = std::move(op); }
  // `value` is `same` in a sharding of its own; no op stands for it.
  void setAlias(ValueId value, ValueId same, const Sharding& sharding, Phase phase);

  // `value` is `kept` in the sharding in which it is read, brought together where it is first read and not before:
  // until then only the parts take memory.
  void setReadLater(ValueId value, ValueId kept, const Sharding& sharding);

  // The value with this sharding if there is one by now, or an unknown id.
  ValueId find(ValueId value, const Sharding& sharding) const;
  // The value with this sharding, made if there is none yet.
  ValueId obtain(ValueId value, const Sharding& sharding, const Request& request);
  // Appends an op; its results must have been given their shardings.
  void append(Op op);
  // Hands the ops to the function, in their final order.
  void finish();
  // A new value with a sharding.
  ValueId newValue(Value like, const Sharding& sharding);

 private:
  struct Version {
    ValueId value;
    Sharding sharding;
  };
  struct ReadLater {
    ValueId kept;
    Sharding sharding;
  };
  // Completions stand right behind the value that is pending, not where it is first read complete: there they overlap
  // with other work, and those of one phase meet.
  void appendBehind(ValueId source, Op op);
  std::size_t placeOf(ValueId value) const;
  ValueId writeStep(ValueId from, const ReshardStep& step, ValueId original, const Request& request);

  Module& module_;
  Function& function_;
  ReshardCosts& costs_;
  MoveWarnings warnings_;
  std::vector<std::vector<Version>> versions_;  // per value of the global program
  std::vector<Phase> phases_;
  std::vector<std::optional<Op>> generators_;
  std::vector<std::optional<ReadLater>> readLater_;
  // Ops by place: place 0 stands before all ops, place i + 1 begins with the i-th op that was appended and goes on with
  // those put behind it.
  struct Behind {
    std::size_t place = 0;
    Op op;
  };
  std::vector<Op> ops_;
  std::vector<Behind> behind_;
  std::vector<std::size_t> placeOf_;  // per value of the SPMD form: where it is defined
};

}  // namespace gshard
