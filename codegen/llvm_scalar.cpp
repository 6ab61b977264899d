// Scalar functions as LLVM IR: the one instantiation of ir/scalar_emit.h on the LLVM backend (a heavy template).
#include "codegen/kernel_body.h"
#include "codegen/llvm_math.h"
#include "ir/scalar_emit.h"

namespace gshard {

llvm::Value* emitScalarFn(llvm::IRBuilder<>& builder, ScalarFn fn, DType operand, DType result,
                          std::span<llvm::Value* const> operands) {
  LlvmBackend backend(builder);
  return emitScalar(backend, fn, operand, result, operands);
}

}  // namespace gshard
