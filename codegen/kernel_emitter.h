// From kernels as data (loop_kernel.h) to functions of an LLVM module; equal kernels become one function.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "codegen/llvm_target.h"
#include "codegen/loop_kernel.h"
#include "support/source.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace gshard {

class DebugInfo;

// Where a kernel comes from, for -g.
struct KernelSource {
  std::string name;                                    // as a debugger shows the function
  SourceRange range;                                   // of the op that it is reported as
  std::function<SourceRange(std::int64_t op)> places;  // of the ops in it
};

class KernelEmitter {
 public:
  // With `debug` (-g) every call gets a kernel of its own, and lines of the source.
  KernelEmitter(llvm::Module& module, const Target& target, DebugInfo* debug = nullptr)
      : module_(module), target_(target), debug_(debug) {}

  // The kernel must have gone through finishKernel. Symbols are internal and named by content.
  llvm::Function* emit(const LoopKernel& kernel, const KernelSource& source = {});
  std::int64_t kernelCount() const { return count_; }

 private:
  llvm::Module& module_;
  const Target& target_;
  DebugInfo* debug_;
  std::int64_t count_ = 0;
  std::map<std::string, llvm::Function*> functions_;
};

}  // namespace gshard
