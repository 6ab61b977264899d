// Target machine, pass pipeline and object emission. The only file that includes PassBuilder.h, which alone takes
// seconds to compile.
#include "codegen/llvm_target.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Instrumentation/ThreadSanitizer.h"
#include "support/check.h"

// The whole of TargetSelect.h would start twenty targets that no test of ours has ever run.
extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
}

namespace gshard {

// Switches of LLVM that have no other interface than its command line. They hold for the whole process, are set once
// and to constants.
static void turnOff(const char* option) {
  const auto& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find(option);
  if (found != options.end()) static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
}

static void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    // Loop strength reduction: addresses in kernels are written as they shall be, and it takes a sixth of the time.
    turnOff("disable-lsr");
  });
}

static llvm::CodeGenOptLevel codeGenLevel(OptimizationLevel level) {
  switch (level) {
    case OptimizationLevel::O0:
      return llvm::CodeGenOptLevel::None;
    case OptimizationLevel::O1:
      return llvm::CodeGenOptLevel::Less;
    case OptimizationLevel::O2:
      return llvm::CodeGenOptLevel::Default;
    case OptimizationLevel::O3:
      return llvm::CodeGenOptLevel::Aggressive;
  }
  return llvm::CodeGenOptLevel::Default;
}

// LLVM returns a hash map; its order differs from run to run.
static std::string hostFeatures() {
  std::vector<std::pair<std::string, bool>> sorted;
  for (const auto& entry : llvm::sys::getHostCPUFeatures()) sorted.emplace_back(entry.getKey().str(), entry.getValue());
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (const auto& [name, present] : sorted) {
    if (!text.empty()) text += ',';
    text += (present ? '+' : '-') + name;
  }
  return text;
}

static TargetShape shapeOf(const llvm::TargetMachine& machine, bool isHost) {
  const llvm::MCSubtargetInfo& info = *machine.getMCSubtargetInfo();
  TargetShape shape;
  if (machine.getTargetTriple().isAArch64()) {
    shape = {.vectorBytes = 16, .vectorRegisters = 32, .l2Bytes = 1024 * 1024, .hasFma = true};
  } else if (info.checkFeatures("+avx512f,+avx512vl,+avx512bw,+avx512dq")) {
    shape = {.vectorBytes = 64,
             .vectorRegisters = 32,
             .l2Bytes = 1024 * 1024,
             .hasFma = true,
             .hasMaskedLoads = true,
             .hasMaskedStores = true};
  } else if (info.checkFeatures("+avx2,+fma")) {
    shape = {.vectorBytes = 32, .vectorRegisters = 16, .l2Bytes = 512 * 1024, .hasFma = true, .hasMaskedLoads = true};
  }
  shape.hasHalfConversion = machine.getTargetTriple().isAArch64() || info.checkFeatures("+f16c");
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (isHost) {
    // Virtual machines report odd sizes now and then; outside these bounds the figure is not believed.
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (l2 >= 256 * 1024 && l2 <= 4 * 1024 * 1024) shape.l2Bytes = l2;
  }
#endif
  return shape;
}

Target::Target() = default;
Target::~Target() = default;

std::unique_ptr<Target> Target::create(const TargetRequest& request, std::string& error) {
  initializeTargets();
  const std::string hostTriple = llvm::Triple::normalize(llvm::sys::getDefaultTargetTriple());
  std::unique_ptr<Target> target(new Target());
  target->triple_ = request.triple.empty() ? hostTriple : llvm::Triple::normalize(request.triple);
  target->level_ = request.level;
  target->threadSanitizer_ = request.threadSanitizer;
  const llvm::Triple triple(target->triple_);
  const llvm::Target* registered = llvm::TargetRegistry::lookupTarget(target->triple_, error);
  if (!registered || !(triple.isX86() || triple.isAArch64()) || !triple.isArch64Bit() || !triple.isLittleEndian()) {
    error = "target `" + request.triple + "` is not one of x86-64 and aarch64";
    return nullptr;
  }
  const bool sameArch = triple.getArch() == llvm::Triple(hostTriple).getArch();
  bool isHost = request.cpu == "native" || (request.cpu.empty() && request.triple.empty());
  if (isHost && !sameArch) {
    error = "cpu `native` names this machine, which is not a `" + triple.getArchName().str() + "`";
    return nullptr;
  }
  if (isHost) {
    target->cpu_ = llvm::sys::getHostCPUName().str();
    target->features_ = hostFeatures();
  } else if (request.cpu.empty()) {
    target->cpu_ = triple.isX86() ? "x86-64" : "generic";
  } else {
    target->cpu_ = request.cpu;
  }
  // Asked first, because creating a machine for an unknown CPU prints a warning and carries on.
  const std::unique_ptr<llvm::MCSubtargetInfo> info(registered->createMCSubtargetInfo(target->triple_, "", ""));
  if (!info || !info->isCPUStringValid(target->cpu_)) {
    error = "cpu `" + target->cpu_ + "` is not known for target `" + target->triple_ + "`";
    return nullptr;
  }
  target->machine_.reset(registered->createTargetMachine(target->triple_, target->cpu_, target->features_, {},
                                                         llvm::Reloc::PIC_, std::nullopt, codeGenLevel(request.level)));
  if (!target->machine_) {
    error = "no code generator for target `" + target->triple_ + "`";
    return nullptr;
  }
  target->shape_ = shapeOf(*target->machine_, isHost);
  if (request.threadSanitizer) {
    // It follows plain loads and stores of at most 16 bytes.
    target->shape_.vectorBytes = 16;
    target->shape_.hasMaskedLoads = target->shape_.hasMaskedStores = false;
  }
  return target;
}

void Target::prepareModule(llvm::Module& module) const {
  module.setTargetTriple(triple_);
  module.setDataLayout(machine_->createDataLayout());
}

void Target::prepareFunction(llvm::Function& function) const {
  function.addFnAttr("target-cpu", cpu_);
  if (!features_.empty()) function.addFnAttr("target-features", features_);
  function.addFnAttr(llvm::Attribute::NoUnwind);
  if (threadSanitizer_) function.addFnAttr(llvm::Attribute::SanitizeThread);
  if (shape_.vectorBytes == 64) {
    // Some CPUs prefer 256 bits by default, and would split every vector in two.
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("min-legal-vector-width", "512");
  }
}

void Target::optimize(llvm::Module& module) const {
  std::string faults;
  llvm::raw_string_ostream faultStream(faults);
  GSHARD_CHECK(!llvm::verifyModule(module, &faultStream), "LLVM IR does not verify: " + faults);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine_.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  if (level_ == OptimizationLevel::O0) {
    passes = builder.buildO0DefaultPipeline(llvm::OptimizationLevel::O0);
  } else {
    // Kernels arrive as explicit vector loops without calls: what the default pipelines do beyond this list (inlining,
    // vectorising, unrolling) finds nothing, at three times the price. Level 3 looks twice.
    const char* list =
        level_ == OptimizationLevel::O3
            ? "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,"
              "instcombine<no-verify-fixpoint>,simplifycfg,adce)"
            : "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),adce)";
    const bool failed = static_cast<bool>(builder.parsePassPipeline(passes, list));
    GSHARD_CHECK(!failed, "the list of LLVM passes is not understood");
  }
  if (threadSanitizer_) {  // last: of the accesses that are left
    passes.addPass(llvm::ModuleThreadSanitizerPass());
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
  }
  passes.run(module, modules);
}

static std::string emitFile(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  {
    llvm::raw_svector_ostream stream(bytes);  // must outlive the pass manager
    llvm::legacy::PassManager passes;
    const bool unsupported = machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true);
    GSHARD_CHECK(!unsupported, "the target emits no files of this type");
    passes.run(module);
  }
  return std::string(bytes.begin(), bytes.end());
}

std::string Target::emitObject(llvm::Module& module) const {
  return emitFile(module, *machine_, llvm::CodeGenFileType::ObjectFile);
}

std::string Target::emitAssembly(llvm::Module& module) const {
  return emitFile(module, *machine_, llvm::CodeGenFileType::AssemblyFile);
}

std::string irText(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace gshard
