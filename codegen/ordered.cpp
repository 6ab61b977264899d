// Kernels along an axis whose elements depend on their order, as data: running sums, sorts, routes. Apart from the
// other units, which have no axis of that kind.
#include <algorithm>

#include "codegen/lowering.h"
#include "runtime/abi.h"

namespace gshard {

KernelWork makeScanKernel(const FunctionViews& views, const FusionPlan& plan, std::size_t number,
                          std::int64_t siteBase) {
  const Op& op = views.function().ops[number];
  const OpView view = views.view(number);
  const Layout& operand = views.layout(op.operands[0]);
  const std::size_t axis = static_cast<std::size_t>(view.intAttr("axis"));
  ExpressionBuilder b(views, plan, -1, siteBase);
  DimMap dims(operand.dims.size()), lane;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i == axis) continue;
    dims[i] = DimIndex{b.addLoop(operand.dims[i]), 1, 0};
    lane.push_back(dims[i]);
  }
  LoopKernel& kernel = b.kernel();
  kernel.kind = KernelKind::Scan;
  kernel.keptLoops = lane.size();
  kernel.reverse = view.boolAttr("reverse");
  kernel.exclusive = view.boolAttr("exclusive");
  dims[axis] = DimIndex{b.addLoop(operand.dims[axis]), 1, 0};
  int node = b.node(op.operands[0], dims);
  const DType dtype = views.layout(op.results[0]).dtype;
  if (operand.dtype != dtype) node = b.apply(ScalarFn::Cast, dtype, {node});
  if (view.hasAttr("axes")) {
    kernel.totalsPartArg = b.extentExtra(views.info(number).deviceExtent);
    kernel.parts = productOf(view.axesAttr("axes"));
    lane.push_back(DimIndex{-1, 1, 0});
    kernel.totals = b.access(op.operands[1], lane);
  }
  b.addOutput(node, op.results[0], dims);
  return b.finish();
}

// Rows of a dense operand: the loops find them, the runtime does the rest.
KernelWork makeSortKernel(const FunctionViews& views, const FusionPlan& plan, std::size_t number,
                          std::int64_t siteBase) {
  const Op& op = views.function().ops[number];
  const OpView view = views.view(number);
  const Layout& operand = views.layout(op.operands[0]);
  const Layout& result = views.layout(op.results[0]);
  const std::size_t axis = static_cast<std::size_t>(view.intAttr("axis"));
  const bool isOfPart = view.hasAttr("axes");  // candidates: in a last dim, with global indices
  const std::size_t resultAxis = isOfPart ? result.dims.size() - 1 : axis;
  ExpressionBuilder b(views, plan, -1, siteBase);
  DimMap dims(operand.dims.size(), DimIndex{-1, 1, 0});
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i != axis) dims[i].from = b.addLoop(operand.dims[i]);
  }
  DimMap results = dims;
  if (isOfPart)
    std::rotate(results.begin() + static_cast<std::ptrdiff_t>(axis),
                results.begin() + static_cast<std::ptrdiff_t>(axis) + 1, results.end());
  LoopKernel& kernel = b.kernel();
  kernel.kind = KernelKind::Sort;
  kernel.descending = view.hasAttr("k") || view.boolAttr("descending");
  kernel.sortSize = operand.dims[axis].size;
  kernel.sortKept = result.dims[resultAxis].size;
  if (isOfPart) {
    kernel.indexOffsetArg = b.extentExtra(operand.dims[axis].extent);
    kernel.indexLimit = operand.dims[axis].global;
  }
  kernel.sortStride = operand.strides()[axis];
  kernel.sortOutputStride = result.strides()[resultAxis];
  kernel.sortsIndices = op.results.size() == 2 || op.kind == OpKind::Argsort;
  kernel.sortsValues = op.results.size() == 2 || !kernel.sortsIndices;
  kernel.workspaceArg = b.workspaceExtra();
  const int node = b.load(op.operands[0], dims);
  for (const ValueId value : op.results) b.addOutput(node, value, results);
  return b.finish();
}

// Groups of tokens: the loop finds them, the runtime does the rest.
KernelWork makeRouteKernel(const FunctionViews& views, const FusionPlan& plan, std::size_t number,
                           std::int64_t siteBase) {
  const Op& op = views.function().ops[number];
  const OpView view = views.view(number);
  const Layout& gates = views.layout(op.operands[0]);
  ExpressionBuilder b(views, plan, -1, siteBase);
  const DimIndex group{b.addLoop(gates.dims[0]), 1, 0};
  const auto ofGroup = [&](ValueId value) {
    DimMap dims(views.layout(value).dims.size(), DimIndex{-1, 1, 0});
    dims[0] = group;
    return dims;
  };
  LoopKernel& kernel = b.kernel();
  kernel.kind = KernelKind::Route;
  RouteNumbers& route = kernel.route;
  route.tokens = gates.dims[1].size;
  route.experts = gates.dims[2].size;
  route.choices = view.intAttr("k");
  route.capacity = view.intAttr("capacity");
  const std::string& rest = view.stringAttr("rest");
  const std::string& normalise = view.stringAttr("normalise");
  route.rest = rest == "all"         ? GSHARD_RT_REST_ALL
               : rest == "random"    ? GSHARD_RT_REST_RANDOM
               : rest == "threshold" ? GSHARD_RT_REST_THRESHOLD
                                     : GSHARD_RT_REST_NONE;
  route.normalise = normalise == "before_drop"  ? GSHARD_RT_NORMALISE_BEFORE_DROP
                    : normalise == "after_drop" ? GSHARD_RT_NORMALISE_AFTER_DROP
                                                : GSHARD_RT_NORMALISE_NONE;
  if (rest == "random" || rest == "threshold") route.limit = view.floatAttr(rest == "random" ? "scale" : "threshold");
  route.hasUniform = rest == "random";
  route.hasLive = op.operands.size() > (route.hasUniform ? 2u : 1u);
  int first = -1;
  for (const ValueId operand : op.operands) {
    const int node = b.load(operand, ofGroup(operand));
    if (first < 0) first = node;
  }
  for (const ValueId result : op.results) b.addOutput(first, result, ofGroup(result));
  return b.finish();
}

}  // namespace gshard
