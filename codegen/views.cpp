// Classification of ops and resolution of views: see views.h.
#include "codegen/views.h"

#include "support/check.h"

namespace gshard {

DimMap identityDims(std::int64_t rank) {
  DimMap map(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < map.size(); ++i) map[i].from = static_cast<int>(i);
  return map;
}

bool isIdentity(const DimMap& map, std::int64_t rank) {
  return map == identityDims(rank);
}

DimMap compose(const DimMap& operandInResult, const DimMap& resultInLoops) {
  DimMap map(operandInResult.size());
  for (std::size_t i = 0; i < map.size(); ++i) {
    const DimIndex& dim = operandInResult[i];
    map[i] = dim;
    if (dim.from < 0) continue;
    const DimIndex& outer = resultInLoops[static_cast<std::size_t>(dim.from)];
    map[i].from = outer.from;
    map[i].scale = outer.from < 0 ? 1 : dim.scale * outer.scale;
    map[i].offset = dim.scale * outer.offset + dim.offset;
  }
  return map;
}

DimMap broadcastDims(const Layout& operand, const Layout& result) {
  DimMap map = identityDims(operand.rank());
  const std::size_t missing = result.dims.size() - operand.dims.size();
  for (std::size_t i = 0; i < map.size(); ++i) {
    map[i].from = static_cast<int>(i + missing);
    if (operand.dims[i].global == 1 && result.dims[i + missing].global != 1) map[i] = DimIndex{-1, 1, 0};
  }
  return map;
}

FunctionViews::FunctionViews(const Module& module, const Function& function, ExtentTable& extents)
    : module_(&module), function_(&function), definitions_(definitionsOf(function)) {
  for (std::uint32_t i = 0; i < function.values.size(); ++i) {
    layouts_.push_back(layoutOf(function, ValueId{i}, extents));
    storage_.push_back(ValueId{i});
  }
  infos_.resize(function.ops.size());
  hasSlots_.assign(function.values.size(), false);
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    classify(i);
    findSlots(i);
    const bool isScanOfParts = infos_[i].kind == OpClass::Scan && view(i).hasAttr("axes");
    if (function.ops[i].kind != OpKind::DeviceIndex && !isScanOfParts) continue;
    const std::vector<AxisRef>& axes = view(i).axesAttr("axes");
    infos_[i].deviceExtent = extents.intern(Extent{productOf(axes), 1, 0, axes});
  }
}

// What keeps rows of zeros, or may: maps, products, moves, collectives.
void FunctionViews::findSlots(std::size_t number) {
  const Op& op = function_->ops[number];
  bool has = false;
  switch (infos_[number].kind) {
    case OpClass::View:
    case OpClass::Alias:
    case OpClass::Map:
    case OpClass::Contract:
    case OpClass::Placement:
    case OpClass::Runtime:
      for (const ValueId operand : op.operands) has = has || hasSlots_[operand.index];
      break;
    case OpClass::Slots:
      has = std::holds_alternative<LowerDispatch>(*opDef(op.kind).lower);
      break;
    case OpClass::Literal:
    case OpClass::Random:
    case OpClass::Take:
    case OpClass::WindowRead:
    case OpClass::Reduce:
    case OpClass::ArgReduce:
    case OpClass::Scan:
    case OpClass::Sort:
    case OpClass::Route:
    case OpClass::Scatter:
    case OpClass::WindowWrite:
      break;
  }
  for (const ValueId result : op.results) hasSlots_[result.index] = has;
}

// Dims of size 1 come and go without moving anything: then the reshape is a view, and fusion sees through it.
void FunctionViews::classifyReshape(std::size_t op) {
  const Op& reshape = function_->ops[op];
  const Layout& from = layout(reshape.operands[0]);
  const Layout& to = layout(reshape.results[0]);
  OpInfo& info = infos_[op];
  // Tiles that hold the same flat indices have equal sizes, since the first part is never short.
  GSHARD_CHECK(from.elements() == to.elements(), "a reshape of tiles keeps their size");
  info.kind = OpClass::Alias;
  const auto isUnit = [](const LocalDim& dim) { return dim.global == 1 && !dim.split && dim.fixed; };
  DimMap map(from.dims.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < from.dims.size(); ++i) {
    if (isUnit(from.dims[i])) {
      map[i] = DimIndex{-1, 1, 0};
      continue;
    }
    while (next < to.dims.size() && isUnit(to.dims[next])) ++next;
    if (next == to.dims.size() || to.dims[next].extent != from.dims[i].extent) return;
    map[i].from = static_cast<int>(next++);
  }
  while (next < to.dims.size() && isUnit(to.dims[next])) ++next;
  if (next != to.dims.size()) return;
  info.kind = OpClass::View;
  info.view = map;
}

// Dims of operand 0 in terms of the result's, if every result index reads one operand index.
static std::optional<DimMap> totalView(const OpView& op, const LowerMove& move) {
  if (op.op().kind == OpKind::Pad || op.op().kind == OpKind::Concat || move.pieces > 1) return std::nullopt;
  DimMap map(op.operandType(0).shape.size(), DimIndex{-1, 1, 0});
  const std::vector<MoveDim> dims = move.map(op, 0, 0);
  for (std::size_t r = 0; r < dims.size(); ++r) {
    if (dims[r].operandDim < 0) continue;
    GSHARD_CHECK(dims[r].divide == 1, "a view reads one element for each");
    map[static_cast<std::size_t>(dims[r].operandDim)] = DimIndex{static_cast<int>(r), dims[r].scale, dims[r].offset};
  }
  return map;
}

void FunctionViews::classify(std::size_t number) {
  const Op& op = function_->ops[number];
  OpInfo& info = infos_[number];
  struct Visitor {
    FunctionViews& self;
    std::size_t number;
    const Op& op;
    OpInfo& info;
    void operator()(const LowerMap&) const { info.kind = OpClass::Map; }
    void operator()(const LowerContract&) const { info.kind = OpClass::Contract; }
    void operator()(const LowerReduce&) const { info.kind = OpClass::Reduce; }
    // Of several candidates per part the rows are put in order.
    void operator()(const LowerArgReduce&) const {
      info.kind = self.view(number).hasAttr("k") ? OpClass::Sort : OpClass::ArgReduce;
    }
    void operator()(const LowerScan&) const { info.kind = OpClass::Scan; }
    void operator()(const LowerSort&) const { info.kind = OpClass::Sort; }
    void operator()(const LowerMove& move) const {
      if (move.map == nullptr) {
        self.classifyReshape(number);
        return;
      }
      const std::optional<DimMap> view = totalView(self.view(number), move);
      info.kind = view ? OpClass::View : OpClass::Placement;
      if (view) info.view = *view;
    }
    void operator()(const LowerAlias&) const {
      info.kind = OpClass::View;
      info.view = identityDims(self.layout(op.results[0]).rank());
    }
    void operator()(const LowerGenerate&) const {
      const bool isRandom = op.kind == OpKind::RandomUniform || op.kind == OpKind::RandomNormal;
      info.kind = isRandom ? OpClass::Random : OpClass::Literal;
    }
    void operator()(const LowerGather&) const { info.kind = OpClass::Take; }
    void operator()(const LowerScatter&) const { info.kind = OpClass::Scatter; }
    void operator()(const LowerWindowRead&) const { info.kind = OpClass::WindowRead; }
    void operator()(const LowerWindowWrite&) const { info.kind = OpClass::WindowWrite; }
    void operator()(const LowerDispatch&) const { info.kind = OpClass::Slots; }
    void operator()(const LowerGatherSlots&) const { info.kind = OpClass::Slots; }
    void operator()(const LowerCombine&) const { info.kind = OpClass::Slots; }
    void operator()(const LowerRoute&) const { info.kind = OpClass::Route; }
    void operator()(const LowerCollective&) const { info.kind = OpClass::Runtime; }
    void operator()(const LowerLocalCopy&) const { info.kind = OpClass::Runtime; }
  };
  std::visit(Visitor{*this, number, op, info}, *opDef(op.kind).lower);
  if (info.kind == OpClass::Alias) storage_[op.results[0].index] = storage(op.operands[0]);
  if (info.kind != OpClass::View) return;
  // Places are kept if the view is the identity up to dims of size 1.
  const Layout& from = layout(op.operands[0]);
  const Layout& to = layout(op.results[0]);
  int last = -1;
  bool keeps = from.elements() == to.elements();
  for (std::size_t i = 0; i < info.view.size() && keeps; ++i) {
    const DimIndex& dim = info.view[i];
    if (dim.from < 0 || from.dims[i].size == 1) continue;
    keeps = dim.scale == 1 && dim.offset == 0 && dim.from > last &&
            to.dims[static_cast<std::size_t>(dim.from)].size == from.dims[i].size;
    last = dim.from;
  }
  if (keeps) storage_[op.results[0].index] = storage(op.operands[0]);
}

ValueId FunctionViews::storage(ValueId value) const {
  return storage_[value.index];
}

FunctionViews::Base FunctionViews::base(ValueId value, DimMap map) const {
  for (;;) {
    const std::int64_t op = definition(value);
    if (op < 0 || info(static_cast<std::size_t>(op)).kind != OpClass::View) return {value, std::move(map)};
    map = compose(info(static_cast<std::size_t>(op)).view, map);
    value = function_->ops[static_cast<std::size_t>(op)].operands[0];
  }
}

}  // namespace gshard
