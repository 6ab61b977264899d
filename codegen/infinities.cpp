// Following written infinities through a function; see infinities.h. What a scalar function does with an infinity is
// not listed here: it is asked, on samples.
#include "codegen/infinities.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "ir/scalar_functions.h"

namespace gshard {
namespace {

// Which infinities a value may hold.
struct Signs {
  bool minus = false, plus = false;

  bool any() const { return minus || plus; }
  void add(double value) {
    minus = minus || value == -std::numeric_limits<double>::infinity();
    plus = plus || value == std::numeric_limits<double>::infinity();
  }
  void add(const Signs& other) {
    minus = minus || other.minus;
    plus = plus || other.plus;
  }
};

// NaN that comes of infinities is left to the check: it is never meant.
Signs throughScalar(const OpView& view, const std::vector<Signs>& operands) {
  const std::optional<ScalarFn> fn = scalarFromName(view.stringAttr("fn"));
  const DType branch = view.operandType(view.operandCount() - 1).dtype, result = view.resultType(0).dtype;
  std::vector<std::vector<ScalarNumber>> samples;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::vector<ScalarNumber>& own = samples.emplace_back();
    if (!isFloat(view.operandType(i).dtype)) {
      own = {{0, 0}, {0, 1}};
      continue;
    }
    for (const double finite : {-1.5, 0.0, 0.75}) own.push_back({finite, 0});
    if (operands[i].minus) own.push_back({-std::numeric_limits<double>::infinity(), 0});
    if (operands[i].plus) own.push_back({std::numeric_limits<double>::infinity(), 0});
  }
  Signs signs;
  std::vector<std::size_t> choice(samples.size(), 0);
  while (true) {
    std::vector<ScalarNumber> arguments;
    bool isInfinite = false;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      arguments.push_back(samples[i][choice[i]]);
      isInfinite = isInfinite || std::isinf(arguments.back().real);
    }
    // Of finite arguments an infinity is a find: 1 / 0.
    if (isInfinite) signs.add(evaluateScalar(*fn, branch, result, arguments).real);
    std::size_t i = 0;
    while (i < choice.size() && ++choice[i] == samples[i].size()) choice[i++] = 0;
    if (i == choice.size()) return signs;
  }
}

// Equal functions of equal infinities are sampled once.
class KnownScalars {
 public:
  Signs through(const OpView& view, const std::vector<Signs>& operands) {
    std::string key = view.stringAttr("fn");
    key += '(';
    for (std::size_t i = 0; i < operands.size(); ++i) {
      key += static_cast<char>('a' + static_cast<int>(view.operandType(i).dtype));
      key += static_cast<char>('0' + (operands[i].minus ? 1 : 0) + (operands[i].plus ? 2 : 0));
    }
    key += static_cast<char>('a' + static_cast<int>(view.resultType(0).dtype));
    const auto [known, isNew] = known_.try_emplace(std::move(key));
    if (isNew) known->second = throughScalar(view, operands);
    return known->second;
  }

 private:
  std::map<std::string, Signs> known_;
};

}  // namespace

std::vector<bool> writtenInfinities(const FunctionViews& views) {
  const Function& function = views.function();
  KnownScalars scalars;
  std::vector<Signs> signs(function.values.size());
  for (std::size_t number = 0; number < function.ops.size(); ++number) {
    const Op& op = function.ops[number];
    const OpView view = views.view(number);
    std::vector<Signs> operands;
    Signs all;
    for (const ValueId operand : op.operands) {
      operands.push_back(signs[operand.index]);
      all.add(operands.back());
    }
    if (views.info(number).kind == OpClass::Literal && view.hasAttr("value")) {
      for (const double value : view.literalAttr("value").floats) all.add(value);
    }
    if (!all.any()) continue;
    if (views.info(number).kind == OpClass::Map) all = scalars.through(view, operands);
    // A maximum takes -inf only where there is nothing else, and a minimum +inf.
    if (views.info(number).kind == OpClass::Reduce && view.hasAttr("reduction")) {
      const std::optional<Reduction> reduction = reductionFromName(view.stringAttr("reduction"));
      if (reduction == Reduction::Max) all.minus = false;
      if (reduction == Reduction::Min) all.plus = false;
    }
    for (const ValueId result : op.results) {
      if (isFloat(function.type(result).dtype)) signs[result.index].add(all);
    }
  }
  std::vector<bool> written;
  for (const Signs& each : signs) written.push_back(each.any());
  return written;
}

}  // namespace gshard
