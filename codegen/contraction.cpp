// Contractions: letters into groups, and the choice between a matrix product and a loop nest.
#include <algorithm>

#include "codegen/lowering.h"
#include "ir/contract_spec.h"
#include "support/check.h"

namespace gshard {
namespace {

// Below this many multiplications, a loop nest that is fused and needs no packing is as fast.
constexpr std::int64_t kProductWork = 4096;

struct Contraction {
  ContractSpec spec;
  std::string letters;  // those of the result first

  explicit Contraction(const OpView& op) : spec(contractSpec(op.stringAttr("spec"))), letters(spec.letters()) {}

  // Dims of an operand in terms of letters as loops.
  DimMap dims(const std::string& operand) const {
    DimMap map;
    for (const char letter : operand) map.push_back(DimIndex{static_cast<int>(letters.find(letter)), 1, 0});
    return map;
  }
};

bool has(const std::string& text, char letter) {
  return text.find(letter) != std::string::npos;
}

bool hasRepeats(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.find(text[i], i + 1) != std::string::npos) return true;
  }
  return false;
}

// The value that a product reads, and its dims in terms of letters. Literals have no memory of their own to see through
// to.
FunctionViews::Base productOperand(const FunctionViews& views, ValueId value, const DimMap& letters) {
  FunctionViews::Base base = views.base(value, letters);
  const std::int64_t op = views.definition(base.value);
  if (op >= 0 && views.info(static_cast<std::size_t>(op)).kind == OpClass::Literal) return {value, letters};
  return base;
}

struct Strides {
  std::int64_t base = 0;
  std::vector<std::int64_t> letters;
};

Strides stridesOf(const Layout& layout, const DimMap& dims, std::size_t letterCount) {
  Strides result;
  result.letters.assign(letterCount, 0);
  const std::vector<std::int64_t> strides = layout.strides();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    result.base += strides[i] * dims[i].offset;
    if (dims[i].from >= 0) result.letters[static_cast<std::size_t>(dims[i].from)] += strides[i] * dims[i].scale;
  }
  return result;
}

// A dim that has the letter: of the result if it is there, else of an operand.
const LocalDim& dimOf(const FunctionViews& views, const Op& op, const Contraction& contraction, char letter) {
  const std::size_t inResult = contraction.spec.result.find(letter);
  if (inResult != std::string::npos) return views.layout(op.results[0]).dims[inResult];
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const std::size_t at = contraction.spec.operands[i].find(letter);
    if (at != std::string::npos) return views.layout(op.operands[i]).dims[at];
  }
  GSHARD_UNREACHABLE("every letter stands somewhere");
}

GemmDesc describe(const FunctionViews& views, const Op& op, const Contraction& contraction, ProductWork* work) {
  GemmDesc desc;
  const Layout& result = views.layout(op.results[0]);
  desc.element = result.dtype == DType::F64 ? GemmElement::F64 : GemmElement::F32;
  const DType read = views.layout(op.operands[0]).dtype;
  desc.source = read == DType::BF16 ? GemmSource::BF16 : read == DType::F16 ? GemmSource::F16 : GemmSource::Element;
  const std::size_t count = contraction.letters.size();
  const std::string& left = contraction.spec.operands[0];
  const std::string& right = contraction.spec.operands[1];
  const FunctionViews::Base a = productOperand(views, op.operands[0], contraction.dims(left));
  const FunctionViews::Base b = productOperand(views, op.operands[1], contraction.dims(right));
  const Strides stridesA = stridesOf(views.layout(a.value), a.map, count);
  const Strides stridesB = stridesOf(views.layout(b.value), b.map, count);
  const Strides stridesC = stridesOf(result, contraction.dims(contraction.spec.result), count);
  for (std::size_t i = 0; i < count; ++i) {
    const char name = contraction.letters[i];
    const bool inResult = has(contraction.spec.result, name);
    GemmLetter letter;
    if (!inResult)
      letter.group = GemmGroup::Sum;
    else if (!has(right, name))
      letter.group = GemmGroup::Rows;
    else if (!has(left, name))
      letter.group = GemmGroup::Columns;
    else
      letter.group = GemmGroup::Batch;
    const LocalDim& dim = dimOf(views, op, contraction, name);
    letter.size = dim.size;
    letter.strideA = stridesA.letters[i];
    letter.strideB = stridesB.letters[i];
    letter.strideC = stridesC.letters[i];
    if (!dim.fixed) letter.liveSlot = 2 * dim.extent + 1;
    desc.letters.push_back(letter);
  }
  if (work != nullptr) {
    work->a = views.storage(a.value);
    work->b = views.storage(b.value);
    work->c = op.results[0];
    work->baseA = stridesA.base;
    work->baseB = stridesB.base;
  }
  return desc;
}

bool isProduct(const FunctionViews& views, std::size_t number) {
  const Op& op = views.function().ops[number];
  if (op.operands.size() != 2) return false;
  const DType dtype = views.layout(op.results[0]).dtype;
  if (dtype != DType::F32 && dtype != DType::F64) return false;
  const DType read = views.layout(op.operands[0]).dtype;
  if (accumulatorOf(read) != dtype || views.layout(op.operands[1]).dtype != read) return false;
  const Contraction contraction(views.view(number));
  std::int64_t rows = 1, columns = 1, sum = 1, batch = 1;
  for (const std::string& operand : contraction.spec.operands) {
    if (hasRepeats(operand)) return false;
  }
  for (const char letter : contraction.letters) {
    const bool inA = has(contraction.spec.operands[0], letter);
    const bool inB = has(contraction.spec.operands[1], letter);
    const bool inC = has(contraction.spec.result, letter);
    if (inA + inB + inC < 2) return false;
    const std::int64_t size = dimOf(views, op, contraction, letter).size;
    if (!inC)
      sum *= size;
    else if (!inB)
      rows *= size;
    else if (!inA)
      columns *= size;
    else
      batch *= size;
  }
  if (rows < 2 || columns < 2 || sum < 2 || batch < 1) return false;
  if (rows * columns * sum * batch < kProductWork) return false;
  return gemmFits(describe(views, op, contraction, nullptr));
}

}  // namespace

std::vector<bool> chooseProducts(const FunctionViews& views) {
  std::vector<bool> products(views.function().ops.size(), false);
  for (std::size_t i = 0; i < products.size(); ++i) {
    products[i] = views.info(i).kind == OpClass::Contract && isProduct(views, i);
  }
  return products;
}

ProductWork makeProduct(const FunctionViews& views, std::size_t number) {
  ProductWork work;
  const Contraction contraction(views.view(number));
  const Op& op = views.function().ops[number];
  work.desc = describe(views, op, contraction, &work);
  for (const ValueId operand : op.operands) work.desc.skipsEmpty = work.desc.skipsEmpty || views.hasSlots(operand);
  return work;
}

KernelWork makeContractKernel(const FunctionViews& views, const FusionPlan& plan, std::size_t number,
                              std::int64_t siteBase) {
  const Op& op = views.function().ops[number];
  const Contraction contraction(views.view(number));
  ExpressionBuilder builder(views, plan, -1, siteBase);
  const std::string summed = contraction.spec.summed();
  bool isSplitSum = false, mayBeEmpty = false;
  for (const char letter : contraction.letters) {
    const LocalDim& dim = dimOf(views, op, contraction, letter);
    builder.addLoop(dim);
    if (!has(summed, letter)) continue;
    isSplitSum = isSplitSum || dim.split;
    mayBeEmpty = mayBeEmpty || dim.size == 0 || !dim.fixed;
  }
  const DType dtype = views.layout(op.results[0]).dtype;
  LoopKernel& kernel = builder.kernel();
  kernel.keptLoops = contraction.spec.result.size();
  int product = -1;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    int factor = builder.node(op.operands[i], contraction.dims(contraction.spec.operands[i]));
    if (views.layout(op.operands[i]).dtype != dtype) factor = builder.apply(ScalarFn::Cast, dtype, {factor});
    product = product < 0 ? factor : builder.apply(ScalarFn::Mul, dtype, {product, factor});
  }
  kernel.kind = summed.empty() ? KernelKind::Map : KernelKind::Reduce;
  kernel.reduction = Reduction::Sum;
  kernel.zeroIfEmpty = !isSplitSum && mayBeEmpty;
  kernel.fusedProduct = isFloat(dtype) && op.operands.size() > 1;
  DimMap result;
  for (std::size_t i = 0; i < kernel.keptLoops; ++i) result.push_back(DimIndex{static_cast<int>(i), 1, 0});
  builder.addOutput(product, op.results[0], result);
  return builder.finish();
}

}  // namespace gshard
