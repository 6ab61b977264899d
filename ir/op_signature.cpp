// What of an op pure questions depend on; see op_signature.h.
#include "ir/op_signature.h"

#include <bit>
#include <cstdint>

#include "support/check.h"
#include "support/overloaded.h"

namespace gshard {

void addAxes(Key& key, std::span<const AxisRef> axes) {
  key.addSize(axes.size());
  for (const AxisRef& ref : axes) {
    key.add(ref.axis);
    key.add(ref.pre);
    key.add(ref.size);
  }
}

void addSharding(Key& key, const Sharding& sharding) {
  key.addSize(sharding.dims.size());
  for (const std::vector<AxisRef>& dim : sharding.dims) addAxes(key, dim);
  key.addSize(sharding.partial.size());
  for (const PartialAxis& partial : sharding.partial) {
    addAxes(key, std::span(&partial.axis, 1));
    key.add(static_cast<std::int64_t>(partial.reduction));
  }
}

// Long ones get a number each time: an op with a table of its own is no repetition.
static void addLiteral(Key& key, const Literal& literal, std::int64_t& tables) {
  constexpr std::size_t kLongest = 64;
  key.addSize(literal.ints.size());
  key.addSize(literal.floats.size());
  if (literal.ints.size() + literal.floats.size() > kLongest) return key.add(tables++);
  for (const std::int64_t value : literal.ints) key.add(value);
  for (const double value : literal.floats) key.add(std::bit_cast<std::int64_t>(value));
}

// But for its type, which stands with its name.
static void addAttribute(Key& key, const Attribute& attribute, std::int64_t& tables) {
  std::visit(Overloaded{
                 [&](std::int64_t value) { key.add(value); },
                 [&](double value) { key.add(std::bit_cast<std::int64_t>(value)); },
                 [&](bool value) { key.add(value ? 1 : 0); },
                 [&](const std::string& value) { key.addText(value); },
                 [&](const std::vector<std::int64_t>& value) {
                   key.addSize(value.size());
                   for (const std::int64_t number : value) key.add(number);
                 },
                 [&](DType value) { key.add(static_cast<std::int64_t>(value)); },
                 [&](const std::vector<AxisRef>& value) { addAxes(key, value); },
                 [&](const Annotation& value) {
                   addSharding(key, value.sharding);
                   key.add((value.open ? 1 : 0) + (value.stored ? 2 : 0));
                 },
                 [&](const Literal& value) { addLiteral(key, value, tables); },
             },
             attribute);
}

std::uint64_t ValueNumbers::hashOf(const Value& value) const {
  std::uint64_t hash = static_cast<std::uint64_t>(value.type.dtype);
  const auto add = [&](std::int64_t number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  for (const std::int64_t size : value.type.shape) add(size);
  add(value.rowDim);
  if (!sharded_ || !value.sharding) return hash;
  for (const std::vector<AxisRef>& axes : value.sharding->dims) {
    add(static_cast<std::int64_t>(axes.size()));
    for (const AxisRef& ref : axes) add(ref.axis + ref.pre * 64 + ref.size * 4096);
  }
  add(static_cast<std::int64_t>(value.sharding->partial.size()));
  return hash;
}

std::size_t ValueNumbers::of(const Value& value, const Attribute* constant) {
  if (constant != nullptr) return numberOf(value, constant);
  Seen& seen = seen_[hashOf(value) % seen_.size()];
  const bool isSame = seen.number != SIZE_MAX && seen.rowDim == value.rowDim && seen.type == value.type &&
                      (!sharded_ || seen.sharding == value.sharding);
  if (isSame) return seen.number;
  seen = {value.type, value.rowDim, sharded_ ? value.sharding : std::nullopt, numberOf(value, nullptr)};
  return seen.number;
}

std::size_t ValueNumbers::numberOf(const Value& value, const Attribute* constant) {
  key_.clear();
  key_.add(static_cast<std::int64_t>(value.type.dtype));
  key_.addSize(value.type.shape.size());
  for (const std::int64_t size : value.type.shape) key_.add(size);
  key_.add(value.rowDim);
  key_.addSize(constant != nullptr ? 1 + constant->index() : 0);
  if (constant != nullptr) addAttribute(key_, *constant, tables_);
  if (sharded_) {
    key_.add(value.sharding ? 1 : 0);
    if (value.sharding) addSharding(key_, *value.sharding);
  }
  return numbers_.of(key_);
}

void ValueNumbers::addAttributes(Key& key, const Op& op) {
  for (const auto& [name, value] : op.attributes.items()) {
    key.addText(name, static_cast<std::uint8_t>(value.index()));
    addAttribute(key, value, tables_);
  }
}

OpSignatures::OpSignatures(const Function& function, ValueNumbers& numbers)
    : function_(function),
      numbers_(numbers),
      constants_(function.values.size(), nullptr),
      known_(function.values.size(), kUnasked) {
  for (const Op& op : function.ops) {
    if (op.kind != OpKind::Constant || op.results.empty()) continue;
    const std::uint32_t result = op.results[0].index;  // the verifier has not seen it yet
    if (result < constants_.size() && function.values[result].type.isScalar())
      constants_[result] = op.attributes.find("value");
  }
}

std::size_t OpSignatures::number(ValueId value) {
  std::size_t& known = known_[value.index];
  if (known == kUnasked) known = numbers_.of(function_.value(value), constants_[value.index]);
  return known;
}

void OpSignatures::add(Key& key, const Op& op) {
  // Kind and numbers of parts in one word, values in pairs: keys are hashed and compared word by word.
  const std::size_t parts[] = {op.attributes.items().size(), op.operands.size(), op.results.size()};
  const bool isSmall = parts[0] < 256 && parts[1] < 65536 && parts[2] < 65536;
  GSHARD_CHECK(isSmall, "an op of more parts than a signature counts");
  key.addSize(static_cast<std::size_t>(op.kind) | parts[0] << 8 | parts[1] << 16 | parts[2] << 32);
  numbers_.addAttributes(key, op);
  std::size_t pair = 0;
  bool isHalf = false;
  const auto addNumber = [&](ValueId id) {
    if (isHalf) key.addSize(pair | number(id) << 32);
    pair = number(id);
    isHalf = !isHalf;
  };
  for (const ValueId id : op.operands) addNumber(id);
  for (const ValueId id : op.results) addNumber(id);
  if (isHalf) key.addSize(pair);
}

}  // namespace gshard
