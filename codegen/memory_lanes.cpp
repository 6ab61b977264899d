// See memory_lanes.h. f16 needs care: where the CPU has no instruction for it, LLVM would call a function of the
// compiler's run-time library, which a linked model need not have.
#include "codegen/memory_lanes.h"

#include <limits>

#include "codegen/llvm_math.h"
#include "support/check.h"

namespace gshard {
namespace {

using IrValue = llvm::Value*;

constexpr int kFractionShift = 13;  // f32 has 23 bits of fraction, f16 has 10
constexpr std::int64_t kMagnitude = 0x7fff;
constexpr std::int64_t kInfinity = 0x7c00;

// Read as the upper bits of an f32, an f16 is 2^112 times too small, subnormal numbers included; what it has above its
// largest finite number stands in the exponent of infinity and NaN.
IrValue halfFromBits(llvm::IRBuilder<>& ir, IrValue raw) {
  LlvmBackend math(ir);
  IrValue bits = ir.CreateZExt(raw, LlvmBackend::withLanesOf(raw, ir.getInt32Ty()));
  IrValue magnitude = math.andInt(bits, math.integer(bits, kMagnitude));
  IrValue small = math.floatOf(math.shiftLeft(magnitude, kFractionShift));
  IrValue scaled = math.bitsOf(math.mul(small, math.constant(small, 0x1p112)));
  IrValue special = math.orInt(scaled, math.integer(bits, 0x7f800000));
  IrValue isFinite = math.lessInt(magnitude, math.integer(bits, kInfinity));
  IrValue sign = math.shiftLeft(math.subInt(bits, magnitude), 16);
  return math.floatOf(math.orInt(math.select(isFinite, scaled, special), sign));
}

IrValue bitsOfHalf(llvm::IRBuilder<>& ir, IrValue lanes) {
  LlvmBackend math(ir);
  IrValue magnitude = math.abs(lanes);
  IrValue scaled =
      math.shiftRightLogical(math.bitsOf(math.mul(magnitude, math.constant(lanes, 0x1p-112))), kFractionShift);
  IrValue isInfinite = math.equal(magnitude, math.constant(lanes, std::numeric_limits<double>::infinity()));
  IrValue special = math.select(isInfinite, math.integer(scaled, kInfinity), math.integer(scaled, 0x7e00));
  IrValue isFinite = math.less(magnitude, math.constant(lanes, std::numeric_limits<double>::infinity()));
  IrValue sign = math.andInt(math.shiftRightLogical(math.bitsOf(lanes), 16), math.integer(scaled, 0x8000));
  IrValue bits = math.orInt(math.select(isFinite, scaled, special), sign);
  return ir.CreateTrunc(bits, LlvmBackend::withLanesOf(bits, ir.getInt16Ty()));
}

}  // namespace

IrValue fromMemory(llvm::IRBuilder<>& ir, const TargetShape& shape, DType dtype, IrValue raw) {
  const auto lanes = [&](llvm::Type* type) { return LlvmBackend::withLanesOf(raw, type); };
  switch (dtype) {
    case DType::F32:
    case DType::F64:
    case DType::I32:
    case DType::I64:
      return raw;
    case DType::Bool:
      return ir.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
    case DType::U8:
      return ir.CreateZExt(raw, lanes(ir.getInt32Ty()));
    case DType::F16:
      if (!shape.hasHalfConversion) return halfFromBits(ir, raw);
      return ir.CreateFPExt(ir.CreateBitCast(raw, lanes(ir.getHalfTy())), lanes(ir.getFloatTy()));
    case DType::BF16:
      return ir.CreateBitCast(ir.CreateShl(ir.CreateZExt(raw, lanes(ir.getInt32Ty())), 16), lanes(ir.getFloatTy()));
  }
  GSHARD_UNREACHABLE("dtype");
}

IrValue toMemory(llvm::IRBuilder<>& ir, const TargetShape& shape, DType dtype, IrValue value) {
  const auto lanes = [&](llvm::Type* type) { return LlvmBackend::withLanesOf(value, type); };
  switch (dtype) {
    case DType::F32:
    case DType::F64:
    case DType::I32:
    case DType::I64:
      return value;
    case DType::Bool:
      return ir.CreateZExt(value, lanes(ir.getInt8Ty()));
    case DType::U8:
      return ir.CreateTrunc(value, lanes(ir.getInt8Ty()));
    case DType::F16:
      if (!shape.hasHalfConversion) return bitsOfHalf(ir, value);
      return ir.CreateBitCast(ir.CreateFPTrunc(value, lanes(ir.getHalfTy())), lanes(ir.getInt16Ty()));
    case DType::BF16: {
      // NaNs keep a bit of their fraction: with the lower half alone set, the upper one would read as infinity.
      IrValue bits = ir.CreateBitCast(value, lanes(ir.getInt32Ty()));
      IrValue quiet = ir.CreateOr(bits, llvm::ConstantInt::get(bits->getType(), 0x400000));
      bits = ir.CreateSelect(ir.CreateFCmpUNO(value, value), quiet, bits);
      return ir.CreateTrunc(ir.CreateLShr(bits, 16), lanes(ir.getInt16Ty()));
    }
  }
  GSHARD_UNREACHABLE("dtype");
}

}  // namespace gshard
