// Bytes of an op that pure questions depend on; see op_signature.h. Lengths stand before lists, so that no two
// differing ops have one key.
#include "ir/op_signature.h"

#include <bit>
#include <cstdint>

#include "support/overloaded.h"

namespace gshard {

static void appendSize(std::string& key, std::size_t size) {
  appendNumber(key, static_cast<std::int64_t>(size));
}

static void appendText(std::string& key, std::string_view text) {
  appendSize(key, text.size());
  key += text;
}

void appendAxes(std::string& key, std::span<const AxisRef> axes) {
  appendSize(key, axes.size());
  for (const AxisRef& ref : axes) {
    appendNumber(key, ref.axis);
    appendNumber(key, ref.pre);
    appendNumber(key, ref.size);
  }
}

void appendSharding(std::string& key, const Sharding& sharding) {
  appendSize(key, sharding.dims.size());
  for (const std::vector<AxisRef>& dim : sharding.dims) appendAxes(key, dim);
  appendSize(key, sharding.partial.size());
  for (const PartialAxis& partial : sharding.partial) {
    appendAxes(key, std::span(&partial.axis, 1));
    appendNumber(key, static_cast<std::int64_t>(partial.reduction));
  }
}

static void appendLiteral(std::string& key, const Literal& literal) {
  // Long ones are compared by place: an op with a table of its own is no repetition.
  constexpr std::size_t kLongest = 64;
  appendSize(key, literal.ints.size());
  appendSize(key, literal.floats.size());
  if (literal.ints.size() + literal.floats.size() > kLongest) {
    appendNumber(key, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&literal)));
    return;
  }
  for (const std::int64_t value : literal.ints) appendNumber(key, value);
  for (const double value : literal.floats) appendNumber(key, std::bit_cast<std::int64_t>(value));
}

static void appendAttribute(std::string& key, const Attribute& attribute) {
  appendSize(key, attribute.index());
  std::visit(Overloaded{
                 [&](std::int64_t value) { appendNumber(key, value); },
                 [&](double value) { appendNumber(key, std::bit_cast<std::int64_t>(value)); },
                 [&](bool value) { appendNumber(key, value ? 1 : 0); },
                 [&](const std::string& value) { appendText(key, value); },
                 [&](const std::vector<std::int64_t>& value) {
                   appendSize(key, value.size());
                   for (const std::int64_t number : value) appendNumber(key, number);
                 },
                 [&](DType value) { appendNumber(key, static_cast<std::int64_t>(value)); },
                 [&](const std::vector<AxisRef>& value) { appendAxes(key, value); },
                 [&](const Annotation& value) {
                   appendSharding(key, value.sharding);
                   appendNumber(key, (value.open ? 1 : 0) + (value.stored ? 2 : 0));
                 },
                 [&](const Literal& value) { appendLiteral(key, value); },
             },
             attribute);
}

std::int64_t ValueNumbers::of(const Value& value, const Attribute* constant) {
  key_.clear();
  appendNumber(key_, static_cast<std::int64_t>(value.type.dtype));
  appendSize(key_, value.type.shape.size());
  for (const std::int64_t size : value.type.shape) appendNumber(key_, size);
  appendNumber(key_, value.rowDim + 1);
  appendNumber(key_, constant != nullptr ? 1 : 0);
  if (constant != nullptr) appendAttribute(key_, *constant);
  if (sharded_) {
    appendNumber(key_, value.sharding ? 1 : 0);
    if (value.sharding) appendSharding(key_, *value.sharding);
  }
  return numbers_.try_emplace(key_, static_cast<std::int64_t>(numbers_.size())).first->second;
}

OpSignatures::OpSignatures(const Function& function, ValueNumbers& numbers)
    : function_(function),
      numbers_(numbers),
      constants_(function.values.size(), nullptr),
      known_(function.values.size(), -1) {
  for (const Op& op : function.ops) {
    if (op.kind != OpKind::Constant || op.results.empty()) continue;
    const std::uint32_t result = op.results[0].index;  // the verifier has not seen it yet
    if (result < constants_.size() && function.values[result].type.isScalar())
      constants_[result] = op.attributes.find("value");
  }
}

std::int64_t OpSignatures::number(ValueId value) {
  std::int64_t& known = known_[value.index];
  if (known < 0) known = numbers_.of(function_.value(value), constants_[value.index]);
  return known;
}

void OpSignatures::append(std::string& key, const Op& op) {
  appendNumber(key, static_cast<std::int64_t>(op.kind));
  appendSize(key, op.attributes.items().size());
  for (const auto& [name, value] : op.attributes.items()) {
    appendText(key, name);
    appendAttribute(key, value);
  }
  for (const std::vector<ValueId>* list : {&op.operands, &op.results}) {
    appendSize(key, list->size());
    for (const ValueId id : *list) appendNumber(key, number(id));
  }
}

}  // namespace gshard
