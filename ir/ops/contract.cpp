// contract: einsum. Sum of products over any letters; a letter twice in one operand reads its diagonal.
#include "ir/contract_spec.h"
#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"
#include "support/check.h"

namespace gshard {

static std::int64_t sizeOfLetter(const OpView& op, const ContractSpec& spec, char letter) {
  for (std::size_t i = 0; i < spec.operands.size(); ++i) {
    const std::size_t at = spec.operands[i].find(letter);
    if (at != std::string::npos) return op.operandType(i).shape[at];
  }
  GSHARD_UNREACHABLE("a letter of no operand");
}

static bool checkOperands(const OpView& op, const std::string& text, const ContractSpec& spec, DiagSink& diag) {
  if (spec.operands.size() != op.operandCount()) {
    diag.emit(op.range(), diag::EinsumSpec, text,
              "describes " + std::to_string(spec.operands.size()) + " operands, but " +
                  std::to_string(op.operandCount()) + " are given");
    return false;
  }
  for (std::size_t i = 0; i < op.operandCount(); ++i) {
    const Type& type = op.operandType(i);
    if (type.dtype != op.operandType(0).dtype) {
      diag.emit(op.range(), diag::DtypesDiffer, "contract", printType(op.operandType(0)), printType(type))
          .label(op.operandRange(i), "this operand");
      return false;
    }
    if (static_cast<std::int64_t>(spec.operands[i].size()) != type.rank()) {
      diag.emit(op.range(), diag::EinsumSpec, text,
                "has " + std::to_string(spec.operands[i].size()) + " letters for `" + printType(type) + "`")
          .label(op.operandRange(i), "this operand");
      return false;
    }
    for (std::size_t k = 0; k < spec.operands[i].size(); ++k) {
      const char letter = spec.operands[i][k];
      const std::int64_t size = sizeOfLetter(op, spec, letter);
      if (size == type.shape[k]) continue;
      diag.emit(op.range(), diag::EinsumDims, std::string(1, letter), text, size, type.shape[k])
          .label(op.operandRange(i), "this operand");
      return false;
    }
  }
  return true;
}

static std::optional<ResultTypes> inferContract(const OpView& op, DiagSink& diag) {
  const std::string& text = op.stringAttr("spec");
  std::string fault;
  const std::optional<ContractSpec> spec = parseContractSpec(text, fault);
  if (!spec) {
    diag.emit(op.range(), diag::EinsumSpec, text, fault);
    return std::nullopt;
  }
  const DType dtype = op.operandType(0).dtype;
  if (dtype == DType::Bool) {
    diag.emit(op.range(), diag::DtypeNotAccepted, "contract", "numbers", "bool")
        .label(op.operandRange(0), "this operand");
    return std::nullopt;
  }
  if (!checkOperands(op, text, *spec, diag)) return std::nullopt;
  Type result{accumulatorOf(dtype), {}};
  for (const char letter : spec->result) result.shape.push_back(sizeOfLetter(op, *spec, letter));
  return checkSizes(op, diag, result) ? std::optional(ResultTypes{result}) : std::nullopt;
}

static bool isDiagonal(const ContractSpec& spec, char letter) {
  for (const std::string& operand : spec.operands) {
    if (operand.find(letter) != operand.rfind(letter)) return true;
  }
  return false;
}

static void contractFactors(const OpView& op, FactorBuilder& factors) {
  const ContractSpec spec = contractSpec(op.stringAttr("spec"));
  for (const char letter : spec.letters()) {
    FactorKind kind = spec.result.find(letter) != std::string::npos ? FactorKind::Pass : FactorKind::Reduce;
    std::string reason;
    if (isDiagonal(spec, letter)) {
      kind = FactorKind::Whole;
      reason = "a diagonal is read";
    }
    const int factor = factors.add(kind, sizeOfLetter(op, spec, letter), std::string(1, letter), reason);
    for (std::size_t i = 0; i < spec.operands.size(); ++i) {
      for (std::size_t k = 0; k < spec.operands[i].size(); ++k) {
        if (spec.operands[i][k] == letter) factors.operandDim(i, static_cast<std::int64_t>(k), factor);
      }
    }
    const std::size_t at = spec.result.find(letter);
    if (at != std::string::npos) factors.resultDim(0, static_cast<std::int64_t>(at), factor);
  }
}

// The gradient of one operand, as a tensor over the letters in `have`, put back under the operand's own letters:
// letters that only this operand has repeat, and of a diagonal all else is zero.
static ValueId spreadLetters(GradBuilder& b, ValueId gradient, const std::string& have, const std::string& letters,
                             const std::vector<std::int64_t>& shape, SourceRange range) {
  if (have == letters) return gradient;
  std::vector<std::int64_t> dims;
  for (const char letter : have) dims.push_back(static_cast<std::int64_t>(letters.find(letter)));
  gradient = b.broadcast(gradient, shape, dims, range);
  for (std::size_t k = 0; k < letters.size(); ++k) {
    const std::size_t first = letters.find(letters[k]);
    if (first == k) continue;
    const auto counter = [&](std::size_t dim) {
      return b.create(OpKind::Iota, {},
                      {{"shape", shape}, {"dim", static_cast<std::int64_t>(dim)}, {"dtype", DType::I64}}, range);
    };
    const ValueId onDiagonal = b.map("eq", {counter(first), counter(k)}, range);
    gradient = b.map("where", {onDiagonal, gradient, b.scalar(b.type(gradient).dtype, 0, range)}, range);
  }
  return gradient;
}

static void contractVjp(const OpView& op, std::span<const ValueId> gradients, GradBuilder& b) {
  const ContractSpec spec = contractSpec(op.stringAttr("spec"));
  const DType wide = accumulatorOf(op.operandType(0).dtype);
  for (std::size_t i = 0; i < op.operandCount(); ++i) {
    if (!b.wants(i)) continue;
    const Type x = op.operandType(i);
    ContractSpec mine{{spec.result}, ""};
    std::vector<ValueId> operands{gradients[0]};
    for (std::size_t other = 0; other < op.operandCount(); ++other) {
      if (other == i) continue;
      mine.operands.push_back(spec.operands[other]);
      operands.push_back(b.cast(op.op().operands[other], wide, op.range()));
    }
    std::string available;
    for (const std::string& each : mine.operands) available += each;
    for (const char letter : spec.operands[i]) {
      const bool isNew = mine.result.find(letter) == std::string::npos;
      if (isNew && available.find(letter) != std::string::npos) mine.result += letter;
    }
    const bool isIdentity = operands.size() == 1 && mine.operands[0] == mine.result;
    ValueId gradient = isIdentity ? gradients[0] : b.contract(printContractSpec(mine), operands, op.range());
    gradient = spreadLetters(b, gradient, mine.result, spec.operands[i], x.shape, op.range());
    b.accumulate(i, b.cast(gradient, x.dtype, op.range()));
  }
}

namespace {
// One operand or the result, walked along letters: the stride of each, summed over the dims that have it.
struct Walker {
  std::vector<std::int64_t> strides;  // per letter
  std::int64_t place = 0;
};

Walker walkerOf(const std::string& all, const std::string& letters, const Tensor& tensor) {
  const std::vector<std::int64_t> strides = stridesOf(tensor.type.shape);
  Walker walker{std::vector<std::int64_t>(all.size(), 0), 0};
  for (std::size_t k = 0; k < letters.size(); ++k) walker.strides[all.find(letters[k])] += strides[k];
  return walker;
}

// Tile of a letter on this device: that of any tensor that has it, all the same by the SPMD rule.
Tile tileOfLetter(const ContractSpec& spec, const EvalFrame& frame, char letter) {
  std::optional<Tile> found;
  const auto look = [&](const std::string& letters, const std::vector<Tile>& tiles) {
    for (std::size_t k = 0; k < letters.size(); ++k) {
      if (letters[k] != letter) continue;
      GSHARD_CHECK(!found || (found->offset == tiles[k].offset && found->live == tiles[k].live),
                   "a letter is split in two ways");
      found = tiles[k];
    }
  };
  for (std::size_t i = 0; i < spec.operands.size(); ++i) look(spec.operands[i], frame.operandTiles[i]);
  look(spec.result, frame.resultTiles[0]);
  return *found;
}
// One run along the last summed letter, added to `sum`, in double.
double sumOfProducts(const EvalFrame& frame, const std::vector<std::int64_t>& places,
                     const std::vector<std::int64_t>& steps, std::int64_t count, double sum) {
  if (count == 0) return sum;  // and the operands may be empty
  if (places.size() == 2) {    // almost all: worth a loop without indirection
    const double* a = frame.in(0).floats.data() + places[0];
    const double* b = frame.in(1).floats.data() + places[1];
    for (std::int64_t k = 0; k < count; ++k) sum += a[k * steps[0]] * b[k * steps[1]];
    return sum;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    double product = 1;
    for (std::size_t i = 0; i < places.size(); ++i)
      product *= frame.in(i).floats[static_cast<std::size_t>(places[i] + k * steps[i])];
    sum += product;
  }
  return sum;
}

std::int64_t sumOfIntegerProducts(const EvalFrame& frame, const std::vector<std::int64_t>& places,
                                  const std::vector<std::int64_t>& steps, std::int64_t count, std::int64_t start,
                                  DType dtype) {
  Number sum{0, start};
  for (std::int64_t k = 0; k < count; ++k) {
    Number product{1, 1};
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int64_t factor = frame.in(i).ints[static_cast<std::size_t>(places[i] + k * steps[i])];
      product = reduceStep(Reduction::Prod, dtype, product, {0, factor}, false);
    }
    sum = reduceStep(Reduction::Sum, dtype, sum, product, false);
  }
  return sum.integer;
}
}  // namespace

static void evaluateContract(const OpView& op, EvalFrame& frame) {
  const ContractSpec spec = contractSpec(op.stringAttr("spec"));
  const std::string all = spec.letters();
  const DType dtype = frame.out().type.dtype;
  std::vector<std::int64_t> sizes;
  std::int64_t summedElements = 1;  // of the whole program's letters, for sums of nothing
  for (const char letter : all) sizes.push_back(tileOfLetter(spec, frame, letter).live);
  for (const char letter : spec.summed()) summedElements *= sizeOfLetter(op, spec, letter);
  std::vector<Walker> walkers;
  for (std::size_t i = 0; i < spec.operands.size(); ++i)
    walkers.push_back(walkerOf(all, spec.operands[i], frame.in(i)));
  Walker out = walkerOf(all, spec.result, frame.out());

  const std::size_t outer = spec.result.size();
  const Number start = summedElements == 0 ? Number{0, 0} : identityOf(Reduction::Sum, dtype);
  const auto placeAt = [](const Walker& walker, const Index& index, std::size_t from) {
    std::int64_t place = 0;
    for (std::size_t k = 0; k < index.size(); ++k) place += walker.strides[from + k] * index[k];
    return place;
  };
  const std::vector<std::int64_t> outerSizes(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(outer));
  std::vector<std::int64_t> innerSizes(sizes.begin() + static_cast<std::ptrdiff_t>(outer), sizes.end());
  const std::int64_t lastSize = innerSizes.empty() ? 1 : innerSizes.back();
  if (!innerSizes.empty()) innerSizes.pop_back();
  std::vector<std::int64_t> places(walkers.size()), steps(walkers.size(), 0);
  if (outer < all.size()) {
    for (std::size_t i = 0; i < walkers.size(); ++i) steps[i] = walkers[i].strides.back();
  }
  forEachIndex(outerSizes, [&](const Index& index) {
    Number sum = start;
    for (Walker& walker : walkers) walker.place = placeAt(walker, index, 0);
    forEachIndex(innerSizes, [&](const Index& inner) {
      for (std::size_t i = 0; i < walkers.size(); ++i) places[i] = walkers[i].place + placeAt(walkers[i], inner, outer);
      sum = isFloat(dtype) ? Number{sumOfProducts(frame, places, steps, lastSize, sum.real), 0}
                           : Number{0, sumOfIntegerProducts(frame, places, steps, lastSize, sum.integer, dtype)};
    });
    storeNumber(frame.out(), placeAt(out, index, 0), sum);
  });
}

static constexpr AttrSpec kAttributes[] = {{"spec", AttrKind::String, false, AttrPlace::Text}};
static constexpr Example kExamples[] = {
    {.args = "%a: f32[2, 3], %b: f32[3, 2]",
     .ir = "%y = contract \"ik,kj->ij\" %a, %b : f32[2, 2]",
     .given = "[[1, 2, 3], [4, 5, 6]]; [[1, 0], [0, 1], [2, 2]]",
     .expected = "[[7, 8], [16, 17]]",
     .differentiable = true},
    {.args = "%a: f32[3, 3]",
     .ir = "%y = contract \"ii->i\" %a : f32[3]",
     .given = "[[1, 2, 3], [4, 5, 6], [7, 8, 9]]",
     .expected = "[1, 5, 9]",
     .differentiable = true},
    {.args = "%a: f32[5, 7], %b: f32[7, 3]",
     .ir = "%y = contract \"ik,kj->ij\" %a, %b : f32[5, 3]",
     .values = {-4, 4},
     .tolerance = 1e-6,
     .differentiable = true},
    {.args = "%a: f32[3, 5, 2], %b: f32[3, 2, 7], %c: f32[7]",
     .ir = "%y = contract \"bik,bkj,j->bj\" %a, %b, %c : f32[3, 7]",
     .values = {-4, 4},
     .tolerance = 1e-6,
     .differentiable = true},
    {.args = "%a: f32[5], %b: f32[7]",
     .ir = "%y = contract \"i,j->ji\" %a, %b : f32[7, 5]",
     .values = {-4, 4},
     .differentiable = true},
    {.args = "%a: i32[5, 7], %b: i32[7]", .ir = "%y = contract \"ik,k->i\" %a, %b : i32[5]", .values = {-9, 9}},
    {.args = "%a: f32[2, 0], %b: f32[0, 3]",
     .ir = "%y = contract \"ik,kj->ij\" %a, %b : f32[2, 3]",
     .given = "[[], []]; []",
     .expected = "[[0, 0, 0], [0, 0, 0]]"},
    {.args = "%a: bf16[5, 3], %b: bf16[3]",
     .ir = "%y = contract \"ik,k->i\" %a, %b : f32[5]",
     .values = {-4, 4},
     .tolerance = 1e-6},
};

constinit const OpDef kContractOp = {
    .name = "contract",
    .doc = "sum of products by letters: those absent from the result are summed; f16 and bf16 give f32",
    .operands = OperandSpec{"x…", 1, -1},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferContract,
    .factors = &contractFactors,
    .linearity = Separate{.which = allOperands},
    .tails = TailsMasked{"a product with a tail may be NaN, so that summed letters run to their live ends"},
    .gradient = Vjp{&contractVjp},
    .localize = SameOp{},
    .evaluate = &evaluateContract,
    .lower = LowerContract{},
};

}  // namespace gshard
