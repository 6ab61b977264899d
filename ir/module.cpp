// Module and Function as data: lookups, uses, and typed access to attributes.
#include "ir/module.h"

#include <algorithm>

#include "support/check.h"

namespace gshard {

std::string_view phaseName(Phase phase) {
  switch (phase) {
    case Phase::Forward:
      return "forward";
    case Phase::Backward:
      return "backward";
    case Phase::Update:
      return "update";
  }
  GSHARD_UNREACHABLE("Phase");
}

ValueId Function::addValue(Value value) {
  values.push_back(std::move(value));
  return ValueId{static_cast<std::uint32_t>(values.size() - 1)};
}

Function* Module::find(std::string_view name) {
  for (Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

const Function* Module::find(std::string_view name) const {
  return const_cast<Module*>(this)->find(name);
}

bool rowsVary(const Function& function) {
  if (function.stage == Stage::Finish || function.rows == 0) return false;
  if (function.stage == Stage::Whole) return function.blocks == 0;
  return function.totalRows == 0 || function.totalRows % function.rows != 0;
}

std::vector<std::int64_t> useCounts(const Function& function) {
  std::vector<std::int64_t> counts(function.values.size(), 0);
  for (const Op& op : function.ops) {
    for (const ValueId operand : op.operands) ++counts[operand.index];
  }
  for (const Result& result : function.results) ++counts[result.value.index];
  return counts;
}

std::vector<std::vector<std::int64_t>> usersOf(const Function& function) {
  std::vector<std::vector<std::int64_t>> users(function.values.size());
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    for (const ValueId operand : function.ops[i].operands) {
      std::vector<std::int64_t>& list = users[operand.index];
      if (list.empty() || list.back() != static_cast<std::int64_t>(i)) list.push_back(static_cast<std::int64_t>(i));
    }
  }
  return users;
}

std::vector<std::int64_t> definitionsOf(const Function& function) {
  std::vector<std::int64_t> definitions(function.values.size(), -1);
  for (std::size_t i = 0; i < function.ops.size(); ++i) {
    for (const ValueId result : function.ops[i].results) definitions[result.index] = static_cast<std::int64_t>(i);
  }
  return definitions;
}

void replaceUses(Function& function, ValueId from, ValueId to) {
  for (Op& op : function.ops) {
    for (ValueId& operand : op.operands) {
      if (operand == from) operand = to;
    }
  }
  for (Result& result : function.results) {
    if (result.value == from) result.value = to;
  }
}

void eraseUnused(Function& function) {
  std::vector<std::uint8_t> live(function.values.size(), 0);  // bytes: bits would be slower to ask
  for (const Result& result : function.results) live[result.value.index] = 1;
  const auto isLive = [&](ValueId value) { return live[value.index] != 0; };
  std::size_t kept = 0;
  for (std::size_t i = function.ops.size(); i-- > 0;) {
    const Op& op = function.ops[i];
    if (std::none_of(op.results.begin(), op.results.end(), isLive)) continue;
    for (const ValueId operand : op.operands) live[operand.index] = 1;
    ++kept;
  }
  if (kept == function.ops.size()) return;
  // In SSA order a value is live before the op that makes it is reached, or never.
  std::erase_if(function.ops, [&](const Op& op) { return std::none_of(op.results.begin(), op.results.end(), isLive); });
}

namespace {
template <class T>
const T& attributeOf(const Op& op, std::string_view name) {
  const Attribute* found = op.attributes.find(name);
  const T* value = found != nullptr ? std::get_if<T>(found) : nullptr;
  GSHARD_CHECK(value != nullptr, "attribute `" + std::string(name) + "` is missing or of another type");
  return *value;
}
}  // namespace

bool OpView::hasAttr(std::string_view name) const {
  return op_->attributes.find(name) != nullptr;
}
std::int64_t OpView::intAttr(std::string_view name) const {
  return attributeOf<std::int64_t>(*op_, name);
}
double OpView::floatAttr(std::string_view name) const {
  return attributeOf<double>(*op_, name);
}
bool OpView::boolAttr(std::string_view name) const {
  return hasAttr(name) && attributeOf<bool>(*op_, name);
}
const std::string& OpView::stringAttr(std::string_view name) const {
  return attributeOf<std::string>(*op_, name);
}
const std::vector<std::int64_t>& OpView::intsAttr(std::string_view name) const {
  return attributeOf<std::vector<std::int64_t>>(*op_, name);
}
const std::vector<AxisRef>& OpView::axesAttr(std::string_view name) const {
  return attributeOf<std::vector<AxisRef>>(*op_, name);
}
DType OpView::dtypeAttr(std::string_view name) const {
  return attributeOf<DType>(*op_, name);
}
const Literal& OpView::literalAttr(std::string_view name) const {
  return attributeOf<Literal>(*op_, name);
}
const Annotation& OpView::annotationAttr(std::string_view name) const {
  return attributeOf<Annotation>(*op_, name);
}

}  // namespace gshard
