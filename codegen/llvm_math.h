// The math backend of ir/scalar_backend.h on an LLVM IRBuilder: every scalar function is written once as a template,
// and instantiated on this class it becomes IR, with lanes that are scalars or vectors. No operation carries a
// fast-math flag.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace gshard {

class LlvmBackend {
 public:
  using Value = llvm::Value*;

  explicit LlvmBackend(llvm::IRBuilder<>& builder) : b_(&builder) {}

  bool isDouble(Value x) const { return x->getType()->getScalarType()->isDoubleTy(); }
  bool isLong(Value n) const { return n->getType()->getScalarType()->isIntegerTy(64); }

  Value constant(Value like, double value) const { return llvm::ConstantFP::get(like->getType(), value); }
  Value integer(Value like, std::int64_t value) const {
    return llvm::ConstantInt::get(like->getType(), static_cast<std::uint64_t>(value), true);
  }
  Value boolean(Value like, bool value) const {
    return llvm::ConstantInt::get(withLanesOf(like, b_->getInt1Ty()), value ? 1 : 0);
  }

  Value add(Value a, Value b) const { return b_->CreateFAdd(a, b); }
  Value sub(Value a, Value b) const { return b_->CreateFSub(a, b); }
  Value mul(Value a, Value b) const { return b_->CreateFMul(a, b); }
  Value div(Value a, Value b) const { return b_->CreateFDiv(a, b); }
  Value fma(Value a, Value b, Value c) const {
    return b_->CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  }
  Value neg(Value a) const { return b_->CreateFNeg(a); }
  Value abs(Value a) const { return b_->CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a); }
  Value sqrt(Value a) const { return b_->CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a); }
  Value floor(Value a) const { return b_->CreateUnaryIntrinsic(llvm::Intrinsic::floor, a); }
  Value ceil(Value a) const { return b_->CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a); }
  Value roundEven(Value a) const { return b_->CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, a); }
  Value maximum(Value a, Value b) const { return b_->CreateBinaryIntrinsic(llvm::Intrinsic::maximum, a, b); }
  Value minimum(Value a, Value b) const { return b_->CreateBinaryIntrinsic(llvm::Intrinsic::minimum, a, b); }

  Value less(Value a, Value b) const { return b_->CreateFCmpOLT(a, b); }
  Value lessEqual(Value a, Value b) const { return b_->CreateFCmpOLE(a, b); }
  Value equal(Value a, Value b) const { return b_->CreateFCmpOEQ(a, b); }
  Value isNan(Value a) const { return b_->CreateFCmpUNO(a, a); }

  Value addInt(Value a, Value b) const { return b_->CreateAdd(a, b); }
  Value subInt(Value a, Value b) const { return b_->CreateSub(a, b); }
  Value mulInt(Value a, Value b) const { return b_->CreateMul(a, b); }
  Value andInt(Value a, Value b) const { return b_->CreateAnd(a, b); }
  Value orInt(Value a, Value b) const { return b_->CreateOr(a, b); }
  Value xorInt(Value a, Value b) const { return b_->CreateXor(a, b); }
  Value shiftLeft(Value a, int n) const { return b_->CreateShl(a, integer(a, n)); }
  Value shiftRight(Value a, int n) const { return b_->CreateAShr(a, integer(a, n)); }
  Value shiftRightLogical(Value a, int n) const { return b_->CreateLShr(a, integer(a, n)); }
  Value shiftLeftBy(Value a, Value n) const { return b_->CreateShl(a, n); }
  Value shiftRightLogicalBy(Value a, Value n) const { return b_->CreateLShr(a, n); }
  Value divInt(Value a, Value b) const { return b_->CreateSDiv(a, b); }
  Value remInt(Value a, Value b) const { return b_->CreateSRem(a, b); }
  Value lessInt(Value a, Value b) const { return b_->CreateICmpSLT(a, b); }
  Value equalInt(Value a, Value b) const { return b_->CreateICmpEQ(a, b); }

  Value logicalAnd(Value a, Value b) const { return b_->CreateAnd(a, b); }
  Value logicalOr(Value a, Value b) const { return b_->CreateOr(a, b); }
  Value logicalXor(Value a, Value b) const { return b_->CreateXor(a, b); }
  Value logicalNot(Value a) const { return b_->CreateNot(a); }
  Value select(Value p, Value a, Value b) const { return b_->CreateSelect(p, a, b); }

  Value bitsOf(Value x) const {
    return b_->CreateBitCast(x, withLanesOf(x, isDouble(x) ? b_->getInt64Ty() : b_->getInt32Ty()));
  }
  Value floatOf(Value n) const {
    return b_->CreateBitCast(n, withLanesOf(n, isLong(n) ? b_->getDoubleTy() : b_->getFloatTy()));
  }

  Value toF32(Value x) const { return toFloat(x, b_->getFloatTy()); }
  Value toF64(Value x) const { return toFloat(x, b_->getDoubleTy()); }
  Value toI32(Value x) const { return toInt(x, b_->getInt32Ty()); }
  Value toI64(Value x) const { return toInt(x, b_->getInt64Ty()); }
  Value boolToI32(Value p) const { return b_->CreateZExt(p, withLanesOf(p, b_->getInt32Ty())); }

  Value f32(Value v) const { return v; }
  Value f64(Value v) const { return v; }
  Value i32(Value v) const { return v; }
  Value i64(Value v) const { return v; }
  Value boolean(Value v) const { return v; }

  // `scalar` with as many lanes as `like` has.
  static llvm::Type* withLanesOf(Value like, llvm::Type* scalar) {
    if (const auto* vector = llvm::dyn_cast<llvm::VectorType>(like->getType())) {
      return llvm::VectorType::get(scalar, vector->getElementCount());
    }
    return scalar;
  }

 private:
  Value toFloat(Value x, llvm::Type* scalar) const {
    llvm::Type* type = withLanesOf(x, scalar);
    if (x->getType() == type) return x;
    if (!x->getType()->isFPOrFPVectorTy()) return b_->CreateSIToFP(x, type);
    return scalar->isDoubleTy() ? b_->CreateFPExt(x, type) : b_->CreateFPTrunc(x, type);
  }
  Value toInt(Value x, llvm::Type* scalar) const {
    llvm::Type* type = withLanesOf(x, scalar);
    if (x->getType() == type) return x;
    if (x->getType()->isFPOrFPVectorTy()) return b_->CreateFPToSI(x, type);
    return b_->CreateSExtOrTrunc(x, type);
  }

  llvm::IRBuilder<>* b_;
};

}  // namespace gshard
