// Loops, memory and node values of kernels: see kernel_body.h.
#include "codegen/kernel_body.h"

#include <algorithm>

#include "codegen/llvm_math.h"
#include "llvm/IR/Module.h"
#include "support/check.h"

namespace gshard {

// Byte offsets in gshard_rt_context.
namespace {
constexpr std::int64_t kContextExtents = 8;
}  // namespace

KernelBody::KernelBody(llvm::Function& function, const LoopKernel& kernel, const TargetShape& shape)
    : kernel_(kernel), shape_(shape), function_(function), ir_(function.getContext()) {
  ir_.SetInsertPoint(llvm::BasicBlock::Create(function.getContext(), "entry", &function));
  llvm::Type* pointer = ir_.getPtrTy();
  context_ = function.getArg(0);
  arena_ = ir_.CreateLoad(pointer, context_, "arena");
  extents_ = ir_.CreateLoad(pointer, ir_.CreateConstGEP1_64(ir_.getInt8Ty(), context_, kContextExtents), "extents");
  Value args = function.getArg(1);
  std::size_t next = 0;
  for (; next < kernel.buffers.size(); ++next) {
    Value offset = ir_.CreateLoad(ir_.getInt64Ty(), ir_.CreateConstGEP1_64(ir_.getInt64Ty(), args, next));
    bases_.push_back(ir_.CreateGEP(ir_.getInt8Ty(), arena_, offset, "buffer"));
  }
  int extras = 0;
  const auto uses = [&](int arg) { extras = std::max(extras, arg + 1); };
  const auto usesIndex = [&](const LinearIndex& linear) {
    for (const auto& [arg, stride] : linear.tileOffsets) uses(arg);
  };
  for (const KernelLoop& loop : kernel.loops) {
    uses(loop.liveArg);
    uses(loop.sizeArg);
  }
  for (const Node& node : kernel.nodes) {
    uses(node.siteArg);
    usesIndex(node.position);
    usesIndex(node.access.index);
    for (const RunTimeDim& move : node.moves) {
      uses(move.splitArg);
      usesIndex(move.position);
      usesIndex(move.within);
    }
  }
  uses(kernel.totalsPartArg);
  uses(kernel.workspaceArg);
  uses(kernel.indexOffsetArg);
  uses(kernel.splitArg);
  uses(kernel.siteArg);
  usesIndex(kernel.position);
  for (int i = 0; i < extras; ++i, ++next) {
    extras_.push_back(ir_.CreateLoad(ir_.getInt64Ty(), ir_.CreateConstGEP1_64(ir_.getInt64Ty(), args, next), "extra"));
  }
  index_.assign(kernel.loops.size(), number(0));
  found_.values.assign(kernel.nodes.size(), nullptr);
  found_.rows.assign(kernel.nodes.size(), Row{});
  for (std::size_t loop = 0; loop < kernel.loops.size(); ++loop) depends_.push_back(dependsOnLoop(kernel, loop));
  vectorLoop_ = kernel.loops.size();
}

// ---- loops

KernelBody::Value KernelBody::tileBegin(int arg) {
  Value pair = ir_.CreateGEP(ir_.getInt64Ty(), extents_, ir_.CreateShl(extra(arg), 1));
  return ir_.CreateLoad(ir_.getInt64Ty(), pair, "begin");
}

KernelBody::Value KernelBody::tileLive(int arg) {
  Value at = ir_.CreateOr(ir_.CreateShl(extra(arg), 1), number(1));
  return ir_.CreateLoad(ir_.getInt64Ty(), ir_.CreateGEP(ir_.getInt64Ty(), extents_, at), "live");
}

KernelBody::Value KernelBody::live(std::size_t loop) {
  const KernelLoop& info = kernel_.loops[loop];
  if (info.sizeArg >= 0) return extra(info.sizeArg);
  if (info.liveArg < 0) return number(info.size);
  return ir_.CreateMul(tileLive(info.liveArg), number(info.liveFactor));
}

std::pair<KernelBody::Value, KernelBody::Value> KernelBody::outerRange() {
  Value size = live(0);
  if (kernel_.chunks == 1 && kernel_.loops[0].sizeArg < 0) return {number(0), size};
  const auto clamped = [&](Value chunk) {
    Value at = ir_.CreateMul(chunk, number(kernel_.chunkSize));
    return ir_.CreateSelect(ir_.CreateICmpSLT(at, size), at, size);
  };
  return {clamped(function_.getArg(2)), clamped(function_.getArg(3))};
}

KernelBody::Value KernelBody::forLoop(Value begin, Value end, std::int64_t step,
                                      const std::function<void(Value)>& body) {
  llvm::LLVMContext& context = function_.getContext();
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock* head = llvm::BasicBlock::Create(context, "head", &function_);
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(context, "body", &function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "after", &function_);
  ir_.CreateBr(head);
  ir_.SetInsertPoint(head);
  llvm::PHINode* i = ir_.CreatePHI(ir_.getInt64Ty(), 2, "i");
  i->addIncoming(begin, before);
  ir_.CreateCondBr(ir_.CreateICmpSLT(i, end), inside, after);
  ir_.SetInsertPoint(inside);
  const Values outer = found_;  // what the body finds does not dominate what follows the loop
  body(i);
  found_ = outer;
  i->addIncoming(ir_.CreateNSWAdd(i, number(step)), ir_.GetInsertBlock());
  ir_.CreateBr(head);
  ir_.SetInsertPoint(after);
  return i;
}

KernelBody::Value KernelBody::forWholeSteps(Value begin, Value end, std::int64_t step,
                                            const std::function<void(Value)>& body) {
  return forLoop(begin, step == 1 ? end : ir_.CreateNSWSub(end, number(step - 1)), step, body);
}

void KernelBody::forVectors(Value begin, Value end, std::size_t loop, std::int64_t lanes,
                            const std::function<void(Value)>& body) {
  setLanes(loop, lanes);
  forLoop(begin, end, lanes, [&](Value i) {
    setIndex(loop, i);
    if (!isWhole(loop, lanes)) {
      // Compared as 32 bits, which fill one register: what is left is cut to the lanes first.
      std::vector<llvm::Constant*> numbers;
      for (std::int64_t lane = 0; lane < lanes; ++lane) numbers.push_back(ir_.getInt32(static_cast<unsigned>(lane)));
      Value left = ir_.CreateNSWSub(end, i);
      left = ir_.CreateTrunc(ir_.CreateSelect(ir_.CreateICmpSLT(left, number(lanes)), left, number(lanes)),
                             ir_.getInt32Ty());
      mask_ = ir_.CreateICmpUGT(splat(left), llvm::ConstantVector::get(numbers), "mask");
    }
    body(i);
    mask_ = nullptr;
  });
  setLanes(loop, 1);
}

void KernelBody::ifThen(Value condition, const std::function<void()>& body) {
  llvm::BasicBlock* then = llvm::BasicBlock::Create(function_.getContext(), "then", &function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(function_.getContext(), "after", &function_);
  ir_.CreateCondBr(condition, then, after);
  ir_.SetInsertPoint(then);
  const Values outer = found_;
  body();
  found_ = outer;
  ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
}

// ---- lanes

void KernelBody::setLanes(std::size_t vectorLoop, std::int64_t lanes) {
  vectorLoop_ = vectorLoop;
  lanes_ = lanes;
}

std::int64_t KernelBody::chooseLanes(std::size_t vectorLoop) const {
  if (vectorLoop >= kernel_.loops.size()) return 1;
  std::int64_t narrowest = 8;
  for (const DType dtype : kernel_.buffers) {
    // u8 and bool are I32 lanes or masks; they do not make vectors wider.
    narrowest = std::min(narrowest, std::max<std::int64_t>(byteSize(dtype), 4));
  }
  std::int64_t lanes = shape_.lanes(narrowest);
  const std::int64_t size = kernel_.loops[vectorLoop].knownSize();
  while (lanes > 1 && (canMask(vectorLoop) ? lanes >= 2 * size : lanes > size)) lanes /= 2;
  const std::vector<bool>& depends = depends_[vectorLoop];
  for (std::size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& node = kernel_.nodes[i];
    // A fault names one element, so what may fail is evaluated one by one.
    for (const int input : node.inputs) {
      if (!node.moves.empty() && depends[static_cast<std::size_t>(input)]) return 1;
    }
    for (const RunTimeDim& move : node.moves) {
      if (move.splitArg >= 0 && move.within.scales[vectorLoop] != 0) return 1;  // some lanes are on other devices
    }
    if (node.kind == NodeKind::Apply && node.siteArg >= 0 && depends[i]) return 1;
  }
  return std::max<std::int64_t>(lanes, 1);
}

bool KernelBody::isWhole(std::size_t loop, std::int64_t lanes) const {
  return kernel_.loops[loop].liveArg < 0 && kernel_.loops[loop].knownSize() % lanes == 0;
}

bool KernelBody::canMask(std::size_t loop) const {
  if (!shape_.hasMaskedStores) return false;
  for (const Node& node : kernel_.nodes) {
    switch (node.kind) {
      case NodeKind::Load:
      case NodeKind::Gather:
      case NodeKind::Place:
        if (node.access.index.scales[loop] != 0 && node.access.index.scales[loop] != 1) return false;
        break;
      case NodeKind::Table:
        if (node.position.scales[loop] != 0) return false;
        break;
      case NodeKind::Constant:
      case NodeKind::Index:
      case NodeKind::TotalRows:
      case NodeKind::Apply:
      case NodeKind::Inside:
        break;
    }
  }
  const bool readsTotals = kernel_.totalsPartArg >= 0;
  if (readsTotals && kernel_.totals.index.scales[loop] != 0 && kernel_.totals.index.scales[loop] != 1) return false;
  for (const KernelOutput& output : kernel_.outputs) {
    const std::int64_t scale = output.access.index.scales[loop];
    const bool isReduced = kernel_.kind == KernelKind::Reduce && loop >= kernel_.keptLoops;
    if (!isReduced && scale != 1) return false;
  }
  return true;
}

bool KernelBody::coversRest(std::size_t vectorLoop, std::int64_t lanes) const {
  return isWhole(vectorLoop, lanes) || canMask(vectorLoop);
}

// ---- memory

llvm::Type* KernelBody::laneType(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return ir_.getFloatTy();
    case DType::F64:
      return ir_.getDoubleTy();
    case DType::I32:
      return ir_.getInt32Ty();
    case DType::I64:
      return ir_.getInt64Ty();
    case DType::U8:
      return ir_.getInt32Ty();
    case DType::Bool:
      return ir_.getInt1Ty();
    case DType::BF16:
    case DType::F16:
      return ir_.getFloatTy();
  }
  GSHARD_UNREACHABLE("dtype");
}

llvm::Type* KernelBody::memoryType(DType dtype) {
  if (dtype == DType::BF16 || dtype == DType::F16) return ir_.getInt16Ty();
  return dtype == DType::U8 || dtype == DType::Bool ? ir_.getInt8Ty() : laneType(dtype);
}

KernelBody::Value KernelBody::temporary(llvm::Type* type) {
  llvm::BasicBlock& entry = function_.getEntryBlock();
  llvm::IRBuilder<> atEntry(&entry, entry.begin());
  return atEntry.CreateAlloca(type);
}

KernelBody::Value KernelBody::workspace(int arg, std::int64_t bytesPerChunk) {
  Value own = ir_.CreateMul(function_.getArg(2), number(bytesPerChunk));
  return ir_.CreateGEP(ir_.getInt8Ty(), arena_, ir_.CreateAdd(extra(arg), own), "workspace");
}

KernelBody::Value KernelBody::linear(const LinearIndex& index) {
  Value sum = number(index.offset);
  for (std::size_t i = 0; i < index.scales.size(); ++i) {
    if (index.scales[i] != 0) sum = ir_.CreateAdd(sum, ir_.CreateMul(index_[i], number(index.scales[i])));
  }
  for (const auto& [arg, stride] : index.tileOffsets)
    sum = ir_.CreateAdd(sum, ir_.CreateMul(tileBegin(arg), number(stride)));
  return sum;
}

std::int64_t KernelBody::scaleOfVector(const LinearIndex& index) const {
  return lanes_ > 1 ? index.scales[vectorLoop_] : 0;
}

KernelBody::Value KernelBody::elementPointer(const Access& access, Value moreElements) {
  Value element = linear(access.index);
  if (moreElements != nullptr) element = ir_.CreateAdd(element, moreElements);
  const DType dtype = kernel_.buffers[static_cast<std::size_t>(access.buffer)];
  return ir_.CreateGEP(memoryType(dtype), bases_[static_cast<std::size_t>(access.buffer)], element);
}

KernelBody::Value KernelBody::loadAt(const Access& access, Value moreElements) {
  const DType dtype = kernel_.buffers[static_cast<std::size_t>(access.buffer)];
  llvm::Type* scalar = memoryType(dtype);
  const llvm::Align align(static_cast<std::uint64_t>(byteSize(dtype)));
  Value pointer = elementPointer(access, moreElements);
  const std::int64_t step = scaleOfVector(access.index);
  if (step == 0) return fromMemory(ir_, shape_, dtype, ir_.CreateAlignedLoad(scalar, pointer, align));
  llvm::Type* vector = llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes_));
  if (step == 1 && mask_ == nullptr)
    return fromMemory(ir_, shape_, dtype, ir_.CreateAlignedLoad(vector, pointer, align));
  if (step == 1) {
    Value zeros = llvm::Constant::getNullValue(vector);
    return fromMemory(ir_, shape_, dtype, ir_.CreateMaskedLoad(vector, pointer, align, mask_, zeros));
  }
  Value lanes = llvm::PoisonValue::get(vector);
  for (std::int64_t lane = 0; lane < lanes_; ++lane) {
    Value one = ir_.CreateAlignedLoad(
        scalar, ir_.CreateConstGEP1_64(scalar, pointer, static_cast<std::uint64_t>(lane * step)), align);
    lanes = ir_.CreateInsertElement(lanes, one, static_cast<std::uint64_t>(lane));
  }
  return fromMemory(ir_, shape_, dtype, lanes);
}

void KernelBody::storeAt(const Access& access, Value value, Value moreElements) {
  const DType dtype = kernel_.buffers[static_cast<std::size_t>(access.buffer)];
  llvm::Type* scalar = memoryType(dtype);
  const llvm::Align align(static_cast<std::uint64_t>(byteSize(dtype)));
  value = toMemory(ir_, shape_, dtype, value);
  Value pointer = elementPointer(access, moreElements);
  const std::int64_t step = scaleOfVector(access.index);
  if (step == 1 && mask_ != nullptr) {
    ir_.CreateMaskedStore(value, pointer, align, mask_);
    return;
  }
  if (lanes_ == 1 || step == 1) {
    ir_.CreateAlignedStore(value, pointer, align);
    return;
  }
  for (std::int64_t lane = 0; lane < lanes_; ++lane) {
    Value to = ir_.CreateConstGEP1_64(scalar, pointer, static_cast<std::uint64_t>(lane * step));
    ir_.CreateAlignedStore(ir_.CreateExtractElement(value, static_cast<std::uint64_t>(lane)), to, align);
  }
}

KernelBody::Value KernelBody::splat(Value scalar) {
  if (lanes_ == 1 || scalar->getType()->isVectorTy()) return scalar;
  return ir_.CreateVectorSplat(static_cast<unsigned>(lanes_), scalar);
}

}  // namespace gshard
