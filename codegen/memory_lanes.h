// Between elements in memory and lanes in registers: bool, u8 and the 16-bit floats are wider in registers. Lanes hold
// values of the dtype, so both ways are exact.
#pragma once

#include "codegen/llvm_target.h"
#include "ir/type.h"
#include "llvm/IR/IRBuilder.h"

namespace gshard {

llvm::Value* fromMemory(llvm::IRBuilder<>& builder, const TargetShape& shape, DType dtype, llvm::Value* raw);
llvm::Value* toMemory(llvm::IRBuilder<>& builder, const TargetShape& shape, DType dtype, llvm::Value* lanes);

}  // namespace gshard
