// The microkernel: a tile of the result in registers, one step of k after another. Every stride is a constant, so that
// addresses are immediates; and the vector helpers that the packing kernels use too.
#include <vector>

#include "codegen/gemm_emit.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"
#include "support/check.h"

namespace gshard {

using llvm::Value;

// ---- vectors

VectorBuilder::VectorBuilder(llvm::IRBuilder<>& builder, const Target& target, GemmElement element,
                             std::int64_t maxLanes)
    : builder_(builder),
      shape_(target.shape()),
      bytes_(element == GemmElement::F32 ? 4 : 8),
      lanes_(std::min(maxLanes, shape_.lanes(bytes_))),
      elementType_(element == GemmElement::F32 ? builder.getFloatTy() : builder.getDoubleTy()),
      vectorType_(llvm::FixedVectorType::get(elementType_, static_cast<unsigned>(lanes_))) {}

Value* VectorBuilder::zero() const {
  return llvm::Constant::getNullValue(vectorType_);
}

Value* VectorBuilder::at(Value* base, std::int64_t index) {
  return at(base, builder_.getInt64(static_cast<std::uint64_t>(index)));
}

Value* VectorBuilder::at(Value* base, Value* index) {
  return builder_.CreateInBoundsGEP(elementType_, base, index);
}

llvm::Constant* VectorBuilder::mask(std::int64_t count) {
  std::vector<llvm::Constant*> bits;
  for (std::int64_t lane = 0; lane < lanes_; ++lane) bits.push_back(builder_.getInt1(lane < count));
  return llvm::ConstantVector::get(bits);
}

Value* VectorBuilder::load(Value* address, std::int64_t count, bool aligned) {
  const llvm::Align align(static_cast<std::uint64_t>(aligned ? lanes_ * bytes_ : bytes_));
  if (count >= lanes_) return builder_.CreateAlignedLoad(vectorType_, address, align);
  if (shape_.hasMaskedLoads) return builder_.CreateMaskedLoad(vectorType_, address, align, mask(count), zero());
  // Without masks a short vector is read in pieces, and widened with zeros.
  auto* shortType = llvm::FixedVectorType::get(elementType_, static_cast<unsigned>(count));
  Value* piece = builder_.CreateAlignedLoad(shortType, address, llvm::Align(static_cast<std::uint64_t>(bytes_)));
  llvm::SmallVector<int, 16> lanes;
  for (std::int64_t lane = 0; lane < lanes_; ++lane) lanes.push_back(static_cast<int>(lane < count ? lane : count));
  return builder_.CreateShuffleVector(piece, llvm::Constant::getNullValue(shortType), lanes);
}

void VectorBuilder::store(Value* value, Value* address, std::int64_t count, bool aligned) {
  const llvm::Align align(static_cast<std::uint64_t>(aligned ? lanes_ * bytes_ : bytes_));
  if (count >= lanes_) {
    builder_.CreateAlignedStore(value, address, align);
  } else if (shape_.hasMaskedStores) {
    builder_.CreateMaskedStore(value, address, align, mask(count));
  } else {
    llvm::SmallVector<int, 16> lanes;
    for (std::int64_t lane = 0; lane < count; ++lane) lanes.push_back(static_cast<int>(lane));
    builder_.CreateAlignedStore(builder_.CreateShuffleVector(value, lanes), address,
                                llvm::Align(static_cast<std::uint64_t>(bytes_)));
  }
}

Value* VectorBuilder::loadElement(Value* address) {
  return builder_.CreateAlignedLoad(elementType_, address, llvm::Align(static_cast<std::uint64_t>(bytes_)));
}

void VectorBuilder::storeElement(Value* value, Value* address) {
  builder_.CreateAlignedStore(value, address, llvm::Align(static_cast<std::uint64_t>(bytes_)));
}

Value* VectorBuilder::splat(Value* element) {
  return builder_.CreateVectorSplat(static_cast<unsigned>(lanes_), element);
}

Value* VectorBuilder::multiplyAdd(Value* a, Value* b, Value* sum) {
  if (shape_.hasFma) return builder_.CreateIntrinsic(vectorType_, llvm::Intrinsic::fma, {a, b, sum});
  return builder_.CreateFAdd(sum, builder_.CreateFMul(a, b));
}

void keepLoop(llvm::IRBuilder<>& builder, llvm::BranchInst* branch) {
  llvm::LLVMContext& context = builder.getContext();
  const auto option = [&context](const char* name, llvm::Metadata* value) {
    llvm::SmallVector<llvm::Metadata*, 2> parts{llvm::MDString::get(context, name)};
    if (value) parts.push_back(value);
    return llvm::MDNode::get(context, parts);
  };
  llvm::Metadata* off = llvm::ConstantAsMetadata::get(builder.getInt1(false));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(
      context, {nullptr, option("llvm.loop.unroll.disable", nullptr), option("llvm.loop.vectorize.enable", off)});
  loop->replaceOperandWith(0, loop);
  branch->setMetadata(llvm::LLVMContext::MD_loop, loop);
}

void emitLoop(llvm::IRBuilder<>& builder, const std::string& name, Value* count, std::int64_t step,
              const std::function<void(Value*)>& body) {
  llvm::Function* function = builder.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = builder.getContext();
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(context, name, function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context, name + ".end", function);
  builder.CreateCondBr(builder.CreateICmpSGT(count, builder.getInt64(0)), loop, after);
  builder.SetInsertPoint(loop);
  llvm::PHINode* index = builder.CreatePHI(builder.getInt64Ty(), 2);
  index->addIncoming(builder.getInt64(0), before);
  body(index);
  Value* next = builder.CreateNSWAdd(index, builder.getInt64(static_cast<std::uint64_t>(step)));
  index->addIncoming(next, builder.GetInsertBlock());
  keepLoop(builder, builder.CreateCondBr(builder.CreateICmpSLT(next, count), loop, after));
  builder.SetInsertPoint(after);
}

// ---- the kernel

static std::string symbolOf(const KernelShape& shape) {
  std::string name = "gshard_gemm_kernel";
  name += shape.element == GemmElement::F32 ? "_f32" : "_f64";
  name += "_" + std::to_string(shape.height) + "x" + std::to_string(shape.columns);
  for (const std::int64_t stride : {shape.strideARow, shape.strideAK, shape.strideBK, shape.strideCRow}) {
    name += "_" + std::to_string(stride);
  }
  if (shape.alignedB) name += "_packed";
  if (shape.prefetchB) name += "_prefetch";
  return name;
}

namespace {

// Emits one kernel; the members are what its blocks share.
class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const Target& target, const KernelShape& shape)
      : builder_(module.getContext()), vectors_(builder_, target, shape.element), shape_(shape) {
    llvm::Type* pointer = builder_.getPtrTy();
    llvm::Type* integer = builder_.getInt64Ty();
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {integer, pointer, pointer, pointer, integer}, false);
    function_ = llvm::Function::Create(type, llvm::Function::InternalLinkage, symbolOf(shape), module);
    target.prepareFunction(*function_);
    for (const unsigned argument : {1u, 2u, 3u}) {
      function_->addParamAttr(argument, llvm::Attribute::NoAlias);
      function_->addParamAttr(argument, llvm::Attribute::NoCapture);
      if (argument < 3) function_->addParamAttr(argument, llvm::Attribute::ReadOnly);
    }
    vectorsPerRow_ = (shape.columns + vectors_.lanes() - 1) / vectors_.lanes();
  }

  llvm::Function* emit() {
    llvm::LLVMContext& context = builder_.getContext();
    llvm::BasicBlock* entry = llvm::BasicBlock::Create(context, "entry", function_);
    llvm::BasicBlock* load = llvm::BasicBlock::Create(context, "accumulate", function_);
    llvm::BasicBlock* start = llvm::BasicBlock::Create(context, "start", function_);
    llvm::BasicBlock* loop = llvm::BasicBlock::Create(context, "steps", function_);
    llvm::BasicBlock* finish = llvm::BasicBlock::Create(context, "finish", function_);
    builder_.SetInsertPoint(entry);
    builder_.CreateCondBr(builder_.CreateICmpNE(argument(4), builder_.getInt64(0)), load, start);
    builder_.SetInsertPoint(load);
    const std::vector<Value*> loaded = loadTile();
    builder_.CreateBr(start);
    builder_.SetInsertPoint(start);
    const std::vector<Value*> initial = merge(entry, std::vector<Value*>(loaded.size(), vectors_.zero()), load, loaded);
    builder_.CreateCondBr(builder_.CreateICmpSGT(argument(0), builder_.getInt64(0)), loop, finish);
    const std::vector<Value*> summed = emitSteps(start, loop, finish, initial);
    builder_.SetInsertPoint(finish);
    storeTile(merge(start, initial, loop, summed));
    builder_.CreateRetVoid();
    return function_;
  }

 private:
  Value* argument(unsigned index) { return function_->getArg(index); }
  std::int64_t lanesOf(std::int64_t vector) const {
    return std::min(vectors_.lanes(), shape_.columns - vector * vectors_.lanes());
  }

  std::vector<Value*> merge(llvm::BasicBlock* first, const std::vector<Value*>& firstValues, llvm::BasicBlock* second,
                            const std::vector<Value*>& secondValues) {
    std::vector<Value*> merged;
    for (std::size_t i = 0; i < firstValues.size(); ++i) {
      llvm::PHINode* phi = builder_.CreatePHI(vectors_.vectorType(), 2);
      phi->addIncoming(firstValues[i], first);
      phi->addIncoming(secondValues[i], second);
      merged.push_back(phi);
    }
    return merged;
  }

  Value* tileAddress(std::int64_t row, std::int64_t vector) {
    return vectors_.at(argument(3), row * shape_.strideCRow + vector * vectors_.lanes());
  }

  std::vector<Value*> loadTile() {
    std::vector<Value*> tile;
    for (std::int64_t row = 0; row < shape_.height; ++row) {
      for (std::int64_t v = 0; v < vectorsPerRow_; ++v) tile.push_back(vectors_.load(tileAddress(row, v), lanesOf(v)));
    }
    return tile;
  }

  void storeTile(const std::vector<Value*>& tile) {
    std::size_t next = 0;
    for (std::int64_t row = 0; row < shape_.height; ++row) {
      for (std::int64_t v = 0; v < vectorsPerRow_; ++v) vectors_.store(tile[next++], tileAddress(row, v), lanesOf(v));
    }
  }

  std::vector<Value*> emitSteps(llvm::BasicBlock* start, llvm::BasicBlock* loop, llvm::BasicBlock* finish,
                                const std::vector<Value*>& initial) {
    builder_.SetInsertPoint(loop);
    llvm::PHINode* left = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    llvm::PHINode* a = builder_.CreatePHI(builder_.getPtrTy(), 2);
    llvm::PHINode* b = builder_.CreatePHI(builder_.getPtrTy(), 2);
    left->addIncoming(argument(0), start);
    a->addIncoming(argument(1), start);
    b->addIncoming(argument(2), start);
    std::vector<llvm::PHINode*> phis;
    for (Value* value : initial) {
      phis.push_back(builder_.CreatePHI(vectors_.vectorType(), 2));
      phis.back()->addIncoming(value, start);
    }
    const std::vector<Value*> sums = emitStep(a, b, phis);
    for (std::size_t i = 0; i < sums.size(); ++i) phis[i]->addIncoming(sums[i], loop);
    Value* remaining = builder_.CreateNSWSub(left, builder_.getInt64(1));
    left->addIncoming(remaining, loop);
    a->addIncoming(vectors_.at(a, shape_.strideAK), loop);
    b->addIncoming(vectors_.at(b, shape_.strideBK), loop);
    llvm::BranchInst* branch =
        builder_.CreateCondBr(builder_.CreateICmpNE(remaining, builder_.getInt64(0)), loop, finish);
    keepLoop(builder_, branch);
    return sums;
  }

  std::vector<Value*> emitStep(Value* a, Value* b, const std::vector<llvm::PHINode*>& accumulators) {
    std::vector<Value*> columns, sums;
    for (std::int64_t v = 0; v < vectorsPerRow_; ++v) {
      const std::int64_t lanes = shape_.alignedB ? vectors_.lanes() : lanesOf(v);
      columns.push_back(vectors_.load(vectors_.at(b, v * vectors_.lanes()), lanes, shape_.alignedB));
    }
    if (shape_.prefetchB) prefetchNext(b);
    for (std::int64_t row = 0; row < shape_.height; ++row) {
      Value* factor = vectors_.splat(vectors_.loadElement(vectors_.at(a, row * shape_.strideARow)));
      for (Value* column : columns) sums.push_back(vectors_.multiplyAdd(factor, column, accumulators[sums.size()]));
    }
    return sums;
  }

  // The next columns of the same row of B, one cache line at a time.
  void prefetchNext(Value* b) {
    const std::int64_t line = 64 / vectors_.bytes();
    for (std::int64_t offset = 0; offset < shape_.columns; offset += line) {
      Value* address = builder_.CreateGEP(vectors_.elementType(), b,
                                          builder_.getInt64(static_cast<std::uint64_t>(shape_.columns + offset)));
      builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                               {address, builder_.getInt32(0), builder_.getInt32(3), builder_.getInt32(1)});
    }
  }

  llvm::IRBuilder<> builder_;
  VectorBuilder vectors_;
  const KernelShape shape_;
  llvm::Function* function_ = nullptr;
  std::int64_t vectorsPerRow_ = 1;
};

}  // namespace

llvm::Function* gemmKernel(llvm::Module& module, const Target& target, const KernelShape& shape) {
  if (llvm::Function* known = module.getFunction(symbolOf(shape))) return known;
  return KernelEmitter(module, target, shape).emit();
}

}  // namespace gshard
