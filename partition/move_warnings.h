// Warnings of what moves against an annotation: W0401 where a tensor is gathered in full, W0407 where it is split anew.
// Each names the bytes, what asks for it, the annotations of both sides with the reason why one of them won, and what
// was chosen and rejected. Apart from the writer, which carries moves out and knows nothing of how they are told.
#pragma once

#include <set>
#include <string>

#include "partition/op_plan.h"
#include "support/diagnostics.h"

namespace gshard {

// The op that reads a value: for saying which of its letters asks for the move, and which other tensor it gave way to.
struct Asker {
  std::size_t operand = 0;
  const std::vector<ValueId>* operands = nullptr;  // values of the global program; null: no op, as for a result
  const std::vector<ValueId>* results = nullptr;
  const OpFactors* factors = nullptr;
  const OpPlan* plan = nullptr;
};

// Who asks for a value in other tiles, and why what is pending is pending: for ranges, phases and reasons of
// collectives.
struct Request {
  std::string user;  // "`relu`", "the result"
  SourceRange range;
  Phase phase = Phase::Forward;
  std::string pendingWhy;
  bool asked = false;  // by an annotation: the move is no surprise
  Asker asker = {};
};

// What was warned of: the forms of one entry (train, eval, halves) tell it once. By asker and annotation.
using ToldMoves = std::set<std::pair<SourceRange, SourceRange>>;

struct Move {
  ValueId value;
  const Sharding& made;
  const Sharding& to;
  const ReshardPlan& plan;
};

class MoveWarnings {
 public:
  MoveWarnings(const Module& module, const Function& function, DiagSink& diag, ToldMoves& told)
      : module_(module), function_(function), diag_(diag), told_(told) {}

  // Says nothing of moves that no annotation speaks against.
  void tell(const Move& move, const Request& request);

 private:
  struct Rival {  // the tensor that needs an axis elsewhere
    ValueId value;
    const SplitOrigin* origin = nullptr;
  };
  const SplitOrigin* fixedOrigin(ValueId value) const;
  Rival rivalOf(const Move& move, const Asker& asker) const;
  void addCause(DiagBuilder& told, const Move& move, const Request& request, const Rival& rival) const;
  void addChoice(DiagBuilder& told, const Move& move, const Request& request, const Rival& rival) const;
  void addPlans(DiagBuilder& told, const ReshardPlan& plan) const;
  void addHelp(DiagBuilder& told, const Move& move, const Rival& rival, bool gathered) const;
  bool isParameter(ValueId value) const;
  std::string nameOf(ValueId value) const;

  const Module& module_;
  const Function& function_;
  DiagSink& diag_;
  ToldMoves& told_;
};

}  // namespace gshard
