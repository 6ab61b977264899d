// How a function behaves when its rows are taken in blocks one after the other: rows are a mesh axis that runs in time,
// so the rules are those of partitioning (factors and linearity), with one state per value. Apart from split-rows,
// which builds the two stages from it.
#pragma once

#include <map>
#include <set>

#include "ir/known_factors.h"
#include "ir/module.h"

namespace gshard {

enum class RowPlace : std::uint8_t {
  Independent,  // the same for every block
  Split,        // a block has its own part of dim `dim`, whose size is a multiple of the rows
  Partial,      // to be reduced over the blocks with `reduction`
  Final,        // known after the last block
};
struct RowState {
  RowPlace place = RowPlace::Independent;
  std::int64_t dim = -1;
  Reduction reduction = Reduction::Sum;
};

// Why a function cannot take its rows in blocks.
struct RowFault {
  enum class Kind : std::uint8_t { NeedsAllRows, MeetsReduction, ResultHasRows };
  Kind kind = Kind::NeedsAllRows;
  std::string name;       // of the value, or of the result
  std::string reduction;  // MeetsReduction: the value that all rows go into
  SourceRange range;
  SourceRange operandRange;
  std::string operandLabel;
};

class RowAnalysis {
 public:
  // `function` is a copy that the analysis may extend: an Independent value that meets rows (a constant of the shape of
  // a batch) gets a version of its own that is cut along with them.
  RowAnalysis(const Module& module, Function& function, KnownFactors& factors)
      : module_(&module), function_(&function), factors_(&factors) {}

  // False when something needs all rows at once: then there is a fault.
  bool run();
  const std::optional<RowFault>& fault() const { return fault_; }

  const RowState& state(ValueId value) const { return states_[value.index]; }
  // Values whose pending reduction is completed between the stages (all users read the completed value).
  bool isCompleted(ValueId value) const { return completed_.contains(value); }
  // An i64 argument that the analysis added: rows before the block at hand. Unknown when nothing asks for it.
  ValueId firstRow() const { return firstRow_; }
  // dim_size over rows that are counted at run time: known in every block, but in no function without rows.
  bool countsRows(const Op& op) const;

 private:
  bool pass();
  bool visit(Op& op);
  bool visitPartial(const Op& op, std::vector<std::optional<Reduction>> operands);
  bool visitSplit(Op& op);
  bool shrinks(const Op& op, const std::vector<std::optional<Reduction>>& operands) const;
  void complete(ValueId value);
  ValueId splitVersion(ValueId value, std::int64_t dim);
  ValueId placedVersion(const Op& generator, std::int64_t dim);
  ValueId blockOffset(std::int64_t perRow, SourceRange range);
  ValueId add(Op op, const Value& value, RowState state);
  void setResults(const Op& op, RowState state);
  bool fail(const Op& op, std::size_t operand);
  bool failFinal(const Op& op);

  const Module* module_;
  Function* function_;
  KnownFactors* factors_;
  std::optional<RowFault> fault_;
  std::vector<RowState> states_;
  std::set<ValueId> completed_;
  std::map<std::pair<ValueId, std::int64_t>, ValueId> versions_;  // of an Independent value, cut along a dim
  std::map<ValueId, std::int64_t> versionDims_;
  ValueId firstRow_;
  std::vector<Op> done_;                  // ops of the pass at hand, in order
  std::vector<std::int64_t> definition_;  // per value: index in done_, or -1
};

}  // namespace gshard
