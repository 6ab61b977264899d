// The generator of random .gsd programs. Every op is tried with operands that fit; bounds on magnitudes are tracked, so
// that every value, products included, is an integer that the dtype holds exactly. Statements are text, so a new
// builtin is one function here. Over 400 lines, since all kinds of statements pick from one pool of values.
#include <algorithm>
#include <optional>
#include <random>

#include "tests/fuzz/gsd_program.h"

namespace gshard::fuzz {

namespace {

std::string listOf(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

class GsdGenerator {
 public:
  GsdGenerator(std::uint64_t seed, GsdKind kind, const std::vector<GsdAxis>& mesh) : random_(seed) {
    program_.seed = seed;
    program_.kind = kind;
    program_.mesh = mesh;
    for (std::int64_t& size : sizes_) size = 2 + below(7);
    if (kind == GsdKind::Forward) {
      dtype_ = chance(50) ? DType::F32 : chance(60) ? DType::F64 : DType::I32;
    }
    // Gradients are products of what was multiplied: exact in f64 as long as values are small.
    limit_ = 1e5;
  }

  GsdProgram run() {
    const std::int64_t inputs = 2 + below(3);
    for (std::int64_t i = 0; i < inputs; ++i) addInput({dtype_, shape()}, -3, 3);
    const std::int64_t indices = below(3);
    for (std::int64_t i = 0; i < indices; ++i) addInput({DType::I32, {1 + below(6)}}, 0, below(8), true);
    const std::int64_t wanted = 2 + below(8);
    for (std::int64_t made = 0, tries = 0; made < wanted && tries < 400; ++tries) made += addStatement() ? 1 : 0;
    addOutputs();
    return withoutUnused(program_);
  }

 private:
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  bool isFloatProgram() const { return isFloat(dtype_); }

  // Sizes repeat within a program, so that tensors meet: products share letters, sums broadcast.
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> result(static_cast<std::size_t>(1 + below(3)));
    for (std::int64_t& size : result) size = chance(85) ? sizes_[static_cast<std::size_t>(below(3))] : 1 + below(8);
    return result;
  }

  // ---- annotations

  std::string annotation(const Type& type, int percent, bool mayStore = false) {
    if (!chance(percent) || type.isScalar()) return "";
    std::vector<std::vector<std::string>> dims(static_cast<std::size_t>(type.rank()));
    std::vector<std::string> axes;
    for (const GsdAxis& axis : program_.mesh) axes.push_back(axis.name);
    std::shuffle(axes.begin(), axes.end(), random_);
    bool any = false;
    for (const std::string& axis : axes) {
      if (!chance(75)) continue;
      dims[static_cast<std::size_t>(below(type.rank()))].push_back(axis);
      any = true;
    }
    if (!any) return " @replicate";
    std::string text;
    for (const std::vector<std::string>& dim : dims) {
      std::string names;
      for (const std::string& name : dim) names += (names.empty() ? "" : ", ") + name;
      text += (text.empty() ? "" : ", ") + (dim.empty() ? "_" : dim.size() == 1 ? names : "(" + names + ")");
    }
    text = " @shard([" + text + "])";
    if (chance(35)) return text + " @open";
    if (mayStore && chance(25)) return text + " @stored";
    return text;
  }

  // ---- the pool of values

  void addInput(Type type, std::int64_t low, std::int64_t high, bool isIndex = false) {
    GsdInput input;
    // The first one at least is trained.
    input.parameter = program_.kind == GsdKind::Training && !isIndex && (program_.inputs.empty() || chance(50));
    input.annotation = annotation(type, 70, input.parameter);
    if (input.parameter) input.stateAnnotation = annotation(type, 40);
    input.type = std::move(type);
    input.low = low;
    input.high = high;
    input.seed = random_();
    program_.inputs.push_back(std::move(input));
    bounds_.push_back(static_cast<double>(high));
    isIndex_.push_back(isIndex);
  }

  std::size_t count() const { return bounds_.size(); }
  const Type& type(std::size_t value) const { return program_.typeOf(value); }
  std::int64_t dim(std::size_t value, std::int64_t d) const { return type(value).shape[static_cast<std::size_t>(d)]; }

  // A random number tensor; of all so far, or of the last few, so that chains form.
  std::size_t pick() {
    for (;;) {
      const auto all = static_cast<std::int64_t>(count());
      const std::int64_t recent = chance(65) ? std::min<std::int64_t>(all, 3) : all;
      const auto at = static_cast<std::size_t>(all - 1 - below(recent));
      if (!isIndex_[at]) return at;
    }
  }
  // An index tensor whose values are below `limit`.
  std::optional<std::size_t> pickIndices(std::int64_t limit) {
    std::vector<std::size_t> fitting;
    for (std::size_t v = 0; v < count(); ++v) {
      if (isIndex_[v] && bounds_[v] < static_cast<double>(limit)) fitting.push_back(v);
    }
    if (fitting.empty()) return std::nullopt;
    return fitting[static_cast<std::size_t>(below(static_cast<std::int64_t>(fitting.size())))];
  }

  bool keep(std::string text, std::vector<std::size_t> operands, Type type, double bound, bool isIndex = false) {
    std::int64_t elements = 1;
    for (const std::int64_t size : type.shape) elements *= size;
    if (bound > limit_ || elements > 3000 || type.rank() > 4) return false;
    for (const std::int64_t size : type.shape) {
      if (size < 1) return false;
    }
    GsdStatement statement{
        std::move(text), std::move(operands), std::move(type), "", isIndex, static_cast<std::int64_t>(bound)};
    statement.annotation = annotation(statement.type, 10);
    program_.statements.push_back(std::move(statement));
    bounds_.push_back(bound);
    isIndex_.push_back(isIndex);
    return true;
  }

  // ---- statements

  bool addStatement() {
    switch (below(30)) {
      case 0:
        return binary("$0 + $1", false);
      case 1:
        return binary("$0 - $1", false);
      case 2:
        return binary("$0 * $1", true);
      case 3:
        return binary(chance(50) ? "maximum($0, $1)" : "minimum($0, $1)", false);
      case 4:
        return unary();
      case 5:
      case 6:
      case 7:
        return contraction();
      case 8:
      case 9:
        return reduction();
      case 10:
        return transposition();
      case 11:
        return reshaping();
      case 12:
        return slicing();
      case 13:
        return padding();
      case 14:
        return joining();
      case 15:
        return reversal();
      case 16:
        return gathering();
      case 17:
        return scattering();
      case 18:
        return choosing();
      case 19:
        return chance(50) ? selecting() : spreading();
      case 20:
      case 21:
      case 22:
        return unary();
      case 23:
        return running();
      case 24:
        return rolling();
      case 25:
      case 26:
        return ordering();
      case 27:
        return windowRead();
      case 28:
        return windowWrite();
      case 29:
        return parting();
      default:
        return false;
    }
  }

  static std::optional<std::vector<std::int64_t>> broadcast(const Type& a, const Type& b) {
    std::vector<std::int64_t> shape(std::max(a.shape.size(), b.shape.size()), 1);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t x = i < a.shape.size() ? a.shape[a.shape.size() - 1 - i] : 1;
      const std::int64_t y = i < b.shape.size() ? b.shape[b.shape.size() - 1 - i] : 1;
      if (x != y && x != 1 && y != 1) return std::nullopt;
      shape[shape.size() - 1 - i] = std::max(x, y);
    }
    return shape;
  }

  bool binary(const std::string& text, bool product) {
    const std::size_t a = pick(), b = pick();
    const auto shape = broadcast(type(a), type(b));
    if (!shape) {
      const std::string number = std::to_string(below(5) - 2);
      std::string other = text;
      other.replace(other.find("$1"), 2, number[0] == '-' ? "(" + number + ")" : number);
      return keep(other, {a}, type(a), product ? 2 * bounds_[a] : bounds_[a] + 2);
    }
    return keep(text, {a, b}, {dtype_, *shape}, product ? bounds_[a] * bounds_[b] : bounds_[a] + bounds_[b]);
  }

  bool unary() {
    // Often of what was made last: a sum may still be pending in it, which most functions must not read.
    const std::size_t x = chance(75) && !isIndex_.back() ? count() - 1 : pick();
    const char* texts[] = {"-$0", "relu($0)", "abs($0)", "sign($0)", "stop_gradient($0)", "clamp($0, -2, 2)"};
    return keep(texts[below(isFloatProgram() ? 6 : 1)], {x}, type(x), bounds_[x]);
  }

  bool selecting() {
    const std::size_t a = pick(), b = pick(), c = pick();
    const auto first = broadcast(type(a), type(b));
    if (!first) return false;
    const auto shape = broadcast({dtype_, *first}, type(c));
    if (!shape) return false;
    return keep("where($0 > $1, $2, $1)", {a, b, c}, {dtype_, *shape}, std::max(bounds_[b], bounds_[c]));
  }

  bool spreading() {
    const std::size_t x = pick();
    std::vector<std::int64_t> shape = type(x).shape;
    for (std::int64_t& size : shape) {
      if (size == 1 && chance(60)) size = 1 + below(5);
    }
    if (shape.size() < 3 && chance(60)) shape.insert(shape.begin(), 1 + below(5));
    return keep("broadcast($0, " + listOf(shape) + ")", {x}, {dtype_, shape}, bounds_[x]);
  }

  static bool shareSize(const Type& a, const Type& b) {
    return std::any_of(a.shape.begin(), a.shape.end(), [&](std::int64_t size) {
      return size > 1 && std::find(b.shape.begin(), b.shape.end(), size) != b.shape.end();
    });
  }

  // Letters of the second operand are taken over from the first where sizes agree; some of them are summed.
  bool contraction() {
    const std::size_t a = pick();
    std::size_t b = pick();
    for (int tries = 0; tries < 4 && !shareSize(type(a), type(b)); ++tries) b = pick();
    std::string left, right, result;
    std::vector<std::int64_t> shape;
    double terms = 1;
    for (std::size_t i = 0; i < type(a).shape.size(); ++i) left += static_cast<char>('a' + i);
    std::vector<bool> taken(left.size(), false);
    for (std::size_t i = 0; i < type(b).shape.size(); ++i) {
      char letter = static_cast<char>('m' + i);
      for (std::size_t j = 0; j < left.size(); ++j) {
        if (taken[j] || type(a).shape[j] != type(b).shape[i] || !chance(80)) continue;
        letter = left[j];
        taken[j] = true;
        break;
      }
      right += letter;
    }
    std::vector<std::pair<char, std::int64_t>> kept;
    const auto consider = [&](const std::string& letters, const Type& of) {
      for (std::size_t i = 0; i < letters.size(); ++i) {
        const bool known =
            std::any_of(kept.begin(), kept.end(), [&](const auto& each) { return each.first == letters[i]; });
        if (known) continue;
        const bool shared = left.find(letters[i]) != std::string::npos && right.find(letters[i]) != std::string::npos;
        if (chance(shared ? 20 : 85)) {
          kept.emplace_back(letters[i], of.shape[i]);
        } else {
          terms *= static_cast<double>(of.shape[i]);
        }
      }
    };
    consider(left, type(a));
    consider(right, type(b));
    if (kept.size() > 3) return false;
    if (chance(30)) std::shuffle(kept.begin(), kept.end(), random_);
    for (const auto& [letter, size] : kept) {
      result += letter;
      shape.push_back(size);
    }
    return keep("einsum(\"" + left + "," + right + "->" + result + "\", $0, $1)", {a, b}, {dtype_, shape},
                bounds_[a] * bounds_[b] * terms * 2);
  }

  bool reduction() {
    const std::size_t x = pick();
    std::vector<std::int64_t> dims, shape;
    double terms = 1;
    const bool keeps = chance(30);
    for (std::int64_t d = 0; d < type(x).rank(); ++d) {
      if (chance(50)) {
        dims.push_back(d);
        terms *= static_cast<double>(dim(x, d));
        if (keeps) shape.push_back(1);
      } else {
        shape.push_back(dim(x, d));
      }
    }
    if (dims.empty()) return false;
    const std::int64_t fn = below(5);
    const std::string name = fn < 3 ? "sum" : fn == 3 ? "max" : "min";
    return keep(name + "($0, axis: " + listOf(dims) + (keeps ? ", keepdims: true)" : ")"), {x}, {dtype_, shape},
                bounds_[x] * (fn < 3 ? terms : 1));
  }

  bool transposition() {
    const std::size_t x = pick();
    std::vector<std::int64_t> order, shape;
    for (std::int64_t d = 0; d < type(x).rank(); ++d) order.push_back(d);
    if (order.size() < 2) return false;
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::int64_t d : order) shape.push_back(dim(x, d));
    return keep("transpose($0, " + listOf(order) + ")", {x}, {dtype_, shape}, bounds_[x]);
  }

  bool reshaping() {
    const std::size_t x = pick();
    std::int64_t left = type(x).elements();
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
    return keep("reshape($0, " + listOf(to) + ")", {x}, {dtype_, to}, bounds_[x]);
  }

  bool slicing() {
    const std::size_t x = pick();
    if (type(x).isScalar()) return false;
    std::string text;
    std::vector<std::int64_t> shape;
    for (const std::int64_t size : type(x).shape) {
      if (chance(10)) {
        text += (text.empty() ? "" : ", ") + std::string("none");
        shape.push_back(1);
      }
      std::string item;
      if (chance(40)) {
        item = ":";
        shape.push_back(size);
      } else if (chance(20)) {
        const std::int64_t index = below(size);
        item = std::to_string(chance(30) ? index - size : index);
      } else if (chance(25)) {
        const std::int64_t start = below(size), stop = below(start + 1) - 1, step = 1 + below(3);
        item = std::to_string(chance(30) ? start - size : start) + ":" + (stop < 0 ? "" : std::to_string(stop)) + ":-" +
               std::to_string(step);
        shape.push_back((start - stop + step - 1) / step);
      } else {
        const std::int64_t start = below(size), stop = start + 1 + below(size - start);
        const std::int64_t step = chance(70) ? 1 : 1 + below(3);
        item = std::to_string(start) + ":" + std::to_string(stop) + (step == 1 ? "" : ":" + std::to_string(step));
        shape.push_back((stop - start + step - 1) / step);
      }
      text += (text.empty() ? "" : ", ") + item;
    }
    return keep("$0[" + text + "]", {x}, {dtype_, shape}, bounds_[x]);
  }

  bool padding() {
    const std::size_t x = pick();
    if (type(x).isScalar()) return false;
    std::vector<std::int64_t> low, high, interior, shape;
    for (const std::int64_t size : type(x).shape) {
      low.push_back(chance(50) ? 0 : below(3) - (size > 2 ? 1 : 0));
      high.push_back(chance(50) ? 0 : below(3) - (size > 3 ? 1 : 0));
      interior.push_back(chance(75) ? 0 : 1);
      shape.push_back(size + (size - 1) * interior.back() + low.back() + high.back());
    }
    const std::string value = chance(60) ? "" : ", value: 2";
    return keep(
        "pad($0, low: " + listOf(low) + ", high: " + listOf(high) + ", interior: " + listOf(interior) + value + ")",
        {x}, {dtype_, shape}, std::max(bounds_[x], 2.0));
  }

  bool joining() {
    const std::size_t a = pick(), b = pick();
    const Type x = type(a), y = type(b);
    if (x.rank() != y.rank() || x.isScalar()) return false;
    const double bound = std::max(bounds_[a], bounds_[b]);
    std::vector<std::int64_t> shape = x.shape;
    if (x == y && chance(40)) {
      const std::int64_t axis = below(x.rank() + 1);
      shape.insert(shape.begin() + axis, 2);
      return keep("stack([$0, $1], axis: " + std::to_string(axis) + ")", {a, b}, {dtype_, shape}, bound);
    }
    std::int64_t axis = -1;
    for (std::int64_t d = 0; d < x.rank(); ++d) {
      if (dim(a, d) == dim(b, d)) continue;
      if (axis >= 0) return false;
      axis = d;
    }
    if (axis < 0) axis = below(x.rank());
    shape[static_cast<std::size_t>(axis)] += dim(b, axis);
    return keep("concat([$0, $1], axis: " + std::to_string(axis) + ")", {a, b}, {dtype_, shape}, bound);
  }

  bool reversal() {
    const std::size_t x = pick();
    std::vector<std::int64_t> dims;
    for (std::int64_t d = 0; d < type(x).rank(); ++d) {
      if (chance(60)) dims.push_back(d);
    }
    if (dims.empty()) return false;
    return keep("reverse($0, axis: " + listOf(dims) + ")", {x}, type(x), bounds_[x]);
  }

  bool gathering() {
    const std::size_t x = pick();
    if (type(x).isScalar()) return false;
    const std::int64_t axis = below(type(x).rank());
    const std::optional<std::size_t> index = pickIndices(dim(x, axis));
    if (!index) return false;
    const Type i = type(*index);
    const bool batch = axis > 0 && i.rank() > 0 && i.shape[0] == type(x).shape[0] && chance(70);
    std::vector<std::int64_t> shape(type(x).shape.begin(), type(x).shape.begin() + axis);
    shape.insert(shape.end(), i.shape.begin() + (batch ? 1 : 0), i.shape.end());
    shape.insert(shape.end(), type(x).shape.begin() + axis + 1, type(x).shape.end());
    return keep("take($0, $1, axis: " + std::to_string(axis) + (batch ? ", batch: 1)" : ")"), {x, *index},
                {dtype_, shape}, bounds_[x]);
  }

  bool scattering() {
    const std::size_t x = pick(), u = pick();
    if (type(x).isScalar()) return false;
    const std::optional<std::size_t> index = pickIndices(dim(x, 0));
    if (!index || type(*index).rank() != 1) return false;
    std::vector<std::int64_t> needed = type(x).shape;
    needed[0] = dim(*index, 0);
    // Updates of the right shape are rare: others are spread to it.
    const auto fits = broadcast(type(u), {dtype_, needed});
    if (!fits || *fits != needed) return false;
    const std::string updates = type(u).shape == needed ? "$2" : "broadcast($2, " + listOf(needed) + ")";
    return keep("scatter_add($0, $1, " + updates + ")", {x, *index, u}, type(x),
                bounds_[x] + bounds_[u] * static_cast<double>(needed[0]));
  }

  // Arg reductions: their indices are indices for others, or numbers.
  bool choosing() {
    const std::size_t x = pick();
    if (type(x).isScalar()) return false;
    const std::int64_t axis = below(type(x).rank());
    std::vector<std::int64_t> shape = type(x).shape;
    const std::int64_t size = shape[static_cast<std::size_t>(axis)];
    shape.erase(shape.begin() + axis);
    const std::string text = std::string(chance(50) ? "argmax" : "argmin") + "($0, axis: " + std::to_string(axis) + ")";
    return keepIndices(text, x, shape, size);
  }

  // Of i32 below `size`.
  bool keepIndices(const std::string& text, std::size_t x, const std::vector<std::int64_t>& shape, std::int64_t size) {
    const auto bound = static_cast<double>(size - 1);
    if (shape.size() == 1 && chance(50)) return keep(text, {x}, {DType::I32, shape}, bound, true);
    if (dtype_ == DType::I32) return keep(text, {x}, {dtype_, shape}, bound);
    return keep("cast(" + text + ", " + std::string(dtypeName(dtype_)) + ")", {x}, {dtype_, shape}, bound);
  }

  bool running() {
    const std::size_t x = pick();
    if (type(x).isScalar()) return false;
    const std::int64_t axis = below(type(x).rank());
    const std::string flags =
        std::string(chance(30) ? ", reverse: true" : "") + (chance(30) ? ", exclusive: true" : "");
    return keep("cumsum($0, axis: " + std::to_string(axis) + flags + ")", {x}, type(x),
                bounds_[x] * static_cast<double>(dim(x, axis)));
  }

  bool rolling() {
    const std::size_t x = pick();
    if (type(x).isScalar()) return false;
    const std::int64_t axis = below(type(x).rank()), shift = below(2 * dim(x, axis) + 1) - dim(x, axis);
    return keep("roll($0, " + std::to_string(shift) + ", axis: " + std::to_string(axis) + ")", {x}, type(x),
                bounds_[x]);
  }

  // sort, argsort and both results of top_k (gsd_program.cpp has functions that hand out one of them).
  bool ordering() {
    const std::size_t x = pick();
    if (type(x).isScalar()) return false;
    const std::int64_t axis = below(type(x).rank()), size = dim(x, axis);
    const std::string at = ", axis: " + std::to_string(axis) + ")";
    const std::string order = std::string(chance(50) ? ", descending: true" : "") + at;
    if (chance(30)) return keep("sort($0" + order, {x}, type(x), bounds_[x]);
    if (chance(30)) return keepIndices("argsort($0" + order, x, type(x).shape, size);
    std::vector<std::int64_t> shape = type(x).shape;
    const std::int64_t k = 1 + below(size);
    shape[static_cast<std::size_t>(axis)] = k;
    if (chance(60)) return keep("top_values($0, " + std::to_string(k) + at, {x}, {dtype_, shape}, bounds_[x]);
    return keepIndices("top_places($0, " + std::to_string(k) + at, x, shape, size);
  }

  // A window of every dim that has room for it, at starts of which some are known at run time only.
  struct Window {
    std::string starts;
    std::vector<std::int64_t> shape;
  };
  Window window(const Type& of, std::optional<std::size_t> starts, const std::string& name) {
    Window result;
    for (const std::int64_t size : of.shape) {
      const std::int64_t length = chance(40) ? size : 1 + below(size), room = size - length;
      std::string start = std::to_string(below(room + 1));
      if (starts && chance(60))
        start = "minimum(" + name + "[" + std::to_string(below(dim(*starts, 0))) + "], " + std::to_string(room) + ")";
      result.starts += (result.starts.empty() ? "" : ", ") + start;
      result.shape.push_back(length);
    }
    result.starts = "[" + result.starts + "]";
    return result;
  }

  std::optional<std::size_t> pickStarts() {
    const std::optional<std::size_t> starts = pickIndices(1000);
    return starts && type(*starts).rank() == 1 && type(*starts).dtype == DType::I32 ? starts : std::nullopt;
  }

  bool windowRead() {
    const std::size_t x = pick();
    if (type(x).isScalar()) return false;
    const std::optional<std::size_t> starts = pickStarts();
    const Window part = window(type(x), starts, "$1");
    std::vector<std::size_t> operands = {x};
    if (starts) operands.push_back(*starts);
    return keep("dynamic_slice($0, " + part.starts + ", " + listOf(part.shape) + ")", operands, {dtype_, part.shape},
                bounds_[x]);
  }

  bool windowWrite() {
    const std::size_t x = pick(), u = pick();
    if (type(x).isScalar()) return false;
    const std::optional<std::size_t> starts = pickStarts();
    const Window part = window(type(x), starts, "$2");
    // Updates of the right shape are rare: others are spread to it.
    const auto fits = broadcast(type(u), {dtype_, part.shape});
    if (!fits || *fits != part.shape) return false;
    const std::string update = type(u).shape == part.shape ? "$1" : "broadcast($1, " + listOf(part.shape) + ")";
    std::vector<std::size_t> operands = {x, u};
    if (starts) operands.push_back(*starts);
    return keep("dynamic_update($0, " + update + ", " + part.starts + ")", operands, type(x),
                std::max(bounds_[x], bounds_[u]));
  }

  bool parting() {
    const std::size_t x = pick();
    if (type(x).isScalar()) return false;
    const std::int64_t axis = below(type(x).rank()), size = dim(x, axis);
    const std::int64_t first = 1 + below(size);
    std::vector<std::int64_t> sizes = {first};
    if (first < size) sizes.push_back(size - first);
    const std::int64_t part = below(static_cast<std::int64_t>(sizes.size()));
    std::vector<std::int64_t> shape = type(x).shape;
    shape[static_cast<std::size_t>(axis)] = sizes[static_cast<std::size_t>(part)];
    return keep("split($0, " + listOf(sizes) + ", axis: " + std::to_string(axis) + ")[" + std::to_string(part) + "]",
                {x}, {dtype_, shape}, bounds_[x]);
  }

  void addOutputs() {
    std::vector<std::size_t> candidates;
    for (std::size_t v = 0; v < count(); ++v) {
      if (!isIndex_[v]) candidates.push_back(v);
    }
    // The last few, not all: what is handed out cannot stay pending, and most values should be free to.
    const std::size_t take = std::min<std::size_t>(candidates.size(), static_cast<std::size_t>(1 + below(3)));
    program_.outputs.assign(candidates.end() - static_cast<std::ptrdiff_t>(take), candidates.end());
  }

  std::mt19937_64 random_;
  GsdProgram program_;
  std::int64_t sizes_[3] = {};
  DType dtype_ = DType::F64;
  double limit_ = 0;
  std::vector<double> bounds_;  // per value: its largest magnitude
  std::vector<bool> isIndex_;   // per value: are these indices, below bounds_ + 1?
};

}  // namespace

GsdProgram makeGsdProgram(std::uint64_t seed, GsdKind kind, const std::vector<GsdAxis>& mesh) {
  return GsdGenerator(seed, kind, mesh).run();
}

GsdProgram makeGsdProgram(std::uint64_t seed) {
  static const std::vector<std::vector<std::int64_t>> kMeshes = {{2}, {3}, {4}, {2, 2}, {2, 3}, {1, 4}, {5}, {4, 2}};
  static const char* kNames[] = {"a", "b"};
  std::mt19937_64 random(seed * 2 + 1);
  std::vector<GsdAxis> mesh;
  for (const std::int64_t size : kMeshes[random() % kMeshes.size()]) mesh.push_back({kNames[mesh.size()], size});
  return makeGsdProgram(seed, static_cast<GsdKind>(random() % 3), mesh);
}

}  // namespace gshard::fuzz
