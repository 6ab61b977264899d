// Factors: an op reduced to letters. Each dim of each operand and result maps to an ordered list of factors (major
// first; usually one). Propagation and partitioning work on factors and never ask which op they have.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/sharding.h"

namespace gshard {

class OpView;

enum class FactorKind : std::uint8_t {
  Pass,    // in operands and result: split it and every device works on its own part
  Reduce,  // absent from the result: split leaves a partial result (Factor::reduction)
  Window,  // related by an affine index map with another size on the other side: needs a halo or an exchange when split
  Whole,   // must be whole on every device: gathered first (Factor::reason says why)
  Scan,    // cumsum: only totals travel
  Lookup,  // the indexed dim of a table: split leaves a partial sum (take), or keeps local rows (scatter_add)
  Candidates,  // argmax's dim: split leaves one candidate per part
};
std::string_view factorKindName(FactorKind kind);

struct Factor {
  FactorKind kind = FactorKind::Pass;
  std::int64_t size = 1;
  std::string letter;                    // "b", "h": for messages and print-factors
  Reduction reduction = Reduction::Sum;  // Reduce and Lookup
  std::string reason;                    // Whole
  bool othersPartial = false;  // Reduce in scatter_add: operands that lack it and may be partial are so over its axes
};

struct OpFactors {
  using DimFactors = std::vector<std::vector<int>>;  // per dim: factor numbers, major first
  std::vector<Factor> factors;
  std::vector<DimFactors> operands;
  std::vector<DimFactors> results;
  bool isBroadcast = false;    // some operand lacks a Pass factor: later in propagation order
  bool isElementwise = false;  // every factor is Pass and in all: first in propagation order
};

class FactorBuilder {
 public:
  explicit FactorBuilder(const OpView& op);
  int add(FactorKind kind, std::int64_t size, std::string letter = "", std::string reason = "",
          Reduction reduction = Reduction::Sum);
  void othersPartial(int factor);
  void operandDim(std::size_t operand, std::int64_t dim, int factor);  // appends (minor after major)
  void resultDim(std::size_t result, std::int64_t dim, int factor);
  OpFactors take() &&;  // dims of size 1 or without entry have no factor

 private:
  OpFactors factors_;
};

// How the axes of a dim fall on its factors, major first (an axis is cut in two where a factor ends within it); nothing
// when that cannot be: a minor factor is split only when all before it are split fully, and parts of the dim must hold
// the same indices as parts of the factor.
std::optional<std::vector<std::vector<AxisRef>>> axesOfFactors(const OpFactors& factors,
                                                               const std::vector<int>& dimFactors, std::int64_t dimSize,
                                                               std::span<const AxisRef> axes);

OpFactors factorsOf(const OpView& op);                                 // asks the op table
std::string printFactors(const OpView& op, const OpFactors& factors);  // one line

}  // namespace gshard
