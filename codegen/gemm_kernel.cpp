// The microkernel: a tile of the result in registers, one step of k after another; and the vector helpers that the
// packing kernels use too.
#include <vector>

#include "codegen/gemm_emit.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"
#include "support/check.h"

namespace gshard {

// ---- vectors

VectorBuilder::VectorBuilder(llvm::IRBuilder<>& builder, const Target& target, GemmElement element,
                             std::int64_t maxLanes)
    : builder_(builder),
      shape_(target.shape()),
      bytes_(element == GemmElement::F32 ? 4 : 8),
      lanes_(std::min(maxLanes, shape_.lanes(bytes_))),
      elementType_(element == GemmElement::F32 ? builder.getFloatTy() : builder.getDoubleTy()),
      vectorType_(llvm::FixedVectorType::get(elementType_, static_cast<unsigned>(lanes_))) {}

llvm::Value* VectorBuilder::zero() const {
  return llvm::Constant::getNullValue(vectorType_);
}

llvm::Value* VectorBuilder::at(llvm::Value* base, std::int64_t index) {
  return at(base, builder_.getInt64(static_cast<std::uint64_t>(index)));
}

llvm::Value* VectorBuilder::at(llvm::Value* base, llvm::Value* index) {
  return builder_.CreateInBoundsGEP(elementType_, base, index);
}

llvm::Constant* VectorBuilder::mask(std::int64_t count) {
  std::vector<llvm::Constant*> bits;
  for (std::int64_t lane = 0; lane < lanes_; ++lane) bits.push_back(builder_.getInt1(lane < count));
  return llvm::ConstantVector::get(bits);
}

llvm::Value* VectorBuilder::load(llvm::Value* address, std::int64_t count, bool aligned) {
  const llvm::Align align(static_cast<std::uint64_t>(aligned ? lanes_ * bytes_ : bytes_));
  if (count >= lanes_) return builder_.CreateAlignedLoad(vectorType_, address, align);
  if (shape_.hasMaskedLoads) return builder_.CreateMaskedLoad(vectorType_, address, align, mask(count), zero());
  // Without masks a short vector is read in pieces, and widened with zeros.
  auto* shortType = llvm::FixedVectorType::get(elementType_, static_cast<unsigned>(count));
  llvm::Value* piece = builder_.CreateAlignedLoad(shortType, address, llvm::Align(static_cast<std::uint64_t>(bytes_)));
  llvm::SmallVector<int, 16> lanes;
  for (std::int64_t lane = 0; lane < lanes_; ++lane) lanes.push_back(static_cast<int>(lane < count ? lane : count));
  return builder_.CreateShuffleVector(piece, llvm::Constant::getNullValue(shortType), lanes);
}

void VectorBuilder::store(llvm::Value* value, llvm::Value* address, std::int64_t count, bool aligned) {
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

llvm::Value* VectorBuilder::loadElement(llvm::Value* address) {
  return builder_.CreateAlignedLoad(elementType_, address, llvm::Align(static_cast<std::uint64_t>(bytes_)));
}

void VectorBuilder::storeElement(llvm::Value* value, llvm::Value* address) {
  builder_.CreateAlignedStore(value, address, llvm::Align(static_cast<std::uint64_t>(bytes_)));
}

llvm::Value* VectorBuilder::splat(llvm::Value* element) {
  return builder_.CreateVectorSplat(static_cast<unsigned>(lanes_), element);
}

llvm::Value* VectorBuilder::multiplyAdd(llvm::Value* a, llvm::Value* b, llvm::Value* sum) {
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

void emitLoop(llvm::IRBuilder<>& builder, const std::string& name, llvm::Value* count, std::int64_t step,
              const std::function<void(llvm::Value*)>& body) {
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
  llvm::Value* next = builder.CreateNSWAdd(index, builder.getInt64(static_cast<std::uint64_t>(step)));
  index->addIncoming(next, builder.GetInsertBlock());
  keepLoop(builder, builder.CreateCondBr(builder.CreateICmpSLT(next, count), loop, after));
  builder.SetInsertPoint(after);
}

// ---- the kernel

static std::string symbolOf(const KernelShape& shape) {
  std::string name = "gshard_gemm_kernel";
  name += shape.element == GemmElement::F32 ? "_f32" : "_f64";
  name += "_" + std::to_string(shape.height) + "x" + std::to_string(shape.columns);
  if (shape.adjacentRows) name += "_rows";
  if (shape.adjacentSteps) name += "_steps";
  if (shape.wholeVectorsB) name += "_whole";
  if (shape.prefetchB) name += "_prefetch";
  return name;
}

namespace {

// Emits one kernel; the members are what its blocks share.
class MicrokernelEmitter {
 public:
  MicrokernelEmitter(llvm::Module& module, const Target& target, const KernelShape& shape)
      : builder_(module.getContext()), vectors_(builder_, target, shape.element), shape_(shape) {
    llvm::Type* pointer = builder_.getPtrTy();
    llvm::Type* integer = builder_.getInt64Ty();
    auto* type =
        llvm::FunctionType::get(builder_.getVoidTy(), {integer, pointer, pointer, pointer, integer, pointer}, false);
    function_ = llvm::Function::Create(type, llvm::Function::InternalLinkage, symbolOf(shape), module);
    target.prepareFunction(*function_);
    for (const unsigned argument : {1u, 2u, 3u, 5u}) {
      function_->addParamAttr(argument, llvm::Attribute::NoAlias);
      function_->addParamAttr(argument, llvm::Attribute::NoCapture);
      if (argument != 3) function_->addParamAttr(argument, llvm::Attribute::ReadOnly);
    }
    vectorsPerRow_ = (shape.columns + vectors_.lanes() - 1) / vectors_.lanes();
  }

  llvm::Function* emit() {
    llvm::LLVMContext& context = builder_.getContext();
    llvm::BasicBlock* entry = llvm::BasicBlock::Create(context, "entry", function_);
    llvm::BasicBlock* loop = llvm::BasicBlock::Create(context, "steps", function_);
    llvm::BasicBlock* finish = llvm::BasicBlock::Create(context, "finish", function_);
    builder_.SetInsertPoint(entry);
    readStrides();
    placeRows();
    const std::vector<llvm::Value*> initial = initialTile();
    llvm::BasicBlock* start = builder_.GetInsertBlock();
    builder_.CreateCondBr(builder_.CreateICmpSGT(argument(0), builder_.getInt64(0)), loop, finish);
    const std::vector<llvm::Value*> summed = emitSteps(start, loop, finish, initial);
    builder_.SetInsertPoint(finish);
    const std::vector<llvm::Value*> result = merge(start, initial, loop, summed);
    // Read once more, so that the addresses of the tile are found again and hold no registers during the loop.
    strideCRow_ = readStride(3, /*again=*/true);
    storeTile(result);
    builder_.CreateRetVoid();
    return function_;
  }

 private:
  // Rows of A that share one pointer: it, and once, twice and three times the stride after it, which are all that
  // addressing offers. One pointer per row would fill the registers.
  static constexpr std::int64_t kRowsPerPointer = 4;

  llvm::Value* argument(unsigned index) { return function_->getArg(index); }
  std::int64_t lanesOf(std::int64_t vector) const {
    return std::min(vectors_.lanes(), shape_.columns - vector * vectors_.lanes());
  }
  std::int64_t pointersA() const {
    return shape_.adjacentRows ? 1 : (shape_.height + kRowsPerPointer - 1) / kRowsPerPointer;
  }
  llvm::Value* times(llvm::Value* value, std::int64_t factor) {
    return factor == 1 ? value : builder_.CreateMul(value, builder_.getInt64(static_cast<std::uint64_t>(factor)));
  }
  // `bytes` after `base`.
  llvm::Value* after(llvm::Value* base, llvm::Value* bytes) {
    return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), base, bytes);
  }

  llvm::Value* readStride(std::uint64_t index, bool again = false) {
    llvm::Type* integer = builder_.getInt64Ty();
    return builder_.CreateLoad(integer, builder_.CreateConstInBoundsGEP1_64(integer, argument(5), index), again);
  }

  void readStrides() {
    llvm::Value* element = builder_.getInt64(static_cast<std::uint64_t>(vectors_.bytes()));
    strideARow_ = shape_.adjacentRows ? element : readStride(0);
    strideAK_ = shape_.adjacentSteps ? element : readStride(1);
    strideBK_ = readStride(2);
    strideCRow_ = readStride(3);
  }

  void placeRows() {
    for (std::int64_t i = 0; i < std::min(kRowsPerPointer, shape_.height); ++i)
      rowOffsets_.push_back(times(strideARow_, i));
    for (std::int64_t i = 0; i < pointersA(); ++i)
      startsA_.push_back(i == 0 ? argument(1) : after(startsA_.back(), times(strideARow_, kRowsPerPointer)));
  }

  std::vector<llvm::Value*> merge(llvm::BasicBlock* first, const std::vector<llvm::Value*>& firstValues,
                                  llvm::BasicBlock* second, const std::vector<llvm::Value*>& secondValues) {
    std::vector<llvm::Value*> merged;
    for (std::size_t i = 0; i < firstValues.size(); ++i) {
      llvm::PHINode* phi = builder_.CreatePHI(vectors_.vectorType(), 2);
      phi->addIncoming(firstValues[i], first);
      phi->addIncoming(secondValues[i], second);
      merged.push_back(phi);
    }
    return merged;
  }

  // Calls `visit` with the address and the lanes of every vector of the tile, row by row.
  void forEachOfTile(const std::function<void(llvm::Value*, std::int64_t)>& visit) {
    std::vector<llvm::Value*> offsets;
    for (std::int64_t i = 0; i < kRowsPerPointer; ++i) offsets.push_back(times(strideCRow_, i));
    llvm::Value* pointer = argument(3);
    for (std::int64_t i = 0; i < shape_.height; ++i) {
      const auto offset = static_cast<std::size_t>(i % kRowsPerPointer);
      if (i > 0 && offset == 0) pointer = after(pointer, times(strideCRow_, kRowsPerPointer));
      llvm::Value* row = offset == 0 ? pointer : after(pointer, offsets[offset]);
      for (std::int64_t v = 0; v < vectorsPerRow_; ++v) visit(vectors_.at(row, v * vectors_.lanes()), lanesOf(v));
    }
  }

  // What is there if it is added to, else zeros. A branch, although it doubles every value of the tile: a load under a
  // false mask waits for memory all the same, and where the sum is short nothing hides that.
  std::vector<llvm::Value*> initialTile() {
    llvm::BasicBlock* entry = builder_.GetInsertBlock();
    llvm::BasicBlock* read = llvm::BasicBlock::Create(builder_.getContext(), "read", function_, entry->getNextNode());
    llvm::BasicBlock* start = llvm::BasicBlock::Create(builder_.getContext(), "start", function_, read->getNextNode());
    builder_.CreateCondBr(builder_.CreateICmpNE(argument(4), builder_.getInt64(0)), read, start);
    builder_.SetInsertPoint(read);
    std::vector<llvm::Value*> tile;
    forEachOfTile([&](llvm::Value* address, std::int64_t lanes) { tile.push_back(vectors_.load(address, lanes)); });
    builder_.CreateBr(start);
    builder_.SetInsertPoint(start);
    return merge(entry, std::vector<llvm::Value*>(tile.size(), vectors_.zero()), read, tile);
  }

  void storeTile(const std::vector<llvm::Value*>& tile) {
    std::size_t next = 0;
    forEachOfTile([&](llvm::Value* address, std::int64_t lanes) { vectors_.store(tile[next++], address, lanes); });
  }

  std::vector<llvm::Value*> emitSteps(llvm::BasicBlock* start, llvm::BasicBlock* loop, llvm::BasicBlock* finish,
                                      const std::vector<llvm::Value*>& initial) {
    builder_.SetInsertPoint(loop);
    llvm::PHINode* left = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    left->addIncoming(argument(0), start);
    llvm::PHINode* b = builder_.CreatePHI(builder_.getPtrTy(), 2);
    b->addIncoming(argument(2), start);
    std::vector<llvm::PHINode*> a, sums;
    for (llvm::Value* pointer : startsA_) {
      a.push_back(builder_.CreatePHI(builder_.getPtrTy(), 2));
      a.back()->addIncoming(pointer, start);
    }
    for (llvm::Value* value : initial) {
      sums.push_back(builder_.CreatePHI(vectors_.vectorType(), 2));
      sums.back()->addIncoming(value, start);
    }
    const std::vector<llvm::Value*> summed = emitStep(a, b, sums);
    for (std::size_t i = 0; i < summed.size(); ++i) sums[i]->addIncoming(summed[i], loop);
    llvm::Value* remaining = builder_.CreateNSWSub(left, builder_.getInt64(1));
    left->addIncoming(remaining, loop);
    for (llvm::PHINode* pointer : a) pointer->addIncoming(after(pointer, strideAK_), loop);
    b->addIncoming(after(b, strideBK_), loop);
    llvm::BranchInst* branch =
        builder_.CreateCondBr(builder_.CreateICmpNE(remaining, builder_.getInt64(0)), loop, finish);
    keepLoop(builder_, branch);
    return summed;
  }

  std::vector<llvm::Value*> emitStep(const std::vector<llvm::PHINode*>& a, llvm::Value* b,
                                     const std::vector<llvm::PHINode*>& sums) {
    std::vector<llvm::Value*> columns, summed;
    for (std::int64_t v = 0; v < vectorsPerRow_; ++v) {
      const std::int64_t lanes = shape_.wholeVectorsB ? vectors_.lanes() : lanesOf(v);
      columns.push_back(vectors_.load(vectors_.at(b, v * vectors_.lanes()), lanes));
    }
    if (shape_.prefetchB) prefetchNext(b);
    for (std::int64_t row = 0; row < shape_.height; ++row) {
      llvm::Value* address = rowAddress(a, row);
      llvm::Value* factor = vectors_.splat(vectors_.loadElement(address));
      for (llvm::Value* column : columns) summed.push_back(vectors_.multiplyAdd(factor, column, sums[summed.size()]));
    }
    return summed;
  }

  llvm::Value* rowAddress(const std::vector<llvm::PHINode*>& a, std::int64_t row) {
    if (shape_.adjacentRows) return vectors_.at(a[0], row);
    llvm::Value* pointer = a[static_cast<std::size_t>(row / kRowsPerPointer)];
    const auto offset = static_cast<std::size_t>(row % kRowsPerPointer);
    return offset == 0 ? pointer : after(pointer, rowOffsets_[offset]);
  }

  // The next columns of the same row of B, one cache line at a time.
  void prefetchNext(llvm::Value* b) {
    const std::int64_t line = 64 / vectors_.bytes();
    for (std::int64_t offset = 0; offset < shape_.columns; offset += line) {
      llvm::Value* address = builder_.CreateGEP(vectors_.elementType(), b,
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
  llvm::Value *strideARow_ = nullptr, *strideAK_ = nullptr, *strideBK_ = nullptr, *strideCRow_ = nullptr;  // bytes
  std::vector<llvm::Value*> rowOffsets_;  // of the rows that share a pointer, bytes
  std::vector<llvm::Value*> startsA_;     // one per pointer
};

}  // namespace

llvm::Function* gemmKernel(llvm::Module& module, const Target& target, const KernelShape& shape) {
  if (llvm::Function* known = module.getFunction(symbolOf(shape))) return known;
  return MicrokernelEmitter(module, target, shape).emit();
}

}  // namespace gshard
