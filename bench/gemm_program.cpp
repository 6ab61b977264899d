// Builds modules around GemmEmitter: pointers to the descriptors get external names, all else stays internal.
#include "bench/gemm_program.h"

#include <time.h>

#include <stdexcept>

#include "codegen/gemm_emit.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace gshard {

double threadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

static std::string exportName(std::size_t plan) {
  return "product_" + std::to_string(plan);
}

static void buildModule(const std::vector<GemmPlan>& plans, const Target& target, llvm::Module& module) {
  target.prepareModule(module);
  GemmEmitter emitter(module, target);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    llvm::Constant* descriptor = emitter.emit(plans[i]);
    new llvm::GlobalVariable(module, descriptor->getType(), true, llvm::GlobalValue::ExternalLinkage, descriptor,
                             exportName(i));
  }
  target.optimize(module);
}

std::string gemmObject(const std::vector<GemmPlan>& plans, const Target& target) {
  llvm::LLVMContext context;
  llvm::Module module("gemm", context);
  buildModule(plans, target, module);
  return target.emitObject(module);
}

std::string gemmAssembly(const std::vector<GemmPlan>& plans, const Target& target) {
  llvm::LLVMContext context;
  llvm::Module module("gemm", context);
  buildModule(plans, target, module);
  return target.emitAssembly(module);
}

static std::unique_ptr<LoadedObject> loadOrThrow(const std::string& object) {
  std::string error;
  std::unique_ptr<LoadedObject> loaded = LoadedObject::load(object, error);
  if (!loaded) throw std::runtime_error("the object does not load: " + error);
  return loaded;
}

GemmProgram::GemmProgram(const std::vector<GemmPlan>& plans, const Target& target)
    : object_(loadOrThrow(gemmObject(plans, target))) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const void* pointer = object_->address(exportName(i));
    if (!pointer) throw std::runtime_error("a descriptor is missing");
    descs_.push_back(*static_cast<const gshard_rt_gemm_desc* const*>(pointer));
  }
}

// ---- peak

static constexpr const char* kPeakNames[] = {"peak_f32", "peak_f64"};

// As many independent chains as registers hold, so that neither latency nor loads bound it.
static std::int64_t emitPeak(llvm::Module& module, const Target& target, GemmElement element) {
  llvm::IRBuilder<> builder(module.getContext());
  VectorBuilder vectors(builder, target, element);
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getInt64Ty(), builder.getPtrTy()}, false);
  llvm::Function* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                                    kPeakNames[static_cast<std::size_t>(element)], module);
  target.prepareFunction(*function);
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(module.getContext(), "entry", function);
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(module.getContext(), "loop", function);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(module.getContext(), "done", function);
  builder.SetInsertPoint(entry);
  const std::int64_t chains = target.shape().vectorRegisters == 32 ? 24 : 12;
  llvm::Value* memory = function->getArg(1);
  llvm::Value* factor = vectors.load(memory, vectors.lanes());
  llvm::Value* other = vectors.load(vectors.at(memory, vectors.lanes()), vectors.lanes());
  std::vector<llvm::Value*> start;
  for (std::int64_t i = 0; i < chains; ++i) start.push_back(vectors.load(vectors.at(memory, i), vectors.lanes()));
  builder.CreateBr(loop);
  builder.SetInsertPoint(loop);
  llvm::PHINode* count = builder.CreatePHI(builder.getInt64Ty(), 2);
  count->addIncoming(function->getArg(0), entry);
  std::vector<llvm::PHINode*> sums;
  for (llvm::Value* value : start) {
    sums.push_back(builder.CreatePHI(vectors.vectorType(), 2));
    sums.back()->addIncoming(value, entry);
  }
  for (llvm::PHINode* sum : sums) sum->addIncoming(vectors.multiplyAdd(factor, other, sum), loop);
  llvm::Value* left = builder.CreateSub(count, builder.getInt64(1));
  count->addIncoming(left, loop);
  builder.CreateCondBr(builder.CreateICmpNE(left, builder.getInt64(0)), loop, done);
  builder.SetInsertPoint(done);
  for (std::int64_t i = 0; i < chains; ++i) {
    llvm::Value* last = sums[static_cast<std::size_t>(i)]->getIncomingValueForBlock(loop);
    vectors.store(last, vectors.at(memory, i * vectors.lanes()), vectors.lanes());
  }
  builder.CreateRetVoid();
  return chains * vectors.lanes() * 2;
}

PeakProbe::PeakProbe(const Target& target) {
  llvm::LLVMContext context;
  llvm::Module module("peak", context);
  target.prepareModule(module);
  for (const GemmElement element : {GemmElement::F32, GemmElement::F64}) {
    flopsPerStep_[static_cast<std::size_t>(element)] = emitPeak(module, target, element);
  }
  target.optimize(module);
  object_ = loadOrThrow(target.emitObject(module));
}

double PeakProbe::measure(GemmElement element, double seconds) const {
  const std::size_t index = static_cast<std::size_t>(element);
  const auto probe = reinterpret_cast<void (*)(std::int64_t, void*)>(object_->address(kPeakNames[index]));
  constexpr std::int64_t kSteps = 50000;
  std::vector<double> memory(24 * 8 + 64);
  double best = 0;
  for (const double begin = threadSeconds(); threadSeconds() - begin < seconds;) {
    const double start = threadSeconds();
    probe(kSteps, memory.data());
    best = std::max(best, static_cast<double>(kSteps * flopsPerStep_[index]) / (threadSeconds() - start));
  }
  return best;
}

}  // namespace gshard
