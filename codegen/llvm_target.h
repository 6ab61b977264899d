// The machine that code is generated for, and the way from an LLVM module to object bytes or text.
// No LLVM header in here; llvm_target.cpp is the one file that includes PassBuilder.h (4 s to compile).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llvm {
class Function;
class Module;
class TargetMachine;
}  // namespace llvm

namespace gshard {

enum class OptimizationLevel : std::uint8_t { O0, O1, O2, O3 };

struct TargetRequest {
  std::string triple;  // empty: this machine's
  std::string cpu;     // empty or "native": this machine's CPU; for another triple its generic CPU
  OptimizationLevel level = OptimizationLevel::O3;
  // Kernels tell ThreadSanitizer what they read and write; only for programs that are linked with its runtime.
  bool threadSanitizer = false;
};

// What block sizes and loop shapes depend on. A pure function of triple and CPU, except that l2Bytes of the native CPU
// is read from the system; no result depends on it, only speed.
struct TargetShape {
  std::int64_t vectorBytes = 16;  // 16 (SSE, NEON), 32 (AVX2) or 64 (AVX-512)
  std::int64_t vectorRegisters = 16;
  std::int64_t l2Bytes = 512 * 1024;
  bool hasFma = false;             // llvm.fma is one instruction; without it a product is multiplied, then added
  bool hasMaskedLoads = false;     // masked vector loads are fast (AVX2, AVX-512)
  bool hasMaskedStores = false;    // and stores: AVX-512; those of AVX2 take tens of cycles on AMD
  bool hasHalfConversion = false;  // instructions between f16 and f32

  std::int64_t lanes(std::int64_t elementBytes) const { return vectorBytes / elementBytes; }  // W: lanes(4) for f32
};

class Target {
 public:
  // Null with a reason in `error` if the triple, the CPU or the target's code generator is unknown. Never prints.
  static std::unique_ptr<Target> create(const TargetRequest& request, std::string& error);
  ~Target();

  const std::string& triple() const { return triple_; }
  const std::string& cpu() const { return cpu_; }            // resolved: never "native"
  const std::string& features() const { return features_; }  // sorted, so that IR text and objects are stable
  const TargetShape& shape() const { return shape_; }
  OptimizationLevel level() const { return level_; }
  llvm::TargetMachine& machine() const { return *machine_; }

  // Sets triple and data layout; call it before any IR is built.
  void prepareModule(llvm::Module& module) const;
  // Sets target-cpu, target-features and vector-width attributes; call it on every function with a body.
  void prepareFunction(llvm::Function& function) const;

  // The passes of the request's level. Verifies first; InternalError on IR that does not verify.
  void optimize(llvm::Module& module) const;

  // Both consume the module's IR (code generation rewrites it): print text first, or emit from a clone.
  std::string emitObject(llvm::Module& module) const;  // bytes of an ELF object
  std::string emitAssembly(llvm::Module& module) const;

 private:
  Target();
  std::string triple_, cpu_, features_;
  TargetShape shape_;
  OptimizationLevel level_ = OptimizationLevel::O3;
  bool threadSanitizer_ = false;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

// Optimises and emits the module in `parts` pieces at once, each in a thread and an LLVM context of its own, split by
// the names of its symbols, so that the objects depend on nothing but the module. Consumes the module. The calling
// thread does `meanwhile`, too.
std::vector<std::string> emitObjectsInParallel(const TargetRequest& request, llvm::Module& module, unsigned parts,
                                               const std::function<void()>& meanwhile);

// LLVM IR as text, as --emit=llvm-ir prints it.
std::string irText(const llvm::Module& module);

}  // namespace gshard
