// Kernels along an axis whose elements depend on their order, as data: running sums and sorts. Apart from the other
// units, which have no axis of that kind.
#include "codegen/lowering.h"

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
  ExpressionBuilder b(views, plan, -1, siteBase);
  DimMap dims(operand.dims.size(), DimIndex{-1, 1, 0});
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i != axis) dims[i].from = b.addLoop(operand.dims[i]);
  }
  LoopKernel& kernel = b.kernel();
  kernel.kind = KernelKind::Sort;
  kernel.descending = view.hasAttr("k") || view.boolAttr("descending");
  kernel.sortSize = operand.dims[axis].size;
  kernel.sortKept = result.dims[axis].size;
  kernel.sortStride = operand.strides()[axis];
  kernel.sortOutputStride = result.strides()[axis];
  kernel.sortsIndices = op.results.size() == 2 || op.kind == OpKind::Argsort;
  kernel.sortsValues = op.results.size() == 2 || !kernel.sortsIndices;
  kernel.workspaceArg = b.workspaceExtra();
  const int node = b.load(op.operands[0], dims);
  for (const ValueId value : op.results) b.addOutput(node, value, dims);
  return b.finish();
}

}  // namespace gshard
