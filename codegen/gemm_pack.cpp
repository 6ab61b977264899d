// Packing kernels: panels of an operand copied into the order in which the microkernel reads them. A transposed operand
// costs no more than a plain one: one is a copy, the other goes through transposes in registers. Elements of 16 bits
// are widened on the way, so that kernels exist for f32 and f64 alone.
#include <vector>

#include "codegen/gemm_emit.h"
#include "codegen/memory_lanes.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

namespace gshard {

static const char* nameOf(PackMethod method) {
  switch (method) {
    case PackMethod::Copy:
      return "copy";
    case PackMethod::Transpose:
      return "transpose";
    case PackMethod::Gather:
      return "gather";
  }
  return "";
}

static std::string symbolOf(const PackShape& shape) {
  std::string name = std::string("gshard_gemm_") + nameOf(shape.method);
  if (shape.source != GemmSource::Element) name += shape.source == GemmSource::BF16 ? "_bf16" : "_f16";
  name += shape.element == GemmElement::F32 ? "_f32_" : "_f64_";
  name += std::to_string(shape.lines) + "_" + std::to_string(shape.padded);
  return shape.aligned ? name + "_aligned" : name;
}

namespace {

// The operand in memory: addresses in its elements, loads as vectors of the packed type.
class SourceReader {
 public:
  SourceReader(llvm::IRBuilder<>& builder, const Target& target, VectorBuilder& vectors, const PackShape& shape)
      : builder_(builder),
        shape_(target.shape()),
        vectors_(vectors),
        isWide_(shape.source == GemmSource::Element),
        dtype_(shape.source == GemmSource::BF16 ? DType::BF16 : DType::F16),
        elementType_(isWide_ ? vectors.elementType() : builder.getInt16Ty()) {}

  std::int64_t bytes() const { return isWide_ ? vectors_.bytes() : 2; }

  llvm::Value* at(llvm::Value* base, llvm::Value* index) {
    return builder_.CreateInBoundsGEP(elementType_, base, index);
  }
  llvm::Value* at(llvm::Value* base, std::int64_t index) {
    return at(base, builder_.getInt64(static_cast<std::uint64_t>(index)));
  }
  // May lie beyond the operand: for prefetching.
  llvm::Value* beyond(llvm::Value* base, llvm::Value* index) { return builder_.CreateGEP(elementType_, base, index); }

  // The first `count` lanes; the others are zero.
  llvm::Value* load(llvm::Value* address, std::int64_t count) {
    if (isWide_) return vectors_.load(address, count);
    const std::int64_t read = std::min(count, vectors_.lanes());
    auto* type = llvm::FixedVectorType::get(elementType_, static_cast<unsigned>(read));
    llvm::Value* raw = builder_.CreateAlignedLoad(type, address, llvm::Align(2));
    if (read < vectors_.lanes()) {
      llvm::SmallVector<int, 16> lanes;
      for (std::int64_t lane = 0; lane < vectors_.lanes(); ++lane) {
        lanes.push_back(static_cast<int>(std::min(lane, read)));  // `read`: the first of the zeros
      }
      raw = builder_.CreateShuffleVector(raw, llvm::Constant::getNullValue(type), lanes);
    }
    return fromMemory(builder_, shape_, dtype_, raw);
  }
  llvm::Value* loadElement(llvm::Value* address) {
    if (isWide_) return vectors_.loadElement(address);
    return fromMemory(builder_, shape_, dtype_, builder_.CreateAlignedLoad(elementType_, address, llvm::Align(2)));
  }

 private:
  llvm::IRBuilder<>& builder_;
  const TargetShape shape_;
  VectorBuilder& vectors_;
  bool isWide_;
  DType dtype_;
  llvm::Type* elementType_;
};

class PackEmitter {
 public:
  PackEmitter(llvm::Module& module, const Target& target, const PackShape& shape)
      : builder_(module.getContext()),
        vectors_(builder_, target, shape.element, shape.method == PackMethod::Transpose ? kSquare : 64),
        source_(builder_, target, vectors_, shape),
        shape_(shape) {
    llvm::Type* pointer = builder_.getPtrTy();
    llvm::Type* integer = builder_.getInt64Ty();
    auto* type =
        llvm::FunctionType::get(builder_.getVoidTy(), {integer, integer, pointer, pointer, integer, integer}, false);
    function_ = llvm::Function::Create(type, llvm::Function::InternalLinkage, symbolOf(shape), module);
    target.prepareFunction(*function_);
    for (const unsigned argument : {2u, 3u}) {
      function_->addParamAttr(argument, llvm::Attribute::NoAlias);
      function_->addParamAttr(argument, llvm::Attribute::NoCapture);
    }
    function_->addParamAttr(2, llvm::Attribute::ReadOnly);
  }

  llvm::Function* emit() {
    builder_.SetInsertPoint(llvm::BasicBlock::Create(builder_.getContext(), "entry", function_));
    steps_ = function_->getArg(0);
    strideLine_ = function_->getArg(4);
    strideK_ = function_->getArg(5);
    switch (shape_.method) {
      case PackMethod::Copy:
        emitCopies(function_->getArg(1));
        break;
      case PackMethod::Transpose:
        emitLoop(builder_, "panels", function_->getArg(1), 1, [&](llvm::Value* panel) { transposePanel(panel); });
        break;
      case PackMethod::Gather:
        emitLoop(builder_, "panels", function_->getArg(1), 1, [&](llvm::Value* panel) {
          gatherSteps(sourcePanel(panel), packedPanel(panel), builder_.getInt64(0));
        });
        break;
    }
    builder_.CreateRetVoid();
    return function_;
  }

 private:
  static constexpr std::int64_t kSquare = 8;  // 16 x 16 saves instructions, but takes three times as long to compile
  static constexpr std::int64_t kPrefetchSteps = 16;
  static constexpr std::int64_t kPrefetchLines = 2;

  llvm::Value* constant(std::int64_t value) { return builder_.getInt64(static_cast<std::uint64_t>(value)); }

  llvm::Value* times(llvm::Value* value, std::int64_t factor) { return builder_.CreateMul(value, constant(factor)); }

  llvm::Value* sourcePanel(llvm::Value* panel) {
    return source_.at(function_->getArg(2), builder_.CreateMul(times(panel, shape_.lines), strideLine_));
  }
  llvm::Value* packedPanel(llvm::Value* panel) {
    return vectors_.at(function_->getArg(3), builder_.CreateMul(panel, times(steps_, shape_.padded)));
  }

  // Lines are adjacent: whole vectors of them, step by step. Several panels at once: longer runs of each source row,
  // fewer pages in flight.
  void emitCopies(llvm::Value* panels) {
    const std::int64_t group = shape_.lines >= 16 ? 4 : shape_.lines >= 8 ? 8 : 16;
    llvm::Value* grouped = builder_.CreateAnd(panels, constant(-group));
    emitLoop(builder_, "groups", grouped, group, [&](llvm::Value* panel) { copyPanels(panel, group); });
    llvm::Value* rest = builder_.CreateSub(panels, grouped);
    emitLoop(builder_, "panels", rest, 1, [&](llvm::Value* i) { copyPanels(builder_.CreateAdd(grouped, i), 1); });
  }

  void copyPanels(llvm::Value* panel, std::int64_t count) {
    llvm::Value* source = source_.at(function_->getArg(2), times(panel, shape_.lines));
    llvm::Value* packed = packedPanel(panel);
    llvm::Value* panelSize = times(steps_, shape_.padded);
    emitLoop(builder_, "copy", steps_, 1, [&](llvm::Value* k) {
      llvm::Value* row = source_.at(source, builder_.CreateMul(k, strideK_));
      if (count > 1) prefetchRow(row, count * shape_.lines);
      llvm::Value* target = vectors_.at(packed, times(k, shape_.padded));
      emitLoop(builder_, "member", constant(count), 1, [&](llvm::Value* member) {
        llvm::Value* from = source_.at(row, times(member, shape_.lines));
        llvm::Value* to = vectors_.at(target, builder_.CreateMul(member, panelSize));
        for (std::int64_t line = 0; line < shape_.lines; line += vectors_.lanes()) {
          vectors_.store(source_.load(source_.at(from, line), shape_.lines - line), vectors_.at(to, line),
                         shape_.padded - line, shape_.aligned);
        }
      });
    });
  }

  void prefetchRow(llvm::Value* row, std::int64_t elements) {
    llvm::Value* ahead = source_.beyond(row, times(strideK_, kPrefetchSteps));
    for (std::int64_t offset = 0; offset < elements; offset += 64 / source_.bytes()) prefetch(ahead, offset);
  }

  // May lie beyond the operand: a prefetch reads nothing.
  void prefetch(llvm::Value* row, std::int64_t offset) {
    llvm::Value* address = source_.beyond(row, constant(offset));
    builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                             {address, builder_.getInt32(0), builder_.getInt32(2), builder_.getInt32(1)});
  }

  // Steps are adjacent: squares of lanes x lanes are transposed in registers, steps that fill none are gathered.
  void transposePanel(llvm::Value* panel) {
    llvm::Value* source = sourcePanel(panel);
    llvm::Value* packed = packedPanel(panel);
    llvm::Value* whole = builder_.CreateAnd(steps_, constant(-vectors_.lanes()));
    const std::int64_t wholeLines = shape_.lines / vectors_.lanes() * vectors_.lanes();
    emitLoop(builder_, "squares", whole, vectors_.lanes(), [&](llvm::Value* k) {
      llvm::Value* from = source_.at(source, k);
      llvm::Value* target = vectors_.at(packed, times(k, shape_.padded));
      emitLoop(builder_, "lines", constant(wholeLines), vectors_.lanes(), [&](llvm::Value* line) {
        transposeSquare(source_.at(from, builder_.CreateMul(line, strideLine_)), vectors_.at(target, line),
                        vectors_.lanes(), vectors_.lanes());
      });
      for (std::int64_t line = wholeLines; line < shape_.padded; line += vectors_.lanes()) {
        transposeSquare(source_.at(from, times(strideLine_, line)), vectors_.at(target, line), shape_.lines - line,
                        shape_.padded - line);
      }
    });
    gatherSteps(source, packed, whole);
  }

  void transposeSquare(llvm::Value* source, llvm::Value* target, std::int64_t lines, std::int64_t padded) {
    std::vector<llvm::Value*> rows;
    for (std::int64_t i = 0; i < vectors_.lanes(); ++i) {
      llvm::Value* row = source_.at(source, times(strideLine_, i));
      if (i < lines) prefetch(row, kPrefetchLines * 64 / source_.bytes());
      rows.push_back(i < lines ? source_.load(row, vectors_.lanes()) : vectors_.zero());
    }
    transpose(rows);
    for (std::int64_t i = 0; i < vectors_.lanes(); ++i) {
      vectors_.store(rows[static_cast<std::size_t>(i)], vectors_.at(target, i * shape_.padded), padded, shape_.aligned);
    }
  }

  // Swaps the off-diagonal halves of ever larger squares (Eklundh, 1972).
  void transpose(std::vector<llvm::Value*>& rows) {
    const std::int64_t lanes = vectors_.lanes();
    for (std::int64_t half = lanes / 2; half >= 1; half /= 2) {
      llvm::SmallVector<int, 16> low, high;
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const bool second = (lane & half) != 0;
        low.push_back(static_cast<int>(second ? lanes + lane - half : lane));
        high.push_back(static_cast<int>(second ? lanes + lane : lane + half));
      }
      for (std::int64_t i = 0; i < lanes; ++i) {
        if (i & half) continue;
        llvm::Value*& first = rows[static_cast<std::size_t>(i)];
        llvm::Value*& second = rows[static_cast<std::size_t>(i + half)];
        llvm::Value* newFirst = builder_.CreateShuffleVector(first, second, low);
        second = builder_.CreateShuffleVector(first, second, high);
        first = newFirst;
      }
    }
  }

  // Element by element, for strides that no vector load fits, from step `begin` on.
  void gatherSteps(llvm::Value* source, llvm::Value* packed, llvm::Value* begin) {
    emitLoop(builder_, "gather", builder_.CreateSub(steps_, begin), 1, [&](llvm::Value* i) {
      llvm::Value* k = builder_.CreateAdd(begin, i);
      llvm::Value* step = source_.at(source, builder_.CreateMul(k, strideK_));
      llvm::Value* target = vectors_.at(packed, times(k, shape_.padded));
      emitLoop(builder_, "lines", constant(shape_.lines), 1, [&](llvm::Value* line) {
        llvm::Value* element = source_.loadElement(source_.at(step, builder_.CreateMul(line, strideLine_)));
        vectors_.storeElement(element, vectors_.at(target, line));
      });
      for (std::int64_t line = shape_.lines; line < shape_.padded; ++line) {
        vectors_.storeElement(llvm::Constant::getNullValue(vectors_.elementType()), vectors_.at(target, line));
      }
    });
  }

  llvm::IRBuilder<> builder_;
  VectorBuilder vectors_;
  SourceReader source_;
  const PackShape shape_;
  llvm::Function* function_ = nullptr;
  llvm::Value* steps_ = nullptr;
  llvm::Value* strideLine_ = nullptr;
  llvm::Value* strideK_ = nullptr;
};

}  // namespace

llvm::Function* gemmPack(llvm::Module& module, const Target& target, const PackShape& shape) {
  if (llvm::Function* known = module.getFunction(symbolOf(shape))) return known;
  return PackEmitter(module, target, shape).emit();
}

}  // namespace gshard
