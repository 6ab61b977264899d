// Properties of the split program, on simulated devices: every factor split, every subset of operands pending.
#include "ir/text.h"
#include "ir/verifier.h"
#include "properties.h"

namespace gshard::conformance {

namespace {
bool hasFactor(const std::vector<int>& factors, int factor) {
  for (const int each : factors) {
    if (each == factor) return true;
  }
  return false;
}

bool hasFactor(const OpFactors::DimFactors& dims, int factor) {
  for (const std::vector<int>& each : dims) {
    if (hasFactor(each, factor)) return true;
  }
  return false;
}

void splitValue(Value& value, const OpFactors::DimFactors& dims, int factor, const std::vector<AxisRef>& axes) {
  if (!value.sharding) value.sharding = Sharding::replicated(value.type.rank());
  for (std::size_t dim = 0; dim < dims.size(); ++dim) {
    std::vector<AxisRef>& mine = value.sharding->dims[dim];
    if (hasFactor(dims[dim], factor)) mine.insert(mine.end(), axes.begin(), axes.end());
  }
}

void addPartial(Value& value, const std::vector<AxisRef>& axes, Reduction reduction) {
  for (const AxisRef& axis : axes) value.sharding->partial.push_back({axis, reduction});
}

// Splits one factor over some axes, in all tensors that have it.
void splitFactor(Program& program, const OpFactors& factors, int number, const std::vector<AxisRef>& axes) {
  Function& function = program.module.functions.front();
  const Op& op = function.ops.back();
  const Factor& factor = factors.factors[static_cast<std::size_t>(number)];
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    splitValue(function.value(op.operands[i]), factors.operands[i], number, axes);
    const bool takesShare = factor.othersPartial && !hasFactor(factors.operands[i], number);
    if (takesShare) addPartial(function.value(op.operands[i]), axes, factor.reduction);
  }
  const bool leavesPending = factor.kind == FactorKind::Reduce || factor.kind == FactorKind::Lookup;
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    splitValue(function.value(op.results[i]), factors.results[i], number, axes);
    if (leavesPending && !hasFactor(factors.results[i], number))
      addPartial(function.value(op.results[i]), axes, factor.reduction);
  }
}

bool mayBeSplit(const Factor& factor) {
  switch (factor.kind) {
    case FactorKind::Pass:
    case FactorKind::Reduce:
    case FactorKind::Lookup:
      return true;
    case FactorKind::Window:
    case FactorKind::Whole:
    case FactorKind::Scan:
    case FactorKind::Candidates:
      return false;
  }
  return false;
}

void canonicalise(Program& program) {
  for (Value& value : program.module.functions.front().values) {
    if (value.sharding) value.sharding = canonical(program.module.mesh, *value.sharding);
  }
}

// A factor is minor when it is not the first one of some dim: on its own it cannot be split.
bool isMinor(const OpFactors& factors, int number) {
  const auto minorIn = [&](const std::vector<OpFactors::DimFactors>& tensors) {
    for (const OpFactors::DimFactors& dims : tensors) {
      for (const std::vector<int>& each : dims) {
        if (!each.empty() && each.front() != number && hasFactor(each, number)) return true;
      }
    }
    return false;
  };
  return minorIn(factors.operands) || minorIn(factors.results);
}

// One assignment of axes to factors: the rule accepts it, and the result on devices is that of one device.
void checkSplitProgram(const Example& example, const Program& program, const std::string& what, bool mustHold,
                       bool maySkip, Faults& faults) {
  const std::optional<std::string> refusal = verify(program.module, Form::Spmd);
  // Results of this test function may be pending; the op itself is what is asked about.
  const std::optional<std::string> opRefusal = verifySpmdOp(program.view());
  if (opRefusal) {
    if (mustHold && !maySkip) faults.push_back(what + " is refused: " + *opRefusal);
    return;
  }
  if (!mustHold) {
    faults.push_back(what + " is accepted, but the factor is not to be split");
    return;
  }
  if (refusal && refusal->find("is partial") == std::string::npos) faults.push_back(what + ": " + *refusal);
  const std::vector<Tensor> inputs = exampleInputs(example, program.function());
  EvalOptions global;
  global.global = true;
  const EvalResult expected = evaluate(program.module, program.function(), inputs, global);
  const EvalResult actual = evaluate(program.module, program.function(), inputs);
  for (std::size_t i = 0; i < expected.results.size(); ++i) {
    if (const auto fault = difference(actual.results[i], expected.results[i], example.tolerance))
      faults.push_back(what + ": " + *fault);
  }
}
}  // namespace

static Faults checkSplitOf(const Example& example, const Program& base) {
  Faults faults;
  const OpFactors factors = factorsOf(base.view());
  std::vector<AxisRef> all;
  for (std::size_t i = 0; i < base.module.mesh.axes.size(); ++i)
    all.push_back(wholeAxis(base.module.mesh, static_cast<int>(i)));
  const int count = static_cast<int>(factors.factors.size());
  const auto withReplicated = [&]() {
    Program program = base;
    for (Value& value : program.module.functions.front().values)
      value.sharding = Sharding::replicated(value.type.rank());
    return program;
  };
  checkSplitProgram(example, withReplicated(), "nothing split", true, false, faults);
  for (int f = 0; f < count; ++f) {
    const Factor& factor = factors.factors[static_cast<std::size_t>(f)];
    Program program = withReplicated();
    splitFactor(program, factors, f, all);
    canonicalise(program);
    // A dim of several factors whose tiles do not fall on one of them, or a letter read twice, is refused with reason.
    const bool isComposite = isMinor(factors, f) || std::string_view(*opDef(base.op().kind).name) == "reshape";
    if (checkSharding(program.module.mesh, program.function().type(program.op().results[0]),
                      *program.function().value(program.op().results[0]).sharding))
      continue;
    bool legal = true;
    for (const ValueId id : program.op().operands) {
      legal = legal &&
              !checkSharding(program.module.mesh, program.function().type(id), *program.function().value(id).sharding);
    }
    if (legal) checkSplitProgram(example, program, "factor " + factor.letter, mayBeSplit(factor), isComposite, faults);
    for (int g = 0; all.size() == 2 && g < count; ++g) {
      if (g == f || !mayBeSplit(factor) || !mayBeSplit(factors.factors[static_cast<std::size_t>(g)])) continue;
      Program two = withReplicated();
      splitFactor(two, factors, f, {all[0]});
      splitFactor(two, factors, g, {all[1]});
      canonicalise(two);
      const bool minor = isComposite || isMinor(factors, g);
      checkSplitProgram(example, two,
                        "factors " + factor.letter + " and " + factors.factors[static_cast<std::size_t>(g)].letter,
                        true, minor, faults);
    }
  }
  return faults;
}

Faults checkSplit(const Example& example, const std::string& mesh) {
  return checkSplitOf(example, exampleProgram(example, mesh));
}

Faults checkDtypes(const Example& example, const std::string& mesh) {
  Faults faults;
  for (const Retyped& other : inEveryDtype(example, mesh)) {
    Example with = example;
    with.tolerance = other.tolerance;
    if (const auto fault = verify(other.program.module, Form::Global)) faults.push_back(other.what + ": " + *fault);
    for (const std::string& fault : checkSplitOf(with, other.program)) faults.push_back(other.what + ": " + fault);
  }
  return faults;
}

namespace {
bool fits(Reduction reduction, DType dtype) {
  const bool isLogical = reduction == Reduction::Any || reduction == Reduction::All;
  return isLogical == (dtype == DType::Bool);
}

// The op with operands of `subset` made pending by reducing shares over a split dim: real shares, different on each
// device.
Program partialProgram(const Program& base, unsigned subset, Reduction reduction,
                       std::optional<Reduction> resultReduction) {
  Program program;
  program.module.mesh = base.module.mesh;
  const AxisRef axis = wholeAxis(base.module.mesh, 0);
  const Function& from = base.function();
  Function& function = program.module.functions.emplace_back();
  function.name = "f";
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < base.op().operands.size(); ++i) {
    Value value = from.value(base.op().operands[i]);
    value.sharding = Sharding::replicated(value.type.rank());
    const bool isPending = (subset >> i & 1) != 0;
    const std::string name = "x" + std::to_string(i);
    if (!isPending) {
      operands.push_back(function.addValue(value));
      function.arguments.push_back({.kind = ArgumentKind::Input, .name = name, .value = operands.back()});
      continue;
    }
    Value shares = value;
    shares.type.shape.insert(shares.type.shape.begin(), axis.size);
    shares.sharding->dims.insert(shares.sharding->dims.begin(), std::vector<AxisRef>{axis});
    const ValueId argument = function.addValue(shares);
    function.arguments.push_back({.kind = ArgumentKind::Input, .name = name, .value = argument});
    value.sharding->partial.push_back({axis, reduction});
    operands.push_back(function.addValue(value));
    Op reduce{
        .kind = OpKind::Reduce, .operands = {argument}, .results = {operands.back()}, .attributes = {}, .range = {}};
    reduce.attributes = {{"fn", std::string(reductionName(reduction))}, {"dims", std::vector<std::int64_t>{0}}};
    function.ops.push_back(std::move(reduce));
  }
  Op op = base.op();
  op.operands = operands;
  op.results.clear();
  for (const ValueId id : base.op().results) {
    Value value = from.value(id);
    value.sharding = Sharding::replicated(value.type.rank());
    if (resultReduction) value.sharding->partial.push_back({axis, *resultReduction});
    op.results.push_back(function.addValue(value));
    function.results.push_back({.kind = ResultKind::Output, .name = "y", .value = op.results.back()});
  }
  function.ops.push_back(std::move(op));
  return program;
}

// Indices as the example gives them, if it gives several: others may all lie outside, where no fault would be seen.
ValueRange indexRange(const Tensor& given) {
  const auto [low, high] = std::minmax_element(given.ints.begin(), given.ints.end());
  if (low == high || *low == *high) return {1, 7};
  return {static_cast<double>(*low), static_cast<double>(*high)};
}

// Whether the program on devices equals it as a whole, for values of one seed; nothing when it cannot run at all.
std::optional<bool> agreesOnce(const Example& example, const Program& program, double tolerance, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  const std::vector<Tensor> given = exampleInputs(example, exampleProgram(example).function());
  for (const Argument& argument : program.function().arguments) {
    const Type& type = program.function().type(argument.value);
    const bool isIndex = type.dtype == DType::I32 || type.dtype == DType::I64;
    const ValueRange range = example.given.empty() ? example.values
                             : isIndex             ? indexRange(given[inputs.size()])
                                                   : ValueRange{0.5, 3};
    inputs.push_back(drawTensor(type, type.dtype == DType::Bool ? ValueRange{0, 1} : range, seed * 31 + inputs.size()));
  }
  EvalOptions global;
  global.global = true;
  const EvalResult expected = evaluate(program.module, program.function(), inputs, global);
  const EvalResult actual = evaluate(program.module, program.function(), inputs);
  for (std::size_t i = 0; i < expected.results.size(); ++i) {
    if (!fits(program.function().value(program.op().results[i]).sharding->partial[0].reduction,
              expected.results[i].type.dtype))
      return std::nullopt;
    if (difference(actual.results[i], expected.results[i], tolerance)) return false;
  }
  return true;
}
std::optional<bool> agrees(const Example& example, const Program& program, double tolerance) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const std::optional<bool> same = agreesOnce(example, program, tolerance, seed);
    if (same != true) return same;
  }
  return true;
}
}  // namespace

namespace {
// Operands that are there for the gradient alone: whatever they hold, the result is the same.
unsigned unreadOperands(const Example& example, const Program& base) {
  EvalOptions global;
  global.global = true;
  const std::vector<Tensor> inputs = exampleInputs(example, base.function());
  const EvalResult expected = evaluate(base.module, base.function(), inputs, global);
  unsigned unread = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    bool isRead = false;
    for (std::uint64_t seed = 1; seed <= 5 && !isRead; ++seed) {
      std::vector<Tensor> others = inputs;
      others[i] = drawTensor(inputs[i].type, {0, 1}, seed);
      const EvalResult actual = evaluate(base.module, base.function(), others, global);
      for (std::size_t r = 0; r < expected.results.size(); ++r)
        isRead = isRead || difference(actual.results[r], expected.results[r], 0).has_value();
    }
    if (!isRead) unread |= 1u << i;
  }
  return unread;
}
}  // namespace

Faults checkPartial(const Example& example, const std::string& mesh) {
  Faults faults;
  const Program base = exampleProgram(example, mesh);
  const std::size_t count = base.op().operands.size();
  const unsigned unread = unreadOperands(example, base);
  for (unsigned subset = 1; subset < 1u << count; ++subset) {
    if ((subset & unread) != 0) continue;
    for (const Reduction reduction :
         {Reduction::Sum, Reduction::Prod, Reduction::Max, Reduction::Min, Reduction::Any, Reduction::All}) {
      std::vector<std::optional<Reduction>> pending(count);
      bool possible = true, anyEmpty = false;
      for (std::size_t i = 0; i < count; ++i) {
        const Type& type = base.view().operandType(i);
        const bool isPending = (subset >> i & 1) != 0;
        if (isPending) pending[i] = reduction;
        possible = possible && (!isPending || (fits(reduction, type.dtype) && accumulatorOf(type.dtype) == type.dtype));
        anyEmpty = anyEmpty || type.elements() == 0;
      }
      if (!possible) continue;
      const std::optional<Reduction> accepted = acceptPartial(base.view(), pending);
      const std::string what = std::string(reductionName(reduction)) + " pending in operands " + std::to_string(subset);
      const double tolerance = std::max(example.tolerance, 1e-5);
      const Program program = partialProgram(base, subset, reduction, accepted.value_or(Reduction::Sum));
      if (accepted) {
        if (const auto refusal = verifySpmdOp(program.view()))
          faults.push_back(what + " is accepted, but the verifier says: " + *refusal);
        const std::optional<bool> same = agrees(example, program, tolerance);
        if (same != true) faults.push_back(what + " is accepted, but gives another result");
        continue;
      }
      const Type& result = program.view().resultType();
      const bool isNarrowing = base.view().hasAttr("dtype") &&
                               byteSize(result.dtype) < byteSize(base.view().operandType(0).dtype) &&
                               isFloat(result.dtype);
      if (reduction != Reduction::Sum || result.dtype == DType::Bool || anyEmpty || isNarrowing ||
          result.elements() == 0)
        continue;
      if (agrees(example, program, tolerance) == true)
        faults.push_back(what + " is refused, but the result would be right");
    }
  }
  return faults;
}

}  // namespace gshard::conformance
