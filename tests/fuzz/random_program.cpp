// The generator of random programs. Every op is tried with operands that fit; bounds on magnitudes are tracked, so that
// products stay exact in f64. Over 400 lines, since all kinds of ops pick from one pool of values.
#include "tests/fuzz/random_program.h"

#include <algorithm>

#include "ir/autodiff.h"
#include "ir/op_table.h"

namespace gshard::fuzz {

namespace {

constexpr double kLimit = 1e5;  // of magnitudes: products and sums of a few such are exact in f64

class Generator {
 public:
  explicit Generator(const ProgramOptions& options)
      : options_(options), random_(options.seed), builder_(module(), function(), sink_) {}

  RandomProgram run() {
    const std::int64_t inputs = 2 + below(3);
    for (std::int64_t i = 0; i < inputs; ++i) addInput("x" + std::to_string(i), {DType::F64, shape()});
    addInput("i", {DType::I32, {1 + below(6)}});
    for (int made = 0, tries = 0; made < options_.operations && tries < 400; ++tries) made += addOp() ? 1 : 0;
    addResults();
    return std::move(program_);
  }

 private:
  Module& module() {
    if (program_.module.functions.empty()) {
      program_.module.name = "random";
      const char* names[] = {"a", "b", "c"};
      for (std::size_t i = 0; i < options_.mesh.size(); ++i)
        program_.module.mesh.axes.push_back({names[i], options_.mesh[i]});
      program_.module.meshDeclared = true;
      program_.module.functions.emplace_back();
      program_.module.functions.front().name = "f";
    }
    return program_.module;
  }
  Function& function() { return module().functions.front(); }

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }

  std::vector<std::int64_t> shape() {
    static constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<std::int64_t> result(static_cast<std::size_t>(1 + below(3)));
    for (std::int64_t& size : result) size = kSizes[below(8)];
    return result;
  }

  std::optional<Annotation> annotation(const Type& type, int percent) {
    if (!chance(percent) || type.isScalar()) return std::nullopt;
    Annotation result;
    result.sharding = Sharding::replicated(type.rank());
    result.open = chance(40);
    std::vector<int> axes;
    for (std::size_t i = 0; i < options_.mesh.size(); ++i) axes.push_back(static_cast<int>(i));
    std::shuffle(axes.begin(), axes.end(), random_);
    for (const int axis : axes) {
      if (!chance(75)) continue;
      auto& dim = result.sharding.dims[static_cast<std::size_t>(below(type.rank()))];
      dim.push_back(wholeAxis(module().mesh, axis));
    }
    result.sharding = canonical(module().mesh, result.sharding);  // an axis of size 1 splits nothing
    return result;
  }

  void addInput(const std::string& name, const Type& type) {
    const ValueId value = function().addValue({.type = type, .name = name});
    Argument argument;
    argument.name = name;
    argument.value = value;
    argument.annotation = annotation(type, 70);
    function().arguments.push_back(argument);
    Tensor tensor = Tensor::zeros(type);
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      tensor.setNumber(i, static_cast<double>(type.dtype == DType::I32 ? below(2) : below(7) - 3));
    }
    program_.arguments.push_back(std::move(tensor));
    remember(value, 3);
  }

  void remember(ValueId value, double bound) {
    values_.push_back(value);
    bounds_.push_back(bound);
  }

  const Type& type(ValueId value) { return function().type(value); }

  // A random float value; of all so far, or of the last few, so that chains form.
  std::size_t pick() {
    for (;;) {
      const std::int64_t count = static_cast<std::int64_t>(values_.size());
      const std::int64_t recent = chance(60) ? std::min<std::int64_t>(count, 4) : count;
      const auto at = static_cast<std::size_t>(count - 1 - below(recent));
      if (type(values_[at]).dtype == DType::F64) return at;
      if (recent == count || chance(10)) continue;
    }
  }
  std::optional<std::size_t> pickIndices() {
    for (std::size_t tries = 0; tries < 20; ++tries) {
      const auto at = static_cast<std::size_t>(below(static_cast<std::int64_t>(values_.size())));
      if (type(values_[at]).dtype == DType::I32) return at;
    }
    return std::nullopt;
  }

  bool keep(ValueId value, double bound) {
    if (!value.known()) return false;
    if (const std::optional<Annotation> wanted = annotation(type(value), 15)) {
      value = builder_.create(OpKind::Annotate, {value}, {{"annotation", *wanted}}, {});
    }
    remember(value, bound);
    return true;
  }

  bool addOp() {
    switch (below(19)) {
      case 0:
        return binary("add", pick(), pick(), false);
      case 1:
        return binary("mul", pick(), pick(), true);
      case 2:
        return binary("maximum", pick(), pick(), false);
      case 3:
        return unary();
      case 4:
      case 5:
        return contraction();
      case 6:
        return reduction();
      case 7:
        return transposition();
      case 8:
        return reshaping();
      case 9:
        return slicing();
      case 10:
        return padding();
      case 11:
        return concatenation();
      case 12:
        return reversal();
      case 13:
        return gathering();
      case 14:
        return chance(50) ? choosing() : scattering();
      case 15:
        return rolling();
      case 16:
        return runningSum();
      case 17:
        return window();
      case 18:
        return sorting();
      default:
        return false;
    }
  }

  bool binary(const char* fn, std::size_t a, std::size_t b, bool product) {
    const double bound = product ? bounds_[a] * bounds_[b] : bounds_[a] + bounds_[b];
    if (bound > kLimit) return false;
    ValueId right = values_[b];
    if (!broadcastable(type(values_[a]), type(right))) {
      if (chance(50)) return false;
      right = builder_.scalar(DType::F64, static_cast<double>(below(5) - 2), {});
    }
    return keep(builder_.map(fn, {values_[a], right}, {}), bound);
  }

  static bool broadcastable(const Type& a, const Type& b) {
    for (std::size_t i = 0; i < std::min(a.shape.size(), b.shape.size()); ++i) {
      const std::int64_t x = a.shape[a.shape.size() - 1 - i], y = b.shape[b.shape.size() - 1 - i];
      if (x != y && x != 1 && y != 1) return false;
    }
    return true;
  }

  bool unary() {
    const std::size_t x = pick();
    const char* fns[] = {"neg", "relu", "abs"};
    return keep(builder_.map(fns[below(3)], {values_[x]}, {}), bounds_[x]);
  }

  // Letters of the second operand are taken over from the first where sizes agree; some of them are summed.
  bool contraction() {
    const std::size_t a = pick(), b = pick();
    const Type x = type(values_[a]), y = type(values_[b]);
    std::string left, right, result;
    double terms = 1;
    for (std::size_t i = 0; i < x.shape.size(); ++i) left += static_cast<char>('a' + i);
    std::vector<bool> taken(left.size(), false);
    for (std::size_t i = 0; i < y.shape.size(); ++i) {
      char letter = static_cast<char>('m' + i);
      for (std::size_t j = 0; j < left.size(); ++j) {
        if (!taken[j] && x.shape[j] == y.shape[i] && chance(80)) {
          letter = left[j];
          taken[j] = true;
          break;
        }
      }
      right += letter;
    }
    const auto consider = [&](const std::string& letters, const Type& of) {
      for (std::size_t i = 0; i < letters.size(); ++i) {
        if (result.find(letters[i]) != std::string::npos) continue;
        const bool shared = left.find(letters[i]) != std::string::npos && right.find(letters[i]) != std::string::npos;
        if (chance(shared ? 30 : 85))
          result += letters[i];
        else
          terms *= static_cast<double>(of.shape[i]);
      }
    };
    consider(left, x);
    consider(right, y);
    if (result.size() > 3 || bounds_[a] * bounds_[b] * terms * 8 > kLimit) return false;
    if (chance(30)) std::shuffle(result.begin(), result.end(), random_);
    return keep(builder_.contract(left + "," + right + "->" + result, {values_[a], values_[b]}, {}),
                bounds_[a] * bounds_[b] * terms * 8);
  }

  bool reduction() {
    const std::size_t x = pick();
    std::vector<std::int64_t> dims;
    double terms = 1;
    for (std::int64_t dim = 0; dim < type(values_[x]).rank(); ++dim) {
      if (!chance(50)) continue;
      dims.push_back(dim);
      terms *= static_cast<double>(type(values_[x]).shape[static_cast<std::size_t>(dim)]);
    }
    if (dims.empty()) return false;
    const Reduction fn = chance(60) ? Reduction::Sum : chance(50) ? Reduction::Max : Reduction::Min;
    if (bounds_[x] * terms > kLimit) return false;
    return keep(builder_.reduce(fn, values_[x], dims, {}), bounds_[x] * (fn == Reduction::Sum ? terms : 1));
  }

  bool transposition() {
    const std::size_t x = pick();
    std::vector<std::int64_t> order;
    for (std::int64_t dim = 0; dim < type(values_[x]).rank(); ++dim) order.push_back(dim);
    if (order.size() < 2) return false;
    std::shuffle(order.begin(), order.end(), random_);
    return keep(builder_.transpose(values_[x], order, {}), bounds_[x]);
  }

  bool reshaping() {
    const std::size_t x = pick();
    std::int64_t left = type(values_[x]).elements();
    std::vector<std::int64_t> to;
    while (left > 1 && to.size() < 2 && !chance(25)) {
      std::vector<std::int64_t> divisors;
      for (std::int64_t d = 1; d <= left; ++d) {
        if (left % d == 0) divisors.push_back(d);
      }
      to.push_back(divisors[static_cast<std::size_t>(below(static_cast<std::int64_t>(divisors.size())))]);
      left /= to.back();
    }
    to.push_back(left);
    return keep(builder_.reshape(values_[x], to, {}), bounds_[x]);
  }

  bool slicing() {
    const std::size_t x = pick();
    std::vector<std::int64_t> start, limit, step;
    for (const std::int64_t size : type(values_[x]).shape) {
      const bool whole = chance(40);
      start.push_back(whole ? 0 : below(size));
      limit.push_back(whole ? size : start.back() + 1 + below(size - start.back()));
      step.push_back(chance(70) ? 1 : 1 + below(3));
    }
    return keep(builder_.create(OpKind::Slice, {values_[x]}, {{"start", start}, {"limit", limit}, {"step", step}}, {}),
                bounds_[x]);
  }

  bool padding() {
    const std::size_t x = pick();
    std::vector<std::int64_t> low, high, interior;
    for (const std::int64_t size : type(values_[x]).shape) {
      low.push_back(chance(50) ? 0 : below(3) - (size > 2 ? 1 : 0));
      high.push_back(chance(50) ? 0 : below(3));
      interior.push_back(chance(75) ? 0 : 1);
    }
    const ValueId value = builder_.scalar(DType::F64, chance(60) ? 0 : 2, {});
    return keep(
        builder_.create(OpKind::Pad, {values_[x], value}, {{"low", low}, {"high", high}, {"interior", interior}}, {}),
        std::max(bounds_[x], 2.0));
  }

  bool concatenation() {
    const std::size_t a = pick(), b = pick();
    Type x = type(values_[a]);
    const Type y = type(values_[b]);
    if (x.rank() != y.rank() || x.isScalar()) return false;
    std::int64_t dim = -1;
    for (std::int64_t i = 0; i < x.rank(); ++i) {
      if (x.shape[static_cast<std::size_t>(i)] == y.shape[static_cast<std::size_t>(i)]) continue;
      if (dim >= 0) return false;
      dim = i;
    }
    if (dim < 0) dim = below(x.rank());
    return keep(builder_.create(OpKind::Concat, {values_[a], values_[b]}, {{"dim", dim}}, {}),
                std::max(bounds_[a], bounds_[b]));
  }

  bool reversal() {
    const std::size_t x = pick();
    std::vector<std::int64_t> dims;
    for (std::int64_t dim = 0; dim < type(values_[x]).rank(); ++dim) {
      if (chance(60)) dims.push_back(dim);
    }
    return keep(builder_.create(OpKind::Reverse, {values_[x]}, {{"dims", dims}}, {}), bounds_[x]);
  }

  bool gathering() {
    const std::size_t x = pick();
    const std::optional<std::size_t> index = pickIndices();
    if (!index || type(values_[x]).isScalar()) return false;
    std::int64_t axis = below(type(values_[x]).rank()), batch = 0;
    const Type i = type(values_[*index]);
    if (axis > 0 && i.rank() > 0 && i.shape[0] == type(values_[x]).shape[0]) batch = 1;
    if (type(values_[x]).shape[static_cast<std::size_t>(axis)] <= indexBound_) return false;
    if (type(values_[x]).rank() - 1 + i.rank() - batch > 4) return false;
    return keep(builder_.create(OpKind::Take, {values_[x], values_[*index]}, {{"axis", axis}, {"batch", batch}}, {}),
                bounds_[x]);
  }

  bool scattering() {
    const std::size_t x = pick(), u = pick();
    const std::optional<std::size_t> index = pickIndices();
    const Type to = type(values_[x]), updates = type(values_[u]);
    if (!index || to.isScalar() || type(values_[*index]).rank() != 1 || updates.rank() != to.rank()) return false;
    Type needed = to;
    needed.shape[0] = type(values_[*index]).shape[0];
    if (!(needed == updates) || to.shape[0] <= indexBound_) return false;
    const double bound = bounds_[x] + bounds_[u] * static_cast<double>(needed.shape[0]);
    if (bound > kLimit) return false;
    return keep(builder_.create(OpKind::ScatterAdd, {values_[x], values_[*index], values_[u]},
                                {{"axis", std::int64_t{0}}, {"batch", std::int64_t{0}}}, {}),
                bound);
  }

  bool choosing() {
    const std::size_t x = pick();
    if (type(values_[x]).isScalar()) return false;
    const std::int64_t axis = below(type(values_[x]).rank());
    // Results are indices beyond the bound of `gathering`: they are handed out through a cast.
    const ValueId best =
        builder_.create(chance(50) ? OpKind::Argmax : OpKind::Argmin, {values_[x]}, {{"axis", axis}}, {});
    if (!best.known()) return false;
    return keep(builder_.cast(best, DType::F64, {}), 8);
  }

  std::int64_t sizeOf(ValueId value, std::int64_t dim) { return type(value).shape[static_cast<std::size_t>(dim)]; }

  bool rolling() {
    const std::size_t x = pick();
    if (type(values_[x]).isScalar()) return false;
    const std::int64_t dim = below(type(values_[x]).rank());
    const ValueId rolled =
        builder_.create(OpKind::Roll, {values_[x]}, {{"dim", dim}, {"shift", 1 + below(4) - 2 * below(4)}}, {});
    return keep(rolled, bounds_[x]);
  }

  bool runningSum() {
    const std::size_t x = pick();
    if (type(values_[x]).isScalar()) return false;
    const std::int64_t axis = below(type(values_[x]).rank());
    const double bound = bounds_[x] * static_cast<double>(sizeOf(values_[x], axis));
    if (bound > kLimit) return false;
    const ValueId sums = builder_.create(OpKind::Cumsum, {values_[x]},
                                         {{"axis", axis}, {"reverse", chance(50)}, {"exclusive", chance(30)}}, {});
    return keep(sums, bound);
  }

  // A window that begins at 0 or 1 in some dims: read, or written into x.
  bool window() {
    const std::size_t x = pick();
    const std::optional<std::size_t> index = pickIndices();
    if (!index || type(values_[x]).isScalar()) return false;
    const ValueId zero = builder_.scalar(DType::I32, 0, {});
    const ValueId start = builder_.reduce(Reduction::Max, values_[*index], {0}, {});
    std::vector<std::int64_t> size;
    std::vector<ValueId> starts;
    for (const std::int64_t whole : type(values_[x]).shape) {
      const bool moves = whole > 1 && chance(60);
      starts.push_back(moves ? start : zero);
      size.push_back(moves ? 1 + below(whole - 1) : whole);
    }
    std::vector<ValueId> operands{values_[x]};
    operands.insert(operands.end(), starts.begin(), starts.end());
    const ValueId part = builder_.create(OpKind::DynamicSlice, operands, {{"size", size}}, {});
    if (chance(50) || !part.known()) return keep(part, bounds_[x]);
    const std::size_t target = pick();
    if (!(type(values_[target]) == type(values_[x]))) return keep(part, bounds_[x]);
    operands.front() = values_[target];
    operands.insert(operands.begin() + 1, part);
    return keep(builder_.create(OpKind::DynamicUpdate, operands, {}, {}), std::max(bounds_[x], bounds_[target]));
  }

  bool sorting() {
    const std::size_t x = pick();
    if (type(values_[x]).isScalar()) return false;
    const std::int64_t axis = below(type(values_[x]).rank());
    if (chance(40)) {
      const std::vector<ValueId> made = builder_.createAll(
          OpKind::TopK, {values_[x]}, {{"k", 1 + below(sizeOf(values_[x], axis))}, {"axis", axis}}, {});
      if (made.empty()) return false;
      if (chance(30)) return keep(builder_.cast(made[1], DType::F64, {}), 8);
      return keep(made[0], bounds_[x]);
    }
    const Attributes attributes{{"axis", axis}, {"descending", chance(50)}};
    if (chance(70)) return keep(builder_.create(OpKind::Sort, {values_[x]}, attributes, {}), bounds_[x]);
    const ValueId places = builder_.create(OpKind::Argsort, {values_[x]}, attributes, {});
    return places.known() && keep(builder_.cast(places, DType::F64, {}), 8);
  }

  void addResults() {
    if (options_.kind != ProgramKind::Forward) {
      addGradients();
      return;
    }
    const std::size_t count = std::min<std::size_t>(values_.size(), 4);
    for (std::size_t i = 0; i < count; ++i) {
      addResult(values_[values_.size() - 1 - i], "result." + std::to_string(i));
    }
  }

  void addResult(ValueId value, const std::string& name) {
    Result result;
    result.name = name;
    result.value = value;
    function().results.push_back(result);
  }

  void addGradients() {
    ValueId total;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (type(values_[i]).dtype != DType::F64) continue;
      std::vector<std::int64_t> dims;
      for (std::int64_t dim = 0; dim < type(values_[i]).rank(); ++dim) dims.push_back(dim);
      ValueId part = dims.empty() ? values_[i] : builder_.reduce(Reduction::Sum, values_[i], dims, {});
      total = total.known() ? builder_.map("add", {total, part}, {}) : part;
    }
    std::vector<ValueId> inputs;
    for (const Argument& argument : function().arguments) {
      if (type(argument.value).dtype == DType::F64) inputs.push_back(argument.value);
    }
    addResult(total, "loss");
    const std::vector<ValueId> by = gradients(builder_, total, inputs);
    if (options_.kind == ProgramKind::Training) {
      addUpdates(inputs, by);
      return;
    }
    for (std::size_t i = 0; i < by.size(); ++i) {
      if (by[i].known()) addResult(by[i], "gradient." + std::to_string(i));
    }
  }

  // The first inputs are parameters, each with a state: m = m + g, w = w - 2 m.
  void addUpdates(const std::vector<ValueId>& inputs, const std::vector<ValueId>& by) {
    module().functions.front().kind = FunctionKind::Train;
    builder_.setPhase(Phase::Update);
    for (std::size_t i = 0; i < inputs.size() && i < 2; ++i) {
      if (!by[i].known()) continue;
      const Type type = this->type(inputs[i]);
      const auto index = static_cast<std::int64_t>(module().parameters.size());
      const std::string name = "w" + std::to_string(index);
      for (Argument& argument : function().arguments) {
        if (!(argument.value == inputs[i])) continue;
        argument.kind = ArgumentKind::Parameter;
        argument.index = index;
        argument.name = name;
        Parameter parameter{.name = name, .type = type, .annotation = argument.annotation, .trained = true};
        argument.annotation.reset();
        if (parameter.annotation) parameter.annotation->stored = !parameter.annotation->open && chance(30);
        module().parameters.push_back(parameter);
      }
      State state{.name = name + ".m", .type = type, .annotation = annotation(type, 50), .parameter = index};
      Argument kept;
      kept.kind = ArgumentKind::State;
      kept.index = index;
      kept.name = state.name;
      kept.value = function().addValue({.type = type, .name = "m"});
      function().arguments.push_back(kept);
      program_.arguments.push_back(Tensor::filled(type, 1));
      module().states.push_back(state);
      const ValueId m = builder_.map("add", {kept.value, by[i]}, {});
      const ValueId step = builder_.map("mul", {builder_.scalar(DType::F64, 2, {}), m}, {});
      const ValueId w = builder_.map("sub", {inputs[i], step}, {});
      function().results.push_back({ResultKind::Parameter, name, index, w});
      function().results.push_back({ResultKind::State, state.name, index, m});
    }
  }

  static constexpr std::int64_t indexBound_ = 1;  // indices are 0 or 1

  const ProgramOptions& options_;
  std::mt19937_64 random_;
  RandomProgram program_;
  CollectingSink sink_;
  Builder builder_;
  std::vector<ValueId> values_;
  std::vector<double> bounds_;
};

}  // namespace

RandomProgram makeProgram(const ProgramOptions& options) {
  return Generator(options).run();
}

}  // namespace gshard::fuzz
