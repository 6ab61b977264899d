// Values of nodes while a kernel is built, and the arithmetic of reductions: the second half of kernel_body.h.
#include <array>
#include <limits>

#include "codegen/kernel_body.h"
#include "codegen/llvm_math.h"
#include "llvm/IR/Module.h"
#include "runtime/abi.h"
#include "support/check.h"

namespace gshard {

// Byte offset in gshard_rt_context.
static constexpr std::int64_t kContextTotalRows = 24;

// ---- nodes

void KernelBody::evaluateUpTo(std::size_t depth) {
  for (std::size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& node = kernel_.nodes[i];
    bool ready = found_.values[i] == nullptr;
    for (const int input : node.inputs) ready = ready && found_.values[static_cast<std::size_t>(input)] != nullptr;
    if (ready && !node.moves.empty()) row(static_cast<int>(i));
    if (node.kind == NodeKind::Place) continue;  // has no value
    for (std::size_t loop = depth; loop < kernel_.loops.size() && ready; ++loop) ready = !depends_[loop][i];
    // A division that may fail is made where it is needed: in a loop that runs not once, it would be a fault of nobody.
    if (node.kind == NodeKind::Apply && node.siteArg >= 0) ready = ready && depth == kernel_.loops.size();
    if (ready) found_.values[i] = evaluate(static_cast<int>(i));
  }
}

KernelBody::Value KernelBody::scalarValue(int node) {
  const std::size_t i = static_cast<std::size_t>(node);
  if (found_.values[i] == nullptr) {
    Value made = evaluate(node);  // may itself add to what is found
    found_.values[i] = made;
  }
  return found_.values[i];
}

KernelBody::Value KernelBody::value(int node) {
  return splat(scalarValue(node));
}

static llvm::Value* literalValue(llvm::Type* type, const Literal& literal) {
  if (type->isFloatingPointTy()) return llvm::ConstantFP::get(type, literal.floats[0]);
  return llvm::ConstantInt::get(type, static_cast<std::uint64_t>(literal.ints[0]), true);
}

// A constant array in the object, as large as the global tensor; tiles read it by global index.
static llvm::Constant* tableOf(llvm::Module& module, llvm::Type* type, const Literal& literal) {
  std::vector<llvm::Constant*> elements;
  for (const double value : literal.floats) elements.push_back(llvm::ConstantFP::get(type, value));
  for (const std::int64_t value : literal.ints) {
    elements.push_back(llvm::ConstantInt::get(type, static_cast<std::uint64_t>(value), true));
  }
  llvm::Constant* data = llvm::ConstantArray::get(llvm::ArrayType::get(type, elements.size()), elements);
  int number = 0;
  for (;; ++number) {
    llvm::GlobalVariable* known = module.getNamedGlobal("table." + std::to_string(number));
    if (known == nullptr) break;
    if (known->getInitializer() == data) return known;
  }
  auto* global =
      llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal("table." + std::to_string(number), data->getType()));
  global->setInitializer(data);
  global->setConstant(true);
  global->setLinkage(llvm::GlobalValue::InternalLinkage);
  global->setAlignment(llvm::Align(64));
  return global;
}

KernelBody::Value KernelBody::evaluate(int nodeNumber) {
  const std::int64_t op = kernel_.nodes[static_cast<std::size_t>(nodeNumber)].op;
  if (!places_ || op < 0) return evaluateHere(nodeNumber);
  const llvm::DebugLoc before = ir_.getCurrentDebugLocation();
  ir_.SetCurrentDebugLocation(places_(op));
  Value made = evaluateHere(nodeNumber);
  ir_.SetCurrentDebugLocation(before);
  return made;
}

KernelBody::Value KernelBody::evaluateHere(int nodeNumber) {
  const Node& node = kernel_.nodes[static_cast<std::size_t>(nodeNumber)];
  switch (node.kind) {
    case NodeKind::Load:
      return loadAt(node.access);
    case NodeKind::Constant:
      return literalValue(laneType(node.dtype), node.literal);
    case NodeKind::Table: {
      const bool isShort = node.dtype == DType::BF16 || node.dtype == DType::F16;
      const DType kept = isShort ? DType::F32 : node.dtype;  // as it is in lanes
      llvm::Type* scalar = memoryType(kept);
      Value first = ir_.CreateGEP(scalar, tableOf(*function_.getParent(), scalar, node.literal), linear(node.position));
      const std::int64_t step = scaleOfVector(node.position);
      if (step == 0) return fromMemory(ir_, shape_, kept, ir_.CreateLoad(scalar, first));
      llvm::Type* vector = llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes_));
      Value lanes = llvm::PoisonValue::get(vector);
      for (std::int64_t lane = 0; lane < lanes_; ++lane) {
        Value one =
            ir_.CreateLoad(scalar, ir_.CreateConstGEP1_64(scalar, first, static_cast<std::uint64_t>(lane * step)));
        lanes = ir_.CreateInsertElement(lanes, one, static_cast<std::uint64_t>(lane));
      }
      return fromMemory(ir_, shape_, kept, lanes);
    }
    case NodeKind::Index: {
      llvm::Type* type = laneType(node.dtype);
      Value first = ir_.CreateSExtOrTrunc(linear(node.position), type);
      const std::int64_t step = scaleOfVector(node.position);
      if (step == 0) return first;
      std::vector<llvm::Constant*> steps;
      for (std::int64_t lane = 0; lane < lanes_; ++lane) {
        steps.push_back(llvm::ConstantInt::get(type, static_cast<std::uint64_t>(lane * step), true));
      }
      return ir_.CreateAdd(splat(first), llvm::ConstantVector::get(steps));
    }
    case NodeKind::TotalRows: {
      Value rows =
          ir_.CreateLoad(ir_.getInt64Ty(), ir_.CreateConstGEP1_64(ir_.getInt8Ty(), context_, kContextTotalRows));
      Value product = ir_.CreateMul(rows, number(node.number));
      const std::array<Value, 1> operands = {product};
      return emitScalarFn(ir_, ScalarFn::Cast, DType::I64, node.dtype, operands);
    }
    case NodeKind::Apply: {
      bool isVector = false;
      std::vector<Value> inputs;
      for (const int input : node.inputs) {
        inputs.push_back(scalarValue(input));
        isVector = isVector || inputs.back()->getType()->isVectorTy();
      }
      if (isVector) {
        for (Value& input : inputs) input = splat(input);
      }
      if (node.siteArg >= 0) checkDivisor(node, inputs[1]);
      const std::size_t typed = node.fn == ScalarFn::Where ? 1 : 0;
      const DType operand = kernel_.nodes[static_cast<std::size_t>(node.inputs[typed])].dtype;
      return emitScalarFn(ir_, node.fn, operand, node.dtype, inputs);
    }
    case NodeKind::Gather:
      return gather(nodeNumber);
    case NodeKind::Inside: {
      const Row found = place(node.inputs[0]);
      return found.inside == nullptr ? ir_.getTrue() : found.inside;
    }
    case NodeKind::Place:
      break;
  }
  GSHARD_UNREACHABLE("kind of node");
}

void KernelBody::recordFault(int siteArg, Value position, Value offending, std::int64_t limit) {
  ir_.CreateCall(runtimeFunction(*function_.getParent(), "gshard_rt_record_fault"),
                 {context_, extra(siteArg), position, offending, number(limit), extra(siteArg)});
}

void KernelBody::checkDivisor(const Node& node, Value divisor) {
  GSHARD_CHECK(!divisor->getType()->isVectorTy(), "a division that may fail is evaluated one by one");
  ifThen(ir_.CreateICmpEQ(divisor, llvm::Constant::getNullValue(divisor->getType())),
         [&] { recordFault(node.siteArg, linear(node.position), number(0), GSHARD_RT_LIMIT_OF_DIVISION); });
}

// The clamped index of a run-time dim; a fault where it had to be clamped.
KernelBody::Value KernelBody::runTimeIndex(const Node& node, std::size_t which) {
  const RunTimeDim& move = node.moves[which];
  Value index = scalarValue(node.inputs[which]);
  GSHARD_CHECK(!index->getType()->isVectorTy(), "the index of a gather is one per vector");
  index = ir_.CreateSExtOrTrunc(index, ir_.getInt64Ty());
  Value limit = number(move.limit);
  ifThen(ir_.CreateNot(ir_.CreateICmpULT(index, limit)), [&] {
    if (move.startDim >= 0) {
      recordFault(node.siteArg, number(move.startDim), index, GSHARD_RT_LIMIT_OF_START(move.limit - 1));
    } else {
      recordFault(node.siteArg, linear(move.position), index, move.limit);
    }
  });
  Value at = ir_.CreateSelect(ir_.CreateICmpSLT(index, number(0)), number(0), index);
  return ir_.CreateSelect(ir_.CreateICmpSLT(at, limit), at, number(move.limit - 1));
}

// All of a row or window that does not vary within it: what can be found before the inner loops.
const KernelBody::Row& KernelBody::row(int nodeNumber) {
  const Node& node = kernel_.nodes[static_cast<std::size_t>(nodeNumber)];
  if (found_.rows[static_cast<std::size_t>(nodeNumber)].offset != nullptr)
    return found_.rows[static_cast<std::size_t>(nodeNumber)];
  Row row;
  row.offset = number(0);
  for (std::size_t i = 0; i < node.moves.size(); ++i) {
    const RunTimeDim& move = node.moves[i];
    if (move.mayMiss) {
      addMaybe(row, move, scalarValue(node.inputs[i]));
      continue;
    }
    Value at = runTimeIndex(node, i);
    row.starts.push_back(at);
    if (move.splitArg >= 0 && move.startDim >= 0) continue;
    if (move.splitArg >= 0) addSplit(row, move, at);
    if (move.splitArg < 0) row.offset = ir_.CreateAdd(row.offset, ir_.CreateMul(at, number(move.stride)));
  }
  return found_.rows[static_cast<std::size_t>(nodeNumber)] = row;
}

// `at` is a global index of a split dim.
void KernelBody::addSplit(Row& row, const RunTimeDim& move, Value at) {
  at = ir_.CreateSub(at, tileBegin(move.splitArg));
  addInside(row, move, at, tileLive(move.splitArg));
}

// `index` says by lying outside that there is nothing.
void KernelBody::addMaybe(Row& row, const RunTimeDim& move, Value index) {
  GSHARD_CHECK(!index->getType()->isVectorTy(), "the index of a gather is one per vector");
  index = ir_.CreateSExtOrTrunc(index, ir_.getInt64Ty());
  if (move.splitArg < 0) {
    addInside(row, move, index, number(move.limit));
    return;
  }
  // What is no index of the dim at all is in no part, wherever parts begin.
  Value isIndex = ir_.CreateICmpULT(index, number(move.limit));
  row.inside = row.inside == nullptr ? isIndex : ir_.CreateAnd(row.inside, isIndex);
  addSplit(row, move, index);
}

void KernelBody::addInside(Row& row, const RunTimeDim& move, Value at, Value limit) {
  Value inside = ir_.CreateICmpULT(at, limit);
  row.inside = row.inside == nullptr ? inside : ir_.CreateAnd(row.inside, inside);
  at = ir_.CreateSelect(inside, at, number(0));
  row.offset = ir_.CreateAdd(row.offset, ir_.CreateMul(at, number(move.stride)));
}

KernelBody::Row KernelBody::place(int nodeNumber) {
  const Node& node = kernel_.nodes[static_cast<std::size_t>(nodeNumber)];
  Row found = row(nodeNumber);
  for (std::size_t i = 0; i < node.moves.size(); ++i) {
    const RunTimeDim& move = node.moves[i];
    if (move.splitArg < 0 || move.startDim < 0) continue;
    addSplit(found, move, ir_.CreateAdd(found.starts[i], linear(move.within)));
  }
  return found;
}

KernelBody::Value KernelBody::gather(int nodeNumber) {
  const Node& node = kernel_.nodes[static_cast<std::size_t>(nodeNumber)];
  const Row found = place(nodeNumber);
  Value loaded = loadAt(node.access, found.offset);
  if (found.inside == nullptr) return loaded;
  Value outside = literalValue(laneType(node.dtype), node.literal);
  if (loaded->getType()->isVectorTy()) outside = splat(outside);
  return ir_.CreateSelect(found.inside, loaded, outside);
}

// ---- reductions

KernelBody::Value KernelBody::identity(DType dtype, Reduction reduction) {
  llvm::Type* type = laneType(dtype);
  const bool isReal = type->isFloatingPointTy();
  const auto real = [&](double value) -> Value { return llvm::ConstantFP::get(type, value); };
  const auto integer = [&](std::int64_t value) -> Value {
    return llvm::ConstantInt::get(type, static_cast<std::uint64_t>(value), true);
  };
  const std::int64_t bits = dtype == DType::U8 ? 8 : static_cast<std::int64_t>(type->getScalarSizeInBits());
  const std::int64_t least = dtype == DType::U8 ? 0 : std::int64_t(-1) << (bits - 1);
  const std::int64_t greatest = dtype == DType::U8 ? 255 : ~(std::int64_t(-1) << (bits - 1));
  switch (reduction) {
    case Reduction::Sum:
      return isReal ? real(-0.0) : integer(0);
    case Reduction::Prod:
      return isReal ? real(1) : integer(1);
    case Reduction::Max:
      return isReal ? real(-std::numeric_limits<double>::infinity()) : integer(least);
    case Reduction::Min:
      return isReal ? real(std::numeric_limits<double>::infinity()) : integer(greatest);
    case Reduction::Any:
      return integer(0);
    case Reduction::All:
      return integer(1);
  }
  GSHARD_UNREACHABLE("kind of reduction");
}

KernelBody::Value KernelBody::combine(Reduction reduction, DType dtype, Value a, Value b) {
  const std::array<Value, 2> operands = {a, b};
  switch (reduction) {
    case Reduction::Sum:
      return emitScalarFn(ir_, ScalarFn::Add, dtype, dtype, operands);
    case Reduction::Prod:
      return emitScalarFn(ir_, ScalarFn::Mul, dtype, dtype, operands);
    case Reduction::Max:
      return emitScalarFn(ir_, ScalarFn::Maximum, dtype, dtype, operands);
    case Reduction::Min:
      return emitScalarFn(ir_, ScalarFn::Minimum, dtype, dtype, operands);
    case Reduction::Any:
      return emitScalarFn(ir_, ScalarFn::Or, DType::Bool, DType::Bool, operands);
    case Reduction::All:
      return emitScalarFn(ir_, ScalarFn::And, DType::Bool, DType::Bool, operands);
  }
  GSHARD_UNREACHABLE("kind of reduction");
}

}  // namespace gshard
