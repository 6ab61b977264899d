// Expressions of kernels: see expression.h.
#include "codegen/expression.h"

#include <algorithm>

#include "ir/tensor.h"
#include "support/check.h"

namespace gshard {

int ExpressionBuilder::addLoop(const LocalDim& dim) {
  GSHARD_CHECK(work_.kernel.nodes.empty() && work_.kernel.outputs.empty(), "loops come before nodes");
  KernelLoop loop;
  loop.size = dim.size;
  if (!dim.fixed) loop.liveArg = extentExtra(dim.extent);
  work_.kernel.loops.push_back(loop);
  return static_cast<int>(work_.kernel.loops.size()) - 1;
}

int ExpressionBuilder::addLoop(std::int64_t size) {
  KernelLoop loop;
  loop.size = size;
  work_.kernel.loops.push_back(loop);
  return static_cast<int>(work_.kernel.loops.size()) - 1;
}

DimMap ExpressionBuilder::addLoops(const Layout& layout) {
  DimMap map;
  for (const LocalDim& dim : layout.dims) map.push_back(DimIndex{addLoop(dim), 1, 0});
  return map;
}

int ExpressionBuilder::extra(int sort, std::int64_t value) {
  const auto [it, isNew] = extras_.emplace(std::pair{sort, value}, static_cast<int>(work_.extras.size()));
  if (isNew) work_.extras.push_back(value);
  return it->second;
}

int ExpressionBuilder::add(Node node) {
  work_.kernel.nodes.push_back(std::move(node));
  return static_cast<int>(work_.kernel.nodes.size()) - 1;
}

LinearIndex ExpressionBuilder::zeroIndex() const {
  LinearIndex index;
  index.scales.assign(work_.kernel.loops.size(), 0);
  return index;
}

static void addDim(LinearIndex& index, const DimIndex& dim, std::int64_t stride) {
  index.offset += dim.offset * stride;
  if (dim.from >= 0) index.scales[static_cast<std::size_t>(dim.from)] += dim.scale * stride;
}

Access ExpressionBuilder::access(ValueId value, const DimMap& map) {
  const ValueId storage = views_.storage(value);
  const auto found = std::find(work_.buffers.begin(), work_.buffers.end(), storage);
  Access access;
  access.buffer = static_cast<int>(found - work_.buffers.begin());
  if (found == work_.buffers.end()) {
    work_.buffers.push_back(storage);
    work_.kernel.buffers.push_back(views_.layout(storage).dtype);
  }
  access.index = zeroIndex();
  const std::vector<std::int64_t> strides = views_.layout(value).strides();
  for (std::size_t i = 0; i < map.size(); ++i) addDim(access.index, map[i], strides[i]);
  return access;
}

void ExpressionBuilder::addOutput(int node, ValueId value, const DimMap& map) {
  KernelOutput output;
  output.node = node;
  output.dtype = views_.layout(value).dtype;
  output.access = access(value, map);
  work_.kernel.outputs.push_back(std::move(output));
}

LinearIndex ExpressionBuilder::globalIndex(const Layout& layout, const DimMap& map) {
  LinearIndex index = zeroIndex();
  const std::vector<std::int64_t> strides = layout.globalStrides();
  for (std::size_t i = 0; i < map.size(); ++i) {
    addDim(index, map[i], strides[i]);
    if (layout.dims[i].split) index.tileOffsets.emplace_back(extentExtra(layout.dims[i].extent), strides[i]);
  }
  return index;
}

// Lanes are wider than some dtypes: what they hold must be a value of the dtype, as after a load.
static void fitLiteral(Node& node) {
  for (double& value : node.literal.floats) value = roundTo(node.dtype, value);
  for (std::int64_t& value : node.literal.ints) value = wrapTo(node.dtype, value);
}

int ExpressionBuilder::constant(DType dtype, double value) {
  Node node;
  node.kind = NodeKind::Constant;
  node.dtype = dtype;
  node.literal = isFloat(dtype) ? floatLiteral(value) : intLiteral(static_cast<std::int64_t>(value));
  fitLiteral(node);
  return add(std::move(node));
}

int ExpressionBuilder::apply(ScalarFn fn, DType dtype, std::vector<int> inputs) {
  Node node;
  node.kind = NodeKind::Apply;
  node.dtype = dtype;
  node.fn = fn;
  node.inputs = std::move(inputs);
  return add(std::move(node));
}

int ExpressionBuilder::node(ValueId value, const DimMap& map) {
  const FunctionViews::Base base = views_.base(value, map);
  const auto found = nodes_.find({base.value.index, base.map});
  if (found != nodes_.end()) return found->second;
  const int result = build(base.value, base.map);
  nodes_[{base.value.index, base.map}] = result;
  return result;
}

int ExpressionBuilder::build(ValueId value, const DimMap& dims) {
  const std::int64_t definition = views_.definition(value);
  if (definition >= 0) {
    const std::size_t number = static_cast<std::size_t>(definition);
    const OpClass kind = views_.info(number).kind;
    const bool isHere = plan_.inlined[number] || (plan_.group[number] >= 0 && plan_.group[number] == group_);
    if (kind == OpClass::Literal) return literal(number, dims);
    if (kind == OpClass::Map && isHere) return map(number, dims);
    if (kind == OpClass::Take && isHere) return take(number, dims);
    if (kind == OpClass::Slots && isHere) return slots(number, dims);
    if (kind == OpClass::WindowRead && isHere) return windowRead(number, dims);
  }
  return load(value, dims);
}

int ExpressionBuilder::load(ValueId value, const DimMap& dims) {
  Node node;
  node.kind = NodeKind::Load;
  node.dtype = views_.layout(value).dtype;
  node.access = access(value, dims);
  return add(std::move(node));
}

int ExpressionBuilder::literal(std::size_t number, const DimMap& dims) {
  const Op& op = views_.function().ops[number];
  const OpView view = views_.view(number);
  const ValueId result = op.results[0];
  const Layout& layout = views_.layout(result);
  Node node;
  node.dtype = layout.dtype;
  node.op = static_cast<std::int64_t>(number);
  if (op.kind == OpKind::Constant) {
    node.literal = view.literalAttr("value");
    fitLiteral(node);
    const bool isSplat = node.literal.ints.size() + node.literal.floats.size() == 1;
    node.kind = isSplat ? NodeKind::Constant : NodeKind::Table;
    if (!isSplat) node.position = globalIndex(layout, dims);
    return add(std::move(node));
  }
  if (op.kind == OpKind::Iota) {
    const std::size_t dim = static_cast<std::size_t>(view.intAttr("dim"));
    node.kind = NodeKind::Index;
    node.position = zeroIndex();
    addDim(node.position, dims[dim], 1);
    if (layout.dims[dim].split) node.position.tileOffsets.emplace_back(extentExtra(layout.dims[dim].extent), 1);
    return add(std::move(node));
  }
  if (op.kind == OpKind::DeviceIndex) {
    node.kind = NodeKind::Index;
    node.position = zeroIndex();
    node.position.tileOffsets.emplace_back(extentExtra(views_.info(number).deviceExtent), 1);
    return add(std::move(node));
  }
  GSHARD_CHECK(op.kind == OpKind::DimSize, "an op made from indices alone");
  const Value& measured = views_.function().value(op.operands[0]);
  std::int64_t product = 1;
  bool isRowDim = false;
  for (const std::int64_t dim : view.intsAttr("dims")) {
    std::int64_t size = measured.type.shape[static_cast<std::size_t>(dim)];
    if (dim == measured.rowDim && views_.function().rows > 0) {
      size /= views_.function().rows;  // a row may stand for several indices
      isRowDim = true;
    }
    product *= size;
  }
  if (isRowDim && views_.function().totalRows > 0) {
    product *= views_.function().totalRows;
    isRowDim = false;
  }
  if (!isRowDim) return constant(layout.dtype, static_cast<double>(product));
  node.kind = NodeKind::TotalRows;
  node.number = product;
  return add(std::move(node));
}

int ExpressionBuilder::map(std::size_t number, const DimMap& dims) {
  const Op& op = views_.function().ops[number];
  const Layout& result = views_.layout(op.results[0]);
  std::vector<int> inputs;
  for (const ValueId operand : op.operands) {
    inputs.push_back(node(operand, compose(broadcastDims(views_.layout(operand), result), dims)));
  }
  const std::optional<ScalarFn> fn = scalarFromName(views_.view(number).stringAttr("fn"));
  GSHARD_CHECK(fn.has_value(), "a scalar function that the verifier let pass");
  const int made = apply(*fn, result.dtype, std::move(inputs));
  work_.kernel.nodes[static_cast<std::size_t>(made)].op = static_cast<std::int64_t>(number);
  if (mayFail(*fn, views_.layout(op.operands[0]).dtype)) {
    Node& failing = work_.kernel.nodes[static_cast<std::size_t>(made)];
    failing.siteArg = siteExtra(number);
    failing.position = globalIndex(result, dims);
  }
  return made;
}

TakeDims takeDims(std::int64_t tableRank, std::int64_t indexRank, std::int64_t axis, std::int64_t batch) {
  TakeDims dims;
  const auto at = [](std::int64_t dim) { return DimIndex{static_cast<int>(dim), 1, 0}; };
  for (std::int64_t i = 0; i < tableRank; ++i) {
    if (i < axis)
      dims.table.push_back(at(i));
    else if (i == axis)
      dims.table.push_back(DimIndex{-1, 1, 0});
    else
      dims.table.push_back(at(i - 1 + indexRank - batch));
  }
  for (std::int64_t i = 0; i < indexRank; ++i) dims.index.push_back(at(i < batch ? i : axis + i - batch));
  return dims;
}

int ExpressionBuilder::take(std::size_t number, const DimMap& dims) {
  const Op& op = views_.function().ops[number];
  const OpView view = views_.view(number);
  const Layout& table = views_.layout(op.operands[0]);
  const Layout& index = views_.layout(op.operands[1]);
  const std::int64_t axis = view.intAttr("axis");
  const TakeDims places = takeDims(table.rank(), index.rank(), axis, view.hasAttr("batch") ? view.intAttr("batch") : 0);
  const DimMap indexMap = compose(places.index, dims);
  const LocalDim& looked = table.dims[static_cast<std::size_t>(axis)];
  Node gather;
  gather.kind = NodeKind::Gather;
  gather.op = static_cast<std::int64_t>(number);
  gather.dtype = table.dtype;
  gather.inputs = {node(op.operands[1], indexMap)};
  gather.access = access(op.operands[0], compose(places.table, dims));
  gather.siteArg = siteExtra(number);
  gather.literal = isFloat(table.dtype) ? floatLiteral(-0.0) : intLiteral(0);
  RunTimeDim move;
  move.stride = table.strides()[static_cast<std::size_t>(axis)];
  move.limit = looked.global;
  move.position = globalIndex(index, indexMap);
  move.within = zeroIndex();
  if (looked.split) move.splitArg = extentExtra(looked.extent);
  gather.moves.push_back(std::move(move));
  return add(std::move(gather));
}

// Where a window of `x` lies that begins at `starts`; `dims` are the window's dims in terms of loops.
Node ExpressionBuilder::window(std::size_t number, ValueId x, const Layout& window, const DimMap& dims,
                               std::span<const ValueId> starts) {
  const Layout& layout = views_.layout(x);
  Node node;
  node.dtype = layout.dtype;
  node.siteArg = siteExtra(number);
  node.literal = isFloat(layout.dtype) ? floatLiteral(-0.0) : intLiteral(0);
  for (const ValueId start : starts) node.inputs.push_back(this->node(start, {}));
  DimMap fixed;  // of dims of x that are split, and not as the window is: found element by element
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const LocalDim& dim = layout.dims[i];
    const LocalDim& own = window.dims[i];
    const bool isPart = own.global != dim.global;
    RunTimeDim move;
    move.startDim = static_cast<int>(i);
    move.stride = layout.strides()[i];
    move.limit = dim.global - own.global + 1;
    move.position = zeroIndex();
    move.within = zeroIndex();
    if (isPart && dim.split) {
      move.splitArg = extentExtra(dim.extent);
      addDim(move.within, dims[i], 1);
      if (own.split) move.within.tileOffsets.emplace_back(extentExtra(own.extent), 1);
    }
    fixed.push_back(move.splitArg >= 0 ? DimIndex{-1, 1, 0} : dims[i]);
    node.moves.push_back(std::move(move));
  }
  node.access = access(x, fixed);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const LocalDim& own = window.dims[i];
    const bool isPart = own.global != layout.dims[i].global;
    if (isPart && own.split && !layout.dims[i].split)
      node.access.index.tileOffsets.emplace_back(extentExtra(own.extent), layout.strides()[i]);
  }
  return node;
}

int ExpressionBuilder::windowRead(std::size_t number, const DimMap& dims) {
  const Op& op = views_.function().ops[number];
  Node node = window(number, op.operands[0], views_.layout(op.results[0]), dims, std::span(op.operands).subspan(1));
  node.kind = NodeKind::Gather;
  return add(std::move(node));
}

int ExpressionBuilder::windowPlace(std::size_t number, const DimMap& dims) {
  const Op& op = views_.function().ops[number];
  Node node = window(number, op.results[0], views_.layout(op.operands[1]), dims, std::span(op.operands).subspan(2));
  node.kind = NodeKind::Place;
  return add(std::move(node));
}

KernelWork ExpressionBuilder::finish() {
  finishKernel(work_.kernel);
  if (takesOuterSize(work_.kernel)) {
    KernelLoop& outer = work_.kernel.loops[0];
    outer.sizeArg = numberExtra(outer.size);
  }
  return std::move(work_);
}

}  // namespace gshard
