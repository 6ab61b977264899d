// Making and describing datums; what they mean is in the interpreter.
#include "sema/datum.h"

#include "sema/scope.h"
#include "support/check.h"
#include "support/overloaded.h"
#include "support/text.h"

namespace gshard::sema {

namespace {
std::string printed(const Datum& datum, std::int64_t& room);

// Nested lists share parts and may have more leaves than any text: after `room` items the rest is left out.
std::string printItems(const std::vector<Datum>& items, std::int64_t& room) {
  std::vector<std::string> parts;
  for (const Datum& item : items) {
    if (--room < 0) {
      parts.emplace_back("…");
      break;
    }
    parts.push_back(printed(item, room));
  }
  return join(parts, ", ");
}
}  // namespace

RowsUse derived(RowsUse a, RowsUse b) {
  return a == RowsUse::None && b == RowsUse::None ? RowsUse::None : RowsUse::Derived;
}

Datum makeInt(std::int64_t value) {
  return IntDatum{value};
}
Datum makeFloat(double value) {
  return FloatDatum{value};
}
Datum makeBool(bool value) {
  return BoolDatum{value};
}
Datum makeList(std::vector<Datum> items) {
  return ListDatum{std::make_shared<const std::vector<Datum>>(std::move(items))};
}
Datum makeTuple(std::vector<Datum> items) {
  return TupleDatum{std::make_shared<const std::vector<Datum>>(std::move(items))};
}
Datum makeInts(const std::vector<std::int64_t>& values) {
  std::vector<Datum> items;
  for (const std::int64_t value : values) items.push_back(makeInt(value));
  return makeList(std::move(items));
}

double numberOf(const Datum& number) {
  if (const auto* i = number.as<IntDatum>()) return static_cast<double>(i->value);
  if (const auto* f = number.as<FloatDatum>()) return f->value;
  GSHARD_UNREACHABLE("a number");
}

std::string printDatum(const Datum& datum) {
  std::int64_t room = 1'000'000;
  return printed(datum, room);
}

namespace {
std::string printed(const Datum& datum, std::int64_t& room) {
  return std::visit(
      Overloaded{[](const ErrorDatum&) -> std::string { return "?"; },
                 [](const NoneDatum&) -> std::string { return "none"; },
                 [](const IntDatum& d) { return std::to_string(d.value); },
                 [](const FloatDatum& d) { return formatNumber(d.value); },
                 [](const BoolDatum& d) -> std::string { return d.value ? "true" : "false"; },
                 [](const StringDatum& d) { return quoted(d.value); },
                 [](const DTypeDatum& d) { return std::string(dtypeName(d.value)); },
                 [](const AxisDatum& d) { return d.name; },
                 [](const RangeDatum& d) { return std::to_string(d.low) + ".." + std::to_string(d.high); },
                 [&](const ListDatum& d) { return "[" + printItems(*d.items, room) + "]"; },
                 [&](const TupleDatum& d) { return "(" + printItems(*d.items, room) + ")"; },
                 [](const RecordDatum& d) { return d.kind; },
                 [](const TensorDatum& d) { return printType(d.type); },
                 [](const ChoiceDatum&) -> std::string { return "where(…)"; },
                 [](const ParameterDatum&) -> std::string { return "param"; },
                 [](const StateDatum&) -> std::string { return "state"; },
                 [](const InstanceDatum& d) { return d.instance->path; },
                 [](const UnitDatum& d) { return d.unit->name; },
                 [](const SettingDatum&) -> std::string { return "const"; },
                 [](const FunctionRef& d) { return d.decl->name.text; },
                 [](const ModelRef& d) { return d.decl->name.text; },
                 [](const OptimizerRef& d) { return d.decl->name.text; },
                 [](const BuiltinRef&) -> std::string { return "builtin"; },
                 [](const Given& d) -> std::string { return d == Given::Step ? "step" : "steps"; }},
      datum.node);
}
}  // namespace

std::string kindOf(const Datum& datum) {
  return std::visit(Overloaded{[](const ErrorDatum&) -> std::string { return "unknown"; },
                               [](const NoneDatum&) -> std::string { return "none"; },
                               [](const IntDatum&) -> std::string { return "int"; },
                               [](const FloatDatum&) -> std::string { return "float"; },
                               [](const BoolDatum&) -> std::string { return "bool"; },
                               [](const StringDatum&) -> std::string { return "string"; },
                               [](const DTypeDatum&) -> std::string { return "dtype"; },
                               [](const AxisDatum&) -> std::string { return "axis"; },
                               [](const RangeDatum&) -> std::string { return "range"; },
                               [](const ListDatum&) -> std::string { return "list"; },
                               [](const TupleDatum&) -> std::string { return "tuple"; },
                               [](const RecordDatum& d) { return d.kind; },
                               [](const TensorDatum&) -> std::string { return "tensor"; },
                               [](const ChoiceDatum&) -> std::string { return "tensor"; },
                               [](const ParameterDatum&) -> std::string { return "tensor"; },
                               [](const StateDatum&) -> std::string { return "tensor"; },
                               [](const InstanceDatum&) -> std::string { return "model instance"; },
                               [](const UnitDatum&) -> std::string { return "imported file"; },
                               [](const SettingDatum&) -> std::string { return "tensor"; },
                               [](const FunctionRef&) -> std::string { return "function"; },
                               [](const ModelRef&) -> std::string { return "model"; },
                               [](const OptimizerRef&) -> std::string { return "optimizer"; },
                               [](const BuiltinRef&) -> std::string { return "function"; },
                               [](const Given&) -> std::string { return "tensor"; }},
                    datum.node);
}

std::string describe(const Datum& datum) {
  const std::string kind = kindOf(datum);
  if (const auto* tensor = datum.as<TensorDatum>()) return "`" + printType(tensor->type) + "`";
  if (datum.is<NoneDatum>()) return "`none`";
  if (datum.isNumber() || datum.is<BoolDatum>() || datum.is<StringDatum>() || datum.is<DTypeDatum>() ||
      datum.is<AxisDatum>() || datum.is<RangeDatum>() || datum.is<InstanceDatum>() || datum.is<FunctionRef>() ||
      datum.is<ModelRef>() || datum.is<OptimizerRef>() || datum.is<UnitDatum>()) {
    return "the " + kind + " `" + printDatum(datum) + "`";
  }
  if (datum.is<ListDatum>()) {
    const std::string text = printDatum(datum);
    if (text.size() <= 40) return "the list `" + text + "`";
  }
  return (kind == "int" || kind == "imported file" ? "an " : "a ") + kind;
}

}  // namespace gshard::sema
