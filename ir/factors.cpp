// FactorBuilder and what follows from factors alone: how the axes of a dim fall on its factors.
#include "ir/factors.h"

#include "ir/op_table.h"
#include "support/check.h"

namespace gshard {

std::string_view factorKindName(FactorKind kind) {
  switch (kind) {
    case FactorKind::Pass:
      return "pass";
    case FactorKind::Reduce:
      return "reduce";
    case FactorKind::Window:
      return "window";
    case FactorKind::Whole:
      return "whole";
    case FactorKind::Scan:
      return "scan";
    case FactorKind::Lookup:
      return "lookup";
    case FactorKind::Candidates:
      return "candidates";
  }
  GSHARD_UNREACHABLE("FactorKind");
}

FactorBuilder::FactorBuilder(const OpView& op) {
  constexpr std::size_t kMostFactors = 8;  // of nearly every op
  factors_.factors.reserve(kMostFactors);
  for (std::size_t i = 0; i < op.operandCount(); ++i) factors_.operands.emplace_back(op.operandType(i).shape.size());
  for (std::size_t i = 0; i < op.op().results.size(); ++i) factors_.results.emplace_back(op.resultType(i).shape.size());
}

int FactorBuilder::add(FactorKind kind, std::int64_t size, std::string letter, std::string reason,
                       Reduction reduction) {
  const int number = static_cast<int>(factors_.factors.size());
  if (letter.empty()) {
    letter = std::string(1, static_cast<char>('a' + number % 26));
    if (number >= 26) letter += std::to_string(number / 26);
  }
  factors_.factors.push_back({kind, size, std::move(letter), reduction, std::move(reason)});
  return number;
}

void FactorBuilder::othersPartial(int factor) {
  factors_.factors[static_cast<std::size_t>(factor)].othersPartial = true;
}

void FactorBuilder::operandDim(std::size_t operand, std::int64_t dim, int factor) {
  factors_.operands[operand][static_cast<std::size_t>(dim)].push_back(factor);
}

void FactorBuilder::resultDim(std::size_t result, std::int64_t dim, int factor) {
  factors_.results[result][static_cast<std::size_t>(dim)].push_back(factor);
}

namespace {
// Whether some dim of the tensor has the factor.
bool has(const OpFactors::DimFactors& dims, int factor) {
  for (const std::vector<int>& each : dims) {
    for (const int number : each) {
      if (number == factor) return true;
    }
  }
  return false;
}
}  // namespace

OpFactors FactorBuilder::take() && {
  factors_.isElementwise = true;
  for (std::size_t f = 0; f < factors_.factors.size(); ++f) {
    const bool isPass = factors_.factors[f].kind == FactorKind::Pass;
    bool everywhere = isPass;
    for (const OpFactors::DimFactors& operand : factors_.operands) {
      if (has(operand, static_cast<int>(f))) continue;
      everywhere = false;
      if (isPass) factors_.isBroadcast = true;
    }
    for (const OpFactors::DimFactors& result : factors_.results)
      everywhere = everywhere && has(result, static_cast<int>(f));
    factors_.isElementwise = factors_.isElementwise && everywhere;
  }
  return std::move(factors_);
}

std::optional<std::vector<std::vector<AxisRef>>> axesOfFactors(const OpFactors& factors,
                                                               const std::vector<int>& dimFactors, std::int64_t dimSize,
                                                               std::span<const AxisRef> axes) {
  std::vector<std::vector<AxisRef>> result(dimFactors.size());
  if (axes.empty()) return result;
  if (dimFactors.empty()) return std::nullopt;
  std::size_t at = 0;
  std::int64_t minor = dimSize;  // elements of the dim per index of the factors before `at`
  std::int64_t parts = 1;        // of factor `at` so far
  std::int64_t left = factors.factors[static_cast<std::size_t>(dimFactors[0])].size;
  const auto nests = [&]() {
    const std::int64_t size = factors.factors[static_cast<std::size_t>(dimFactors[at])].size;
    if (at > 0 && size % parts != 0) return false;  // the tiles of a split major factor would end within an uneven part
    const std::int64_t inner = size == 0 ? 0 : minor / size;
    return at + 1 == dimFactors.size() || partSize(minor, parts) == inner * partSize(size, parts);
  };
  for (AxisRef axis : axes) {
    while (axis.size > 1) {
      if (left == 1 && at + 1 < dimFactors.size()) {
        minor /= factors.factors[static_cast<std::size_t>(dimFactors[at])].size;
        parts = 1;
        left = factors.factors[static_cast<std::size_t>(dimFactors[++at])].size;
        continue;
      }
      AxisRef piece = axis;
      if (at + 1 < dimFactors.size() && left > 1 && axis.size > left && axis.size % left == 0) piece.size = left;
      result[at].push_back(piece);
      parts *= piece.size;
      left = left % piece.size == 0 ? left / piece.size : 0;  // 0: split unevenly, nothing may follow but this factor
      axis = {axis.axis, axis.pre * piece.size, axis.size / piece.size};
    }
  }
  if (!nests()) return std::nullopt;
  for (std::vector<AxisRef>& each : result) each = joinedAxes(each);
  return result;
}

OpFactors factorsOf(const OpView& op) {
  FactorBuilder builder(op);
  (*opDef(op.op().kind).factors)(op, builder);
  return std::move(builder).take();
}

std::string printFactors(const OpView&, const OpFactors& factors) {
  const auto tensor = [&](const OpFactors::DimFactors& dims) {
    std::string text = "[";
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i > 0) text += ", ";
      if (dims[i].empty()) text += "_";
      for (const int number : dims[i]) text += factors.factors[static_cast<std::size_t>(number)].letter;
    }
    return text + "]";
  };
  std::string text;
  for (std::size_t i = 0; i < factors.operands.size(); ++i) text += (i > 0 ? ", " : "") + tensor(factors.operands[i]);
  text += " -> ";
  for (std::size_t i = 0; i < factors.results.size(); ++i) text += (i > 0 ? ", " : "") + tensor(factors.results[i]);
  text += " {";
  for (std::size_t i = 0; i < factors.factors.size(); ++i) {
    const Factor& factor = factors.factors[i];
    text += (i > 0 ? ", " : "") + factor.letter + "=" + std::to_string(factor.size);
    if (factor.kind != FactorKind::Pass) text += " " + std::string(factorKindName(factor.kind));
    if (factor.kind == FactorKind::Reduce || factor.kind == FactorKind::Lookup) {
      text += "(" + std::string(reductionName(factor.reduction)) + ")";
    }
  }
  return text + "}";
}

}  // namespace gshard
