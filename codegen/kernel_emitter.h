// From kernels as data (loop_kernel.h) to functions of an LLVM module; equal kernels become one function.
#pragma once

#include <map>
#include <string>

#include "codegen/llvm_target.h"
#include "codegen/loop_kernel.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace gshard {

class KernelEmitter {
 public:
  // With `share` off (-g) every call gets a kernel of its own.
  KernelEmitter(llvm::Module& module, const Target& target, bool share = true)
      : module_(module), target_(target), share_(share) {}

  // The kernel must have gone through finishKernel. Symbols are internal and named by content.
  llvm::Function* emit(const LoopKernel& kernel);
  std::int64_t kernelCount() const { return count_; }

 private:
  llvm::Module& module_;
  const Target& target_;
  bool share_;
  std::int64_t count_ = 0;
  std::map<std::string, llvm::Function*> functions_;
};

}  // namespace gshard
