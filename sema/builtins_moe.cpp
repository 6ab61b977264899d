// Mixture of Experts: route and top2_gating make the record that moe_dispatch and moe_combine read. What moe.md section
// 1 lists beyond the parameters here is known by name and refused.
#include <algorithm>
#include <array>

#include "sema/builtins.h"
#include "sema/diagnostics.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

// One of `words`; the first when the argument is left out.
std::string wordOf(BuiltinCall& call, std::string_view parameter, const std::vector<std::string>& words) {
  if (!call.given(parameter)) return words.front();
  const std::string word = call.text(parameter);
  if (call.failed() || std::find(words.begin(), words.end(), word) != words.end()) return word;
  std::vector<std::string> shown;
  for (const std::string& each : words) shown.push_back(quoted(each));
  call.sink().emit(call.range(parameter), diag::ValueDoesNotFit,
                   "`" + std::string(parameter) + "` of `" + std::string(call.name()) + "`", "`" + quoted(word) + "`",
                   "one of " + join(shown, ", "));
  call.fail();
  return word;
}

void refuse(BuiltinCall& call, std::string_view parameter, std::string_view instead) {
  call.fail();
  call.sink()
      .emit(call.range(parameter), diag::NotSupportedYet,
            "`" + std::string(parameter) + "` of `" + std::string(call.name()) + "` is")
      .note(std::string(instead));
}

// Parameters of other systems' routers, at any value but the one that is built in.
void refuseOthers(BuiltinCall& call) {
  const auto isNot = [&](std::string_view parameter, auto isDefault) {
    return call.given(parameter) && !call.datum(parameter).isError() && !isDefault(call.datum(parameter));
  };
  const auto isNone = [](const Datum& datum) { return datum.is<NoneDatum>(); };
  const auto is = [](std::string_view word) {
    return [word](const Datum& datum) { return datum.is<StringDatum>() && datum.as<StringDatum>()->value == word; };
  };
  const auto isNumber = [](double value) {
    return [value](const Datum& datum) { return datum.isNumber() && numberOf(datum) == value; };
  };
  const auto isTrue = [](const Datum& datum) { return datum.is<BoolDatum>() && datum.as<BoolDatum>()->value; };
  if (isNot("select", isNone)) refuse(call, "select", "experts are chosen by their gates");
  if (isNot("select_rest", isNone)) refuse(call, "select_rest", "experts are chosen by their gates");
  if (isNot("rejected_takes_slot", isTrue))
    refuse(call, "rejected_takes_slot", "a choice that is rejected takes its slot, as in the paper");
  if (isNot("order", is("rank"))) refuse(call, "order", "all first choices get their slots before all second ones");
  if (isNot("priority", is("position"))) refuse(call, "priority", "slots are given in the order of the tokens");
  if (isNot("eps", isNumber(0))) refuse(call, "eps", "weights are divided by the sum of the gates itself");
  if (isNot("weight_scale", isNumber(1))) refuse(call, "weight_scale", "multiply what `moe_combine` gives");
}

struct Settings {
  std::int64_t k = 0, capacity = 0;
  std::string rest, normalise, aux;
  double limit = 0;
};

std::optional<Settings> settingsOf(BuiltinCall& call, const TensorDatum& gates) {
  const std::int64_t experts = gates.type.shape[2];
  const auto check = [&](std::string_view parameter, std::int64_t value, std::int64_t least, std::int64_t most,
                         std::string_view why) {
    if (call.failed() || (value >= least && value <= most)) return;
    call.sink()
        .emit(call.range(parameter), diag::ValueDoesNotFit,
              "`" + std::string(parameter) + "` of `" + std::string(call.name()) + "`",
              "`" + std::to_string(value) + "`",
              std::to_string(least) + " to " + std::to_string(most) + ", " + std::string(why))
        .label(call.range("gates"), printType(gates.type));
    call.fail();
  };
  Settings settings;
  if (experts == 0) {
    call.mismatch("gates", "a tensor of at least one expert");
    return std::nullopt;
  }
  // Of two choices among one expert there is no second.
  settings.k = call.name() == "route" ? call.integer("k") : std::min<std::int64_t>(2, experts);
  if (call.name() == "route") check("k", settings.k, 1, experts, "the experts,");
  if (call.datum("capacity").is<NoneDatum>()) {
    refuse(call, "capacity", "an expert takes at most `capacity` tokens of a group");
    return std::nullopt;
  }
  settings.capacity = call.integer("capacity");
  check("capacity", settings.capacity, 1, 0x7fffffff, "what 32 bits count,");
  settings.rest = wordOf(call, "rest", {"random", "all", "none", "threshold"});
  settings.normalise = wordOf(call, "normalise", {"before_drop", "after_drop", "none"});
  settings.aux = wordOf(call, "aux", {"paper", "balanced"});
  settings.limit = call.number("scale", 2);
  const bool hasThreshold = call.given("threshold") && !call.datum("threshold").is<NoneDatum>();
  if (!call.failed() && hasThreshold != (settings.rest == "threshold")) {
    call.fail();
    call.sink().emit(call.range("threshold"), diag::ValueDoesNotFit,
                     "`threshold` of `" + std::string(call.name()) + "`",
                     "`" + printDatum(call.datum("threshold")) + "`",
                     hasThreshold ? "nothing without `rest: \"threshold\"`" : "a number for `rest: \"threshold\"`");
  }
  if (hasThreshold) settings.limit = call.number("threshold", 0);
  if (!call.failed() && settings.rest != "random" && call.number("scale", 2) != 2) {
    call.fail();
    call.sink().emit(call.range("scale"), diag::ValueDoesNotFit, "`scale` of `" + std::string(call.name()) + "`",
                     "`" + printDatum(call.datum("scale")) + "`", std::string("nothing without `rest: \"random\"`"));
  }
  refuseOthers(call);
  return call.failed() ? std::nullopt : std::optional(settings);
}

// A tensor with a value per token, or nothing when it is left out.
std::optional<TensorDatum> perToken(BuiltinCall& call, std::string_view parameter, DType dtype, const Type& gates,
                                    std::string_view what) {
  if (!call.given(parameter) || call.datum(parameter).is<NoneDatum>()) return std::nullopt;
  const Type wanted{dtype, {gates.shape[0], gates.shape[1]}};
  const auto* tensor = call.datum(parameter).as<TensorDatum>();
  if (tensor != nullptr && tensor->type == wanted) return *tensor;
  call.mismatch(parameter, "`" + printType(wanted) + "`, " + std::string(what));
  return std::nullopt;
}

// The random numbers of the call. The site is taken even where none are drawn: other sites do not depend on options.
std::optional<TensorDatum> uniformOf(BuiltinCall& call, const Settings& settings, const Type& gates) {
  const std::optional<TensorDatum> given =
      perToken(call, "uniform", DType::F32, gates, "a random number for each token");
  if (call.failed()) return std::nullopt;
  const std::int64_t site = call.context().nextSite(call.range());
  if (given || settings.rest != "random") return given;
  FunctionBuild& build = call.ops().build();
  const std::vector<std::int64_t> shape = {gates.shape[0], gates.shape[1]};
  const ValueId id = build.builder().create(
      OpKind::RandomUniform, {build.step()},
      {{"shape", shape}, {"dtype", DType::F32}, {"site", site}, {"low", 0.0}, {"high", 1.0}}, call.range());
  const Datum drawn = call.ops().make(id, call.range());
  return drawn.isError() ? std::nullopt : std::optional(*drawn.as<TensorDatum>());
}

// Calls of TensorOps one after another: after an error all that follows is silent.
class Chain {
 public:
  explicit Chain(BuiltinCall& call) : ops_(call.ops()), range_(call.range()) {}

  TensorDatum keep(const Datum& datum) {
    if (const auto* tensor = datum.as<TensorDatum>()) return *tensor;
    failed_ = true;
    return {};
  }
  TensorDatum map(std::string_view function, const std::vector<TensorDatum>& operands) {
    return failed_ ? TensorDatum{} : keep(ops_.map(function, operands, range_));
  }
  TensorDatum cast(const TensorDatum& x, DType to) { return failed_ ? x : keep(ops_.cast(x, to, range_)); }
  TensorDatum sum(const TensorDatum& x, const std::vector<std::int64_t>& dims, bool keepDims) {
    return failed_ ? x : keep(ops_.reduce(Reduction::Sum, x, dims, keepDims, range_));
  }
  TensorDatum reshape(const TensorDatum& x, const std::vector<std::int64_t>& shape) {
    return failed_ ? x : keep(ops_.reshape(x, shape, range_));
  }
  TensorDatum number(double value, DType dtype) {
    const auto made = ops_.constant(makeFloat(value), dtype, range_);
    failed_ = failed_ || !made;
    return made.value_or(TensorDatum{});
  }
  TensorDatum count(const TensorDatum& x, const std::vector<std::int64_t>& dims, DType dtype) {
    return failed_ ? x : keep(ops_.count(x, dims, dtype, range_));
  }
  bool failed() const { return failed_; }

 private:
  TensorOps& ops_;
  SourceRange range_;
  bool failed_ = false;
};

// Algorithm 1, line 13: the mean over groups of 1/E times the sum over experts of (share of first choices) x (mean
// gate); "balanced" is E^2 times it, 1 where all is even. Padding counts neither as token nor as gate.
Datum auxLoss(BuiltinCall& call, const Settings& settings, const TensorDatum& gates, const TensorDatum& first,
              const std::optional<TensorDatum>& live) {
  Chain c(call);
  const DType dtype = gates.type.dtype;
  const std::int64_t groups = gates.type.shape[0], tokens = gates.type.shape[1], experts = gates.type.shape[2];
  TensorDatum scores = gates;
  TensorDatum total = c.number(static_cast<double>(tokens), dtype);
  if (live) {
    scores = c.map("where", {c.reshape(*live, {groups, tokens, 1}), gates, c.number(0, dtype)});
    total = c.map("maximum", {c.sum(c.cast(*live, dtype), {1}, true), c.number(1, dtype)});
  }
  const TensorDatum share = c.map("div", {c.cast(first, dtype), total});
  const TensorDatum mean = c.map("div", {c.sum(scores, {1}, false), total});
  const TensorDatum sum = c.sum(c.map("mul", {share, mean}), {0, 1}, false);
  const double e = static_cast<double>(experts);
  const TensorDatum scale = c.number(settings.aux == "paper" ? 1 / e : e, dtype);
  const TensorDatum loss = c.map("div", {c.map("mul", {sum, scale}), c.count(gates, {0}, dtype)});
  return c.failed() ? Datum{} : Datum{loss};
}

const TensorDatum* fieldOf(const RecordDatum& record, std::string_view name) {
  for (const auto& [known, value] : *record.fields) {
    if (known == name) return value.as<TensorDatum>();
  }
  return nullptr;
}

// The route, and its parts that ops read; null after a report.
struct RouteParts {
  TensorDatum expert, slot, weight, source;
};
std::optional<RouteParts> routeOf(BuiltinCall& call) {
  const auto* record = call.datum("route").as<RecordDatum>();
  if (record == nullptr) {
    call.mismatch("route", "what `top2_gating` or `route` gave");
    return std::nullopt;
  }
  return RouteParts{*fieldOf(*record, "expert"), *fieldOf(*record, "slot"), *fieldOf(*record, "weight"),
                    *fieldOf(*record, "source")};
}

}  // namespace

// route and top2_gating
Datum buildRoute(BuiltinCall& call) {
  const TensorDatum gates = call.tensor("gates");
  if (call.failed() || !call.canEmit()) return {};
  const bool isWide = gates.type.dtype == DType::F32 || gates.type.dtype == DType::F64;
  if (!isWide || gates.type.rank() != 3) {
    DiagBuilder builder = call.sink().emit(call.range("gates"), diag::DtypeNotAccepted, std::string(call.name()),
                                           std::string("gates [G, S, E] of f32 or f64"), printType(gates.type));
    if (isFloat(gates.type.dtype) && !isWide) builder.help("`cast(…, wide)` before the softmax: a route is a decision");
    return {};
  }
  const std::optional<Settings> settings = settingsOf(call, gates);
  if (!settings) return {};
  const std::optional<TensorDatum> live = perToken(call, "token_weight", DType::Bool, gates.type,
                                                   "false for padding (weights between 0 and 1 are not supported yet)");
  const std::optional<TensorDatum> uniform = uniformOf(call, *settings, gates.type);
  if (call.failed()) return {};
  std::vector<TensorDatum> operands = {gates};
  if (settings->rest == "random") {
    if (!uniform) return {};
    operands.push_back(*uniform);
  }
  if (live) operands.push_back(*live);
  Attributes attributes{{"k", settings->k},
                        {"capacity", settings->capacity},
                        {"rest", settings->rest},
                        {"normalise", settings->normalise}};
  if (settings->rest == "random") attributes.set("scale", settings->limit);
  if (settings->rest == "threshold") attributes.set("threshold", settings->limit);
  const Datum made = call.ops().createTuple(OpKind::Route, operands, std::move(attributes), call.range());
  if (made.isError()) return {};
  constexpr std::array<const char*, 7> kNames = {"expert", "slot", "weight", "source", "first", "count", "dropped"};
  std::vector<std::pair<std::string, Datum>> fields;
  const std::vector<Datum>& items = *made.as<TupleDatum>()->items;
  for (std::size_t i = 0; i < kNames.size(); ++i) fields.emplace_back(kNames[i], items[i]);
  const Datum loss = auxLoss(call, *settings, gates, *items[4].as<TensorDatum>(), live);
  if (loss.isError()) return {};
  fields.emplace_back("aux_loss", loss);
  return RecordDatum{"route", std::make_shared<const std::vector<std::pair<std::string, Datum>>>(std::move(fields))};
}

Datum buildMoeDispatch(BuiltinCall& call) {
  const TensorDatum x = call.tensor("x");
  const std::optional<RouteParts> route = routeOf(call);
  if (call.failed() || !route || !call.canEmit()) return {};
  const std::vector<std::int64_t>& tokens = route->expert.type.shape;
  const bool fits = x.type.rank() == 3 && x.type.shape[0] == tokens[0] && x.type.shape[1] == tokens[1];
  if (!fits || x.type.dtype == DType::Bool) {
    call.mismatch("x", "numbers [" + std::to_string(tokens[0]) + ", " + std::to_string(tokens[1]) +
                           ", M], the groups and tokens of the route");
    return {};
  }
  return call.ops().create(OpKind::MoeDispatch, {x, route->source, route->expert, route->slot}, {}, call.range());
}

Datum buildMoeCombine(BuiltinCall& call) {
  const TensorDatum y = call.tensor("y");
  const std::optional<RouteParts> route = routeOf(call);
  if (call.failed() || !route || !call.canEmit()) return {};
  const std::vector<std::int64_t>& slots = route->source.type.shape;
  const bool fits =
      y.type.rank() == 4 && y.type.shape[0] == slots[1] && y.type.shape[1] == slots[0] && y.type.shape[2] == slots[2];
  if (!fits || !isFloat(y.type.dtype)) {
    call.mismatch("y", "floats [" + std::to_string(slots[1]) + ", " + std::to_string(slots[0]) + ", " +
                           std::to_string(slots[2]) + ", M], the experts, groups and slots of the route");
    return {};
  }
  Chain c(call);
  const TensorDatum weight = c.cast(route->weight, accumulatorOf(y.type.dtype));
  if (c.failed()) return {};
  const Datum sum =
      call.ops().create(OpKind::MoeCombine, {y, route->source, route->expert, route->slot, weight}, {}, call.range());
  return sum.isError() ? Datum{} : call.ops().cast(*sum.as<TensorDatum>(), y.type.dtype, call.range());
}

}  // namespace gshard::sema
