// Builds the data of one kernel: loops, the expression that a value stands for at given indices (through views, into
// the maps that are computed here), the buffers that it reads, and the numbers that its calls pass.
#pragma once

#include <map>
#include <span>

#include "codegen/fusion.h"
#include "codegen/loop_kernel.h"

namespace gshard {

// A kernel and one call of it, before anything has a place in memory.
struct KernelWork {
  LoopKernel kernel;
  std::vector<ValueId> buffers;  // storage values, by buffer number
  std::vector<std::int64_t> extras;
};

class ExpressionBuilder {
 public:
  // `group`: ops of this group are computed here; -1: none but those that are inlined.
  // `siteBase`: number of the site of op 0 of the function.
  ExpressionBuilder(const FunctionViews& views, const FusionPlan& plan, int group, std::int64_t siteBase)
      : views_(views), plan_(plan), group_(group), siteBase_(siteBase) {}

  LoopKernel& kernel() { return work_.kernel; }
  // All loops must be added before the first node.
  int addLoop(const LocalDim& dim);
  int addLoop(std::int64_t size);
  // Loops of all dims of a layout, and the dims in terms of them.
  DimMap addLoops(const Layout& layout);

  // The node of `value` at the loop indices that `map` says.
  int node(ValueId value, const DimMap& map);
  // The same, of a value that lies dense in its storage.
  int load(ValueId value, const DimMap& map);
  int constant(DType dtype, double value);
  int apply(ScalarFn fn, DType dtype, std::vector<int> inputs);
  // An element of `value`'s storage, `value` being dense there.
  Access access(ValueId value, const DimMap& map);
  void addOutput(int node, ValueId value, const DimMap& map);
  // Flat index in the global tensor of the element of `layout` that `map` says.
  LinearIndex globalIndex(const Layout& layout, const DimMap& map);
  LinearIndex zeroIndex() const;

  int extentExtra(int extent) { return extra(0, extent); }
  // Where the op's window lies in its result, for a store; `dims` are the update's dims in terms of loops.
  int windowPlace(std::size_t number, const DimMap& dims);
  // Arena offset of the kernel's workspace, known when memory is planned.
  int workspaceExtra() { return extra(3, 0); }
  int siteExtra(std::size_t op) { return extra(1, siteBase_ + static_cast<std::int64_t>(op)); }
  int numberExtra(std::int64_t value) { return extra(2, value); }

  KernelWork finish();

 private:
  int extra(int sort, std::int64_t value);
  int add(Node node);
  int build(ValueId value, const DimMap& map);
  int literal(std::size_t number, const DimMap& map);
  int take(std::size_t number, const DimMap& map);
  int windowRead(std::size_t number, const DimMap& map);
  // moe_dispatch, moe_gather and moe_combine: expression_moe.cpp
  int slots(std::size_t number, const DimMap& map);
  int dispatch(std::size_t number, const DimMap& map);
  int gatherSlots(std::size_t number, const DimMap& map);
  int combine(std::size_t number, const DimMap& map);
  struct Choice;
  Choice choice(std::size_t number, const DimIndex& j, const DimIndex& group, const DimIndex& token,
                const DimIndex& column);
  int isIndexOf(int node, std::int64_t limit);
  RunTimeDim maybe(const LocalDim& dim, std::int64_t stride);
  Node window(std::size_t number, ValueId x, const Layout& window, const DimMap& dims, std::span<const ValueId> starts);
  int map(std::size_t number, const DimMap& map);

  const FunctionViews& views_;
  const FusionPlan& plan_;
  int group_;
  std::int64_t siteBase_;
  KernelWork work_;
  std::map<std::pair<std::uint32_t, DimMap>, int> nodes_;
  std::map<std::pair<int, std::int64_t>, int> extras_;
};

// Where the dims of take's operands lie among those of its result (also of scatter_add and its updates).
struct TakeDims {
  DimMap table;  // the axis itself: {-1, 1, 0}
  DimMap index;
};
TakeDims takeDims(std::int64_t tableRank, std::int64_t indexRank, std::int64_t axis, std::int64_t batch);

}  // namespace gshard
