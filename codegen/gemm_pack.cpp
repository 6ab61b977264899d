// Packing kernels: panels of an operand copied into the order in which the microkernel reads them. A transposed operand
// costs no more than a plain one: one is a copy, the other goes through transposes in registers.
#include <vector>

#include "codegen/gemm_emit.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

namespace gshard {

using llvm::Value;

static std::string symbolOf(const PackShape& shape) {
  std::string name = "gshard_gemm_pack";
  name += shape.element == GemmElement::F32 ? "_f32" : "_f64";
  for (const std::int64_t value : {shape.lines, shape.padded, shape.strideLine, shape.strideK}) {
    name += "_" + std::to_string(value);
  }
  if (shape.aligned) name += "_aligned";
  return name;
}

namespace {

class PackEmitter {
 public:
  PackEmitter(llvm::Module& module, const Target& target, const PackShape& shape)
      : builder_(module.getContext()),
        vectors_(builder_, target, shape.element),
        shape_(shape) {
    llvm::Type* pointer = builder_.getPtrTy();
    llvm::Type* integer = builder_.getInt64Ty();
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {integer, integer, pointer, pointer}, false);
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
    Value* panels = function_->getArg(1);
    if (shape_.strideLine == 1) {
      // Several panels at once: longer runs of each source row, fewer pages in flight.
      const std::int64_t group = shape_.lines >= 16 ? 4 : shape_.lines >= 8 ? 8 : 16;
      Value* grouped = builder_.CreateAnd(panels, constant(-group));
      emitLoop(builder_, "groups", grouped, group, [&](Value* panel) { copyPanels(panel, group); });
      Value* rest = builder_.CreateSub(panels, grouped);
      emitLoop(builder_, "panels", rest, 1, [&](Value* i) { copyPanels(builder_.CreateAdd(grouped, i), 1); });
    } else if (shape_.strideK == 1) {
      emitLoop(builder_, "panels", panels, 1, [&](Value* panel) { transposePanel(panel); });
    } else {
      emitLoop(builder_, "panels", panels, 1, [&](Value* panel) {
        gatherSteps(sourcePanel(panel), packedPanel(panel, 0), builder_.getInt64(0), steps_);
      });
    }
    builder_.CreateRetVoid();
    return function_;
  }

 private:
  static constexpr std::int64_t kPrefetchSteps = 16;
  static constexpr std::int64_t kPrefetchLines = 2;

  Value* constant(std::int64_t value) { return builder_.getInt64(static_cast<std::uint64_t>(value)); }

  Value* sourcePanel(Value* panel) {
    return vectors_.at(function_->getArg(2), builder_.CreateMul(panel, constant(shape_.lines * shape_.strideLine)));
  }
  Value* packedPanel(Value* panel, std::int64_t further) {
    Value* index = builder_.CreateAdd(panel, constant(further));
    Value* size = builder_.CreateMul(steps_, constant(shape_.padded));
    return vectors_.at(function_->getArg(3), builder_.CreateMul(index, size));
  }

  // Lines are adjacent: whole vectors of them, step by step.
  void copyPanels(Value* panel, std::int64_t count) {
    Value* source = sourcePanel(panel);
    std::vector<Value*> packed;
    for (std::int64_t p = 0; p < count; ++p) packed.push_back(packedPanel(panel, p));
    emitLoop(builder_, "copy", steps_, 1, [&](Value* k) {
      Value* row = vectors_.at(source, builder_.CreateMul(k, constant(shape_.strideK)));
      if (count > 1) prefetchRow(row, count * shape_.lines);
      for (std::int64_t p = 0; p < count; ++p) {
        Value* target = vectors_.at(packed[static_cast<std::size_t>(p)], builder_.CreateMul(k, constant(shape_.padded)));
        for (std::int64_t line = 0; line < shape_.lines; line += vectors_.lanes()) {
          Value* value = vectors_.load(vectors_.at(row, p * shape_.lines + line), shape_.lines - line);
          vectors_.store(value, vectors_.at(target, line), shape_.padded - line, shape_.aligned);
        }
      }
    });
  }

  void prefetchRow(Value* row, std::int64_t elements) {
    for (std::int64_t offset = 0; offset < elements; offset += 64 / vectors_.bytes()) {
      prefetch(row, kPrefetchSteps * shape_.strideK + offset);
    }
  }

  // May lie beyond the operand: a prefetch reads nothing.
  void prefetch(Value* row, std::int64_t offset) {
    Value* address = builder_.CreateGEP(vectors_.elementType(), row, constant(offset));
    builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                             {address, builder_.getInt32(0), builder_.getInt32(2), builder_.getInt32(1)});
  }

  // Steps are adjacent: squares of lanes x lanes are transposed in registers, steps that fill none are gathered.
  void transposePanel(Value* panel) {
    Value* source = sourcePanel(panel);
    Value* packed = packedPanel(panel, 0);
    Value* whole = builder_.CreateAnd(steps_, constant(-vectors_.lanes()));
    emitLoop(builder_, "squares", whole, vectors_.lanes(), [&](Value* k) {
      Value* target = vectors_.at(packed, builder_.CreateMul(k, constant(shape_.padded)));
      for (std::int64_t line = 0; line < shape_.padded; line += vectors_.lanes()) {
        std::vector<Value*> rows;
        for (std::int64_t i = 0; i < vectors_.lanes(); ++i) {
          const bool present = line + i < shape_.lines;
          Value* row = vectors_.at(source, builder_.CreateAdd(k, constant((line + i) * shape_.strideLine)));
          if (present) prefetch(row, kPrefetchLines * 64 / vectors_.bytes());
          rows.push_back(present ? vectors_.load(row, vectors_.lanes()) : vectors_.zero());
        }
        transpose(rows);
        for (std::int64_t i = 0; i < vectors_.lanes(); ++i) {
          vectors_.store(rows[static_cast<std::size_t>(i)], vectors_.at(target, i * shape_.padded + line),
                         shape_.padded - line, shape_.aligned);
        }
      }
    });
    gatherSteps(source, packed, whole, steps_);
  }

  // Swaps the off-diagonal halves of ever larger squares (Eklundh, 1972).
  void transpose(std::vector<Value*>& rows) {
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
        Value*& first = rows[static_cast<std::size_t>(i)];
        Value*& second = rows[static_cast<std::size_t>(i + half)];
        Value* newFirst = builder_.CreateShuffleVector(first, second, low);
        second = builder_.CreateShuffleVector(first, second, high);
        first = newFirst;
      }
    }
  }

  // Element by element, for strides that no vector load fits.
  void gatherSteps(Value* source, Value* packed, Value* begin, Value* end) {
    emitLoop(builder_, "gather", builder_.CreateSub(end, begin), 1, [&](Value* i) {
      Value* k = builder_.CreateAdd(begin, i);
      Value* column = vectors_.at(source, builder_.CreateMul(k, constant(shape_.strideK)));
      Value* target = vectors_.at(packed, builder_.CreateMul(k, constant(shape_.padded)));
      emitLoop(builder_, "lines", constant(shape_.lines), 1, [&](Value* line) {
        Value* element = vectors_.loadElement(vectors_.at(column, builder_.CreateMul(line, constant(shape_.strideLine))));
        vectors_.storeElement(element, vectors_.at(target, line));
      });
      for (std::int64_t line = shape_.lines; line < shape_.padded; ++line) {
        vectors_.storeElement(llvm::Constant::getNullValue(vectors_.elementType()), vectors_.at(target, line));
      }
    });
  }

  llvm::IRBuilder<> builder_;
  VectorBuilder vectors_;
  const PackShape shape_;
  llvm::Function* function_ = nullptr;
  Value* steps_ = nullptr;
};

}  // namespace

llvm::Function* gemmPack(llvm::Module& module, const Target& target, const PackShape& shape) {
  if (llvm::Function* known = module.getFunction(symbolOf(shape))) return known;
  return PackEmitter(module, target, shape).emit();
}

}  // namespace gshard
