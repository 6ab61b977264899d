// Values seen through ops that move nothing: views (an affine index map onto another value) and aliases (the same bytes
// under another shape). Everything after this file asks here where a value's elements really are.
#pragma once

#include "codegen/layout.h"
#include "ir/op_table.h"

namespace gshard {

// Index of one dim of a value: scale * (index of dim or loop `from`) + offset; from -1: offset alone.
struct DimIndex {
  int from = -1;
  std::int64_t scale = 1;
  std::int64_t offset = 0;
  friend auto operator<=>(const DimIndex&, const DimIndex&) = default;
};
using DimMap = std::vector<DimIndex>;  // one per dim of the value that is read

DimMap identityDims(std::int64_t rank);
bool isIdentity(const DimMap& map, std::int64_t rank);  // onto `rank` loops
// Dims of an operand in terms of loops, from its dims in terms of the result's and the result's in terms of loops.
DimMap compose(const DimMap& operandInResult, const DimMap& resultInLoops);

// Dims of an operand of a map in terms of the result's: aligned at the end, dims of size 1 stretch.
DimMap broadcastDims(const Layout& operand, const Layout& result);

// What an op is to codegen; from its lower rule.
enum class OpClass : std::uint8_t {
  View,     // an index map onto operand 0: no code
  Alias,    // the bytes of operand 0: no code
  Literal,  // constant, iota, dim_size: an expression without operands
  Random,
  Map,
  Take,
  Slots,  // moe_dispatch, moe_gather, moe_combine
  WindowRead,
  Reduce,
  ArgReduce,
  Scan,
  Sort,
  Route,
  Contract,
  Placement,  // pad, concat, roll: operands placed into the result
  Scatter,
  WindowWrite,
  Runtime,  // collectives and local copies
};

struct OpInfo {
  OpClass kind = OpClass::Map;
  DimMap view;            // View: dims of operand 0 in terms of the result's
  int deviceExtent = -1;  // device_index, cumsum_parts: an extent of parts of one element, whose begin is the index
};

class FunctionViews {
 public:
  FunctionViews(const Module& module, const Function& function, ExtentTable& extents);

  const Module& module() const { return *module_; }
  const Function& function() const { return *function_; }
  const Layout& layout(ValueId value) const { return layouts_[value.index]; }
  const OpInfo& info(std::size_t op) const { return infos_[op]; }
  std::int64_t definition(ValueId value) const { return definitions_[value.index]; }  // -1: argument
  OpView view(std::size_t op) const { return OpView(*module_, *function_, function_->ops[op]); }

  // The value whose buffer holds `value`'s elements when they are dense in memory.
  ValueId storage(ValueId value) const;

  // Made of the slots of experts (moe_dispatch), of which some hold no token: whole rows may be zeros.
  bool hasSlots(ValueId value) const { return hasSlots_[value.index]; }

  // What is read when `value` is read at `map`: through views, not through aliases.
  struct Base {
    ValueId value;
    DimMap map;
  };
  Base base(ValueId value, DimMap map) const;

 private:
  void classify(std::size_t op);
  void classifyReshape(std::size_t op);
  void findSlots(std::size_t op);

  const Module* module_;
  const Function* function_;
  std::vector<Layout> layouts_;
  std::vector<OpInfo> infos_;
  std::vector<std::int64_t> definitions_;
  std::vector<ValueId> storage_;
  std::vector<bool> hasSlots_;
};

}  // namespace gshard
