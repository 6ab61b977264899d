// move-through-maps: maps broadcast by themselves, so an operand that was stretched to the result's shape is read small
// (a scalar has no dims that a split would have to agree on), and moves before and after a map that undo each other go.
#include <algorithm>

#include "ir/passes.h"
#include "ir/rewrite.h"

namespace gshard {

namespace {

using Dims = std::vector<std::int64_t>;

class MovingThroughMaps {
 public:
  explicit MovingThroughMaps(Function& function) : rewriter_(function), uses_(useCounts(function)) {}

  // Whether anything was moved.
  bool run() {
    rewriter_.run([&](Op& op) {
      if (op.kind == OpKind::Map) readSmall(op);
      if (op.kind == OpKind::Transpose || op.kind == OpKind::Reshape) cancel(op);
      return true;
    });
    return isChanged_;
  }

 private:
  const Type& type(ValueId value) const { return rewriter_.function().type(value); }

  // The value from which `operand` was stretched as NumPy broadcasting stretches, or an unknown id.
  ValueId smallSource(ValueId operand) const {
    const Op* op = rewriter_.definition(operand);
    if (op == nullptr || op->kind != OpKind::Broadcast) return {};
    const Dims& dims = intsOf(*op, "dims");
    const std::int64_t missing = type(operand).rank() - static_cast<std::int64_t>(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] != missing + static_cast<std::int64_t>(i)) return {};
    }
    return op->operands[0];
  }

  // Operands are made small one after the other as long as those that remain give the result its shape.
  void readSmall(Op& op) {
    const Dims shape = type(op.results[0]).shape;
    if (shape.empty()) return;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (!othersSpan(op, i, shape)) continue;
      if (const ValueId source = smallSource(op.operands[i]); source.known()) {
        op.operands[i] = source;
        isChanged_ = true;
        continue;
      }
      if (!type(op.operands[i]).isScalar()) readScalarConstant(op, i);
    }
  }

  bool othersSpan(const Op& op, std::size_t except, const Dims& shape) const {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (i != except && type(op.operands[i]).shape == shape) return true;
    }
    return false;
  }

  // A splat constant as a scalar of its own.
  void readScalarConstant(Op& op, std::size_t i) {
    const ValueId operand = op.operands[i];
    const Op* definition = rewriter_.definition(operand);
    if (!splatOf(definition, type(operand).dtype)) return;
    Op scalar = *definition;
    const Value& old = rewriter_.function().value(operand);
    const Value value{.type = {old.type.dtype, {}},
                      .sharding = {},
                      .rowDim = -1,
                      .name = old.name,
                      .range = old.range,
                      .origins = {}};
    scalar.results = {rewriter_.function().addValue(value)};
    scalar.attributes.set("shape", Dims{});
    op.operands[i] = scalar.results[0];
    rewriter_.append(std::move(scalar));
    isChanged_ = true;
  }

  // move(map(inverse move(x), …)): the map alone. Only where the map has no other reader.
  void cancel(Op& op) {
    const ValueId x = op.operands[0];
    const Op* map = rewriter_.definition(x);
    if (map == nullptr || map->kind != OpKind::Map || uses_[x.index] != 1) return;
    std::vector<ValueId> sources;
    bool any = false;
    for (const ValueId operand : map->operands) {
      if (type(operand).isScalar()) {
        sources.push_back(operand);
        continue;
      }
      const Op* inner = rewriter_.definition(operand);
      if (inner == nullptr || inner->kind != op.kind || !undoes(op, *inner)) return;
      sources.push_back(inner->operands[0]);
      any = true;
    }
    if (!any) return;
    const Op inner = *map;
    op.kind = OpKind::Map;
    op.operands = std::move(sources);
    setAttributes(op, inner.attributes);
    op.range = inner.range;
    isChanged_ = true;
  }

  bool undoes(const Op& outer, const Op& inner) const {
    if (type(inner.operands[0]).shape != type(outer.results[0]).shape) return false;
    if (outer.kind == OpKind::Reshape) return true;
    const Dims& first = intsOf(inner, "perm");
    const Dims& second = intsOf(outer, "perm");
    for (std::size_t i = 0; i < second.size(); ++i) {
      if (first[static_cast<std::size_t>(second[i])] != static_cast<std::int64_t>(i)) return false;
    }
    return true;
  }

  Rewriter rewriter_;
  std::vector<std::int64_t> uses_;
  bool isChanged_ = false;
};

}  // namespace

void moveThroughMaps(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    if (!MovingThroughMaps(function).run()) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
