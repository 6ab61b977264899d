// Units of work per op and per fused group: see lowering.h.
#include "codegen/lowering.h"

#include <algorithm>

#include "ir/op_table.h"
#include "support/check.h"

namespace gshard {
namespace {

class Lowering {
 public:
  Lowering(const FunctionViews& views, const LoweringOptions& options)
      : views_(views), function_(views.function()), options_(options) {}

  LoweredFunction run() {
    const std::vector<bool> products = chooseProducts(views_);
    plan_ = planFusion(views_, products, options_.fuse);
    collectStored();
    for (std::size_t i = 0; i < function_.ops.size(); ++i) {
      const Op& op = function_.ops[i];
      switch (views_.info(i).kind) {
        case OpClass::Alias:
          break;
        case OpClass::View:
        case OpClass::Literal:
          // Seen through everywhere, unless somebody needs the elements side by side.
          if (plan_.stored[op.results[0].index] && views_.storage(op.results[0]) == op.results[0])
            copyInto(i, op.results[0]);
          break;
        case OpClass::Map:
        case OpClass::Take:
        case OpClass::Slots:
        case OpClass::WindowRead:
          lowerGroup(i);
          break;
        case OpClass::Random:
          lowerRandom(i);
          break;
        case OpClass::Reduce:
          lowerReduce(i);
          break;
        case OpClass::ArgReduce:
          lowerArgReduce(i);
          break;
        case OpClass::Scan:
          addKernel(i, makeScanKernel(views_, plan_, i, options_.siteBase));
          break;
        case OpClass::Sort:
          addKernel(i, makeSortKernel(views_, plan_, i, options_.siteBase));
          break;
        case OpClass::Route:
          addKernel(i, makeRouteKernel(views_, plan_, i, options_.siteBase));
          break;
        case OpClass::Contract:
          if (products[i])
            addProduct(i);
          else
            addKernel(i, makeContractKernel(views_, plan_, i, options_.siteBase));
          break;
        case OpClass::Placement:
          lowerPlacement(i);
          break;
        case OpClass::Scatter:
          lowerScatter(i);
          break;
        case OpClass::WindowWrite:
          lowerWindowWrite(i);
          break;
        case OpClass::Runtime:
          lowerRuntime(i);
          break;
      }
    }
    return {scheduleUnits(std::move(units_))};
  }

 private:
  static void addOnce(std::vector<ValueId>& list, ValueId value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  }

  ExpressionBuilder builder(int group = -1) const { return ExpressionBuilder(views_, plan_, group, options_.siteBase); }

  // Outputs may lie where an input was, if every element of that input is read just where it is written.
  static void findInPlace(Unit& unit, const KernelWork& work) {
    if (work.kernel.kind != KernelKind::Map) return;
    for (const KernelOutput& output : work.kernel.outputs) {
      const ValueId write = work.buffers[static_cast<std::size_t>(output.access.buffer)];
      for (std::size_t b = 0; b < work.buffers.size(); ++b) {
        if (work.buffers[b] == write || byteSize(work.kernel.buffers[b]) != byteSize(output.dtype)) continue;
        bool isRead = false, fits = true;
        for (const Node& node : work.kernel.nodes) {
          const bool loads = node.kind == NodeKind::Load || node.kind == NodeKind::Gather;
          if (!loads || node.access.buffer != static_cast<int>(b)) continue;
          isRead = true;
          fits = fits && node.kind == NodeKind::Load && node.access.index.offset == output.access.index.offset &&
                 node.access.index.scales == output.access.index.scales;
        }
        if (isRead && fits) unit.inPlace.emplace_back(write, work.buffers[b]);
      }
    }
  }

  void addKernel(std::size_t op, KernelWork work) {
    Unit unit;
    unit.op = static_cast<std::int64_t>(op);
    for (const KernelOutput& output : work.kernel.outputs) {
      addOnce(unit.writes, work.buffers[static_cast<std::size_t>(output.access.buffer)]);
    }
    for (const Node& node : work.kernel.nodes) {
      const bool loads = node.kind == NodeKind::Load || node.kind == NodeKind::Gather;
      if (loads) addOnce(unit.reads, work.buffers[static_cast<std::size_t>(node.access.buffer)]);
    }
    if (work.kernel.totalsPartArg >= 0)
      addOnce(unit.reads, work.buffers[static_cast<std::size_t>(work.kernel.totals.buffer)]);
    findInPlace(unit, work);
    unit.work = std::move(work);
    units_.push_back(std::move(unit));
  }

  void addProduct(std::size_t op) {
    ProductWork work = makeProduct(views_, op);
    Unit unit;
    unit.op = static_cast<std::int64_t>(op);
    unit.reads = {work.a, work.b};
    unit.writes = {work.c};
    unit.work = std::move(work);
    units_.push_back(std::move(unit));
  }

  // target = value, element for element; both have `value`'s type.
  void copyInto(std::size_t op, ValueId value) { copyInto(op, value, value); }
  void copyInto(std::size_t op, ValueId value, ValueId target) {
    ExpressionBuilder b = builder();
    const DimMap dims = b.addLoops(views_.layout(target));
    const int node = b.node(value, dims);
    b.addOutput(node, target, dims);
    addKernel(op, b.finish());
  }

  void collectStored() {
    storedOf_.resize(function_.ops.size());
    for (std::size_t i = 0; i < function_.ops.size(); ++i) {
      if (plan_.group[i] >= 0 && plan_.stored[function_.ops[i].results[0].index])
        storedOf_[static_cast<std::size_t>(plan_.group[i])].push_back(i);
    }
  }

  void lowerGroup(std::size_t op) {
    if (plan_.inlined[op] || plan_.group[op] != static_cast<int>(op)) return;
    const std::vector<std::size_t>& stored = storedOf_[op];
    if (stored.empty()) return;
    ExpressionBuilder b = builder(static_cast<int>(op));
    const DimMap dims = b.addLoops(views_.layout(function_.ops[op].results[0]));
    std::vector<int> nodes;
    for (const std::size_t i : stored) nodes.push_back(b.node(function_.ops[i].results[0], dims));
    for (std::size_t i = 0; i < stored.size(); ++i) b.addOutput(nodes[i], function_.ops[stored[i]].results[0], dims);
    addKernel(op, b.finish());
  }

  void lowerReduce(std::size_t number) {
    const Op& op = function_.ops[number];
    const OpView view = views_.view(number);
    const Layout& operand = views_.layout(op.operands[0]);
    const std::vector<std::int64_t>& reduced = view.intsAttr("dims");
    ExpressionBuilder b = builder();
    DimMap dims(operand.dims.size());
    DimMap result;
    const auto isReduced = [&](std::size_t dim) {
      return std::find(reduced.begin(), reduced.end(), static_cast<std::int64_t>(dim)) != reduced.end();
    };
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (isReduced(i)) continue;
      dims[i] = DimIndex{b.addLoop(operand.dims[i]), 1, 0};
      result.push_back(dims[i]);
    }
    bool isSplit = false, mayBeEmpty = false;
    b.kernel().keptLoops = result.size();
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (!isReduced(i)) continue;
      dims[i] = DimIndex{b.addLoop(operand.dims[i]), 1, 0};
      isSplit = isSplit || operand.dims[i].split;
      mayBeEmpty = mayBeEmpty || !operand.dims[i].fixed || operand.dims[i].size == 0;
    }
    const std::optional<Reduction> reduction = reductionFromName(view.stringAttr("fn"));
    GSHARD_CHECK(reduction.has_value(), "a reduction that the verifier let pass");
    b.kernel().kind = KernelKind::Reduce;
    b.kernel().reduction = *reduction;
    b.kernel().zeroIfEmpty = !isSplit && mayBeEmpty;
    if (view.hasAttr("axes")) result.push_back(DimIndex{-1, 1, 0});  // of its own part
    int node = b.node(op.operands[0], dims);
    const DType dtype = views_.layout(op.results[0]).dtype;
    if (operand.dtype != dtype) node = b.apply(ScalarFn::Cast, dtype, {node});
    b.addOutput(node, op.results[0], result);
    addKernel(number, b.finish());
  }

  void lowerArgReduce(std::size_t number) {
    const Op& op = function_.ops[number];
    const OpView view = views_.view(number);
    const Layout& operand = views_.layout(op.operands[0]);
    const std::size_t axis = static_cast<std::size_t>(view.intAttr("axis"));
    const bool isCandidates = op.results.size() == 2;
    ExpressionBuilder b = builder();
    DimMap dims(operand.dims.size());
    DimMap result;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i == axis) continue;
      dims[i] = DimIndex{b.addLoop(operand.dims[i]), 1, 0};
      result.push_back(dims[i]);
    }
    LoopKernel& kernel = b.kernel();
    kernel.kind = KernelKind::ArgReduce;
    kernel.keptLoops = result.size();
    dims[axis] = DimIndex{b.addLoop(operand.dims[axis]), 1, 0};
    if (isCandidates) result.push_back(DimIndex{-1, 1, 0});  // each part has one candidate
    kernel.isMax = isCandidates ? view.boolAttr("max") : op.kind == OpKind::Argmax;
    kernel.indexLimit = operand.dims[axis].global;
    if (operand.dims[axis].split) kernel.indexOffsetArg = b.extentExtra(operand.dims[axis].extent);
    const int node = b.node(op.operands[0], dims);
    for (const ValueId value : op.results) b.addOutput(node, value, result);
    addKernel(number, b.finish());
  }

  void lowerRandom(std::size_t number) {
    const Op& op = function_.ops[number];
    const OpView view = views_.view(number);
    const Layout& layout = views_.layout(op.results[0]);
    ExpressionBuilder b = builder();
    const DimMap dims = b.addLoops(layout);
    LoopKernel& kernel = b.kernel();
    kernel.kind = KernelKind::Random;
    kernel.isNormal = op.kind == OpKind::RandomNormal;
    if (!kernel.isNormal) {
      kernel.low = view.floatAttr("low");
      kernel.high = view.floatAttr("high");
    }
    kernel.siteArg = b.numberExtra(view.intAttr("site"));
    kernel.position = b.globalIndex(layout, dims);
    kernel.stepNode = b.node(op.operands[0], {});
    if (op.operands.size() > 1) kernel.firstNode = b.node(op.operands[1], {});
    b.addOutput(kernel.stepNode, op.results[0], dims);
    addKernel(number, b.finish());
  }

  // ---- pad, concat and roll: the fill, then every operand where it belongs

  void lowerPlacement(std::size_t number) {
    const Op& op = function_.ops[number];
    const bool isPad = op.kind == OpKind::Pad;
    if (isPad) fill(number, op.operands[1], op.results[0]);
    for (std::size_t i = 0; i < (isPad ? 1 : op.operands.size()); ++i) {
      for (std::size_t piece = 0; piece < movePieces(views_.view(number)); ++piece) place(number, i, piece);
    }
  }

  void fill(std::size_t number, ValueId scalar, ValueId target) {
    ExpressionBuilder b = builder();
    const DimMap dims = b.addLoops(views_.layout(target));
    const int node = b.node(scalar, {});
    b.addOutput(node, target, dims);
    addKernel(number, b.finish());
  }

  static std::int64_t ceilDivide(std::int64_t a, std::int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

  void place(std::size_t number, std::size_t operand, std::size_t piece) {
    const Op& op = function_.ops[number];
    const Layout& from = views_.layout(op.operands[operand]);
    const Layout& to = views_.layout(op.results[0]);
    const std::vector<MoveDim> moves = moveMap(views_.view(number), operand, piece);
    ExpressionBuilder b = builder();
    DimMap source, target;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const MoveDim& move = moves[i];
      if (move.offset == 0 && move.divide == 1 && from.dims[i].extent == to.dims[i].extent) {
        source.push_back(DimIndex{b.addLoop(from.dims[i]), 1, 0});
        target.push_back(source.back());
        continue;
      }
      GSHARD_CHECK(move.scale == 1 && !from.dims[i].split && !to.dims[i].split,
                   "a dim that is placed elsewhere is whole");
      // operand index k lands on divide * k - offset, if that lies inside the result
      const std::int64_t first = std::max<std::int64_t>(0, ceilDivide(move.offset, move.divide));
      const std::int64_t end = std::min(from.dims[i].size, ceilDivide(to.dims[i].size + move.offset, move.divide));
      if (end <= first) return;
      const int loop = b.addLoop(end - first);
      source.push_back(DimIndex{loop, 1, first});
      target.push_back(DimIndex{loop, move.divide, move.divide * first - move.offset});
    }
    const int node = b.node(op.operands[operand], source);
    b.addOutput(node, op.results[0], target);
    addKernel(number, b.finish());
  }

  // ---- scatter_add: a copy of x, to which rows are added in place

  void lowerScatter(std::size_t number) {
    const Op& op = function_.ops[number];
    const OpView view = views_.view(number);
    copyInto(number, op.operands[0], op.results[0]);
    const Layout& x = views_.layout(op.results[0]);
    const Layout& index = views_.layout(op.operands[1]);
    const Layout& updates = views_.layout(op.operands[2]);
    const std::size_t axis = static_cast<std::size_t>(view.intAttr("axis"));
    const std::int64_t batch = view.hasAttr("batch") ? view.intAttr("batch") : 0;
    ExpressionBuilder b = builder();
    const DimMap loops = b.addLoops(updates);
    const TakeDims places = takeDims(x.rank(), index.rank(), static_cast<std::int64_t>(axis), batch);
    LoopKernel& kernel = b.kernel();
    kernel.kind = KernelKind::Scatter;
    kernel.keptLoops = axis;
    kernel.rowLoops = x.dims.size() - axis - 1;
    kernel.axisStride = x.strides()[axis];
    kernel.axisSize = x.dims[axis].global;
    if (x.dims[axis].split) kernel.splitArg = b.extentExtra(x.dims[axis].extent);
    kernel.siteArg = b.siteExtra(number);
    kernel.position = b.globalIndex(index, places.index);
    kernel.indexNode = b.node(op.operands[1], places.index);
    const int node = b.node(op.operands[2], loops);
    b.addOutput(node, op.results[0], places.table);
    addKernel(number, b.finish());
    addOnce(units_.back().reads, units_.back().writes[0]);
  }

  // ---- dynamic_update: a copy of x, into which the window is written in place

  void lowerWindowWrite(std::size_t number) {
    const Op& op = function_.ops[number];
    copyInto(number, op.operands[0], op.results[0]);
    ExpressionBuilder b = builder();
    const DimMap loops = b.addLoops(views_.layout(op.operands[1]));
    b.kernel().kind = KernelKind::WindowWrite;
    b.kernel().placeNode = b.windowPlace(number, loops);
    const int node = b.node(op.operands[1], loops);
    const Access access = b.kernel().nodes[static_cast<std::size_t>(b.kernel().placeNode)].access;
    b.kernel().outputs.push_back({node, views_.layout(op.results[0]).dtype, access});
    addKernel(number, b.finish());
    addOnce(units_.back().reads, units_.back().writes[0]);
  }

  void lowerRuntime(std::size_t number) {
    const Op& op = function_.ops[number];
    Unit unit;
    unit.op = static_cast<std::int64_t>(number);
    unit.work = RuntimeWork{};
    for (const ValueId operand : op.operands) addOnce(unit.reads, views_.storage(operand));
    for (const ValueId result : op.results) addOnce(unit.writes, result);
    if (op.kind == OpKind::AllReduce) {
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        unit.inPlace.emplace_back(op.results[i], views_.storage(op.operands[i]));
      }
    }
    units_.push_back(std::move(unit));
  }

  const FunctionViews& views_;
  const Function& function_;
  const LoweringOptions& options_;
  FusionPlan plan_;
  std::vector<std::vector<std::size_t>> storedOf_;  // per group, by its first op: members whose results are stored
  std::vector<Unit> units_;
};

}  // namespace

LoweredFunction lowerFunction(const FunctionViews& views, const LoweringOptions& options) {
  return Lowering(views, options).run();
}

}  // namespace gshard
