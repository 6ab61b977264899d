// From a plan to its kernels and the constant descriptor that runtime/gemm_driver.cpp walks.
#include "codegen/gemm_emit.h"

#include "llvm/IR/Module.h"
#include "runtime/gemm_abi.h"
#include "support/check.h"

namespace gshard {

namespace {

// The fields of gshard_rt_gemm_desc in order; every one is 8 bytes wide, integer or pointer.
class DescriptorBuilder {
 public:
  explicit DescriptorBuilder(llvm::Module& module) : module_(module) {}

  void integer(std::int64_t value) {
    fields_.push_back(llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(module_.getContext()), value));
  }
  void pointer(llvm::Constant* value) {
    auto* type = llvm::PointerType::getUnqual(module_.getContext());
    fields_.push_back(value ? value : llvm::ConstantPointerNull::get(type));
  }
  void side(const GemmSide& side, const GemmPlan& plan) {
    const std::int64_t read = sourceBytes(plan.element, plan.source);
    integer(side.size);
    integer(side.strideA * read);
    integer(side.strideB * read);
    integer(side.strideC * sourceBytes(plan.element, GemmSource::Element));
    integer(side.liveSlot);
    integer(side.liveFactor);
  }
  void loop(const GemmLoop& loop, const GemmPlan& plan) {
    side(loop.side, plan);
    integer(loop.isSum ? 1 : 0);
  }
  llvm::GlobalVariable* finish(const std::string& name) {
    GSHARD_CHECK(fields_.size() * 8 == sizeof(gshard_rt_gemm_desc), "fields of gshard_rt_gemm_desc were forgotten");
    llvm::Constant* value = llvm::ConstantStruct::getAnon(module_.getContext(), fields_);
    auto* global =
        new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::InternalLinkage, value, name);
    global->setAlignment(llvm::Align(64));
    return global;
  }

 private:
  llvm::Module& module_;
  std::vector<llvm::Constant*> fields_;
};

}  // namespace

static std::int64_t heightOf(const GemmPlan& plan, int kind) {
  return plan.height - kind;
}
static std::int64_t widthOf(const GemmPlan& plan, int kind) {
  return kind == 0 ? plan.width : plan.lastWidth;
}

// Heights and widths that no panel has need no code.
static bool usesHeight(const GemmPlan& plan, int kind) {
  return kind == 0 ? plan.tallPanels > 0 : plan.tallPanels < plan.panelsM && plan.height > 1;
}
static bool usesWidth(const GemmPlan& plan, int kind) {
  return kind == 0 ? plan.panelsN > 1 : plan.panelsN > 0;
}

// Strides in elements of what one kernel reads and writes: packed panels, or the operands themselves.
struct KernelStrides {
  std::int64_t aRow, aK, bK, cRow;
};

static KernelStrides stridesOf(const GemmPlan& plan, int heightKind, int widthKind) {
  const bool packedA = plan.accessA == GemmAccess::Packed, packedB = plan.accessB == GemmAccess::Packed;
  return {packedA ? 1 : plan.m.strideA, packedA ? heightOf(plan, heightKind) : plan.k.strideA,
          packedB ? plan.packedWidth(widthOf(plan, widthKind)) : plan.k.strideB,
          plan.scatterC ? plan.width : plan.m.strideC};
}

static llvm::Constant* kernelOf(llvm::Module& module, const Target& target, const GemmPlan& plan, int heightKind,
                                int widthKind) {
  if (!usesHeight(plan, heightKind) || !usesWidth(plan, widthKind)) return nullptr;
  const bool packedB = plan.accessB == GemmAccess::Packed;
  const KernelStrides strides = stridesOf(plan, heightKind, widthKind);
  KernelShape shape;
  shape.element = plan.element;
  shape.height = heightOf(plan, heightKind);
  shape.columns = widthOf(plan, widthKind);
  shape.adjacentRows = strides.aRow == 1 || shape.height == 1;
  shape.adjacentSteps = !shape.adjacentRows && strides.aK == 1;
  shape.wholeVectorsB = packedB && shape.columns % plan.vectorLanes != 0;
  shape.prefetchB = plan.prefetchB && widthKind == 0 && !packedB;
  return gemmKernel(module, target, shape);
}

static PackMethod packMethod(const GemmSide& line, std::int64_t strideLine, std::int64_t strideK) {
  if (line.size == 1 || strideLine == 1) return PackMethod::Copy;
  return strideK == 1 ? PackMethod::Transpose : PackMethod::Gather;
}

static llvm::Constant* packAOf(llvm::Module& module, const Target& target, const GemmPlan& plan, int kind) {
  if (plan.accessA == GemmAccess::InPlace || !usesHeight(plan, kind)) return nullptr;
  const std::int64_t height = heightOf(plan, kind);
  const PackMethod method = packMethod(plan.m, plan.m.strideA, plan.k.strideA);
  return gemmPack(module, target, {plan.element, plan.source, method, height, height, false});
}

static llvm::Constant* packBOf(llvm::Module& module, const Target& target, const GemmPlan& plan, int kind) {
  if (plan.accessB == GemmAccess::InPlace || !usesWidth(plan, kind)) return nullptr;
  const std::int64_t columns = widthOf(plan, kind);
  const PackMethod method = packMethod(plan.n, plan.n.strideB, plan.k.strideB);
  return gemmPack(module, target, {plan.element, plan.source, method, columns, plan.packedWidth(columns), true});
}

llvm::GlobalVariable* GemmEmitter::emit(const GemmPlan& plan) {
  const std::string key = plan.key();
  if (const auto known = descriptors_.find(key); known != descriptors_.end()) return known->second;
  GSHARD_CHECK(plan.loops.size() <= GSHARD_RT_GEMM_MAX_LOOPS, "too many loops outside a product");

  DescriptorBuilder fields(module_);
  fields.integer(sourceBytes(plan.element, GemmSource::Element));
  fields.integer(plan.swapped ? 1 : 0);
  for (const GemmSide* side : {&plan.m, &plan.n, &plan.k}) fields.side(*side, plan);
  fields.integer(static_cast<std::int64_t>(plan.loops.size()));
  for (std::size_t i = 0; i < GSHARD_RT_GEMM_MAX_LOOPS; ++i) {
    fields.loop(i < plan.loops.size() ? plan.loops[i] : GemmLoop{}, plan);
  }
  for (const std::int64_t value :
       {plan.height, plan.panelsM, plan.tallPanels, plan.width, plan.panelsN, plan.lastWidth}) {
    fields.integer(value);
  }
  for (const int heightKind : {0, 1}) {
    for (const int widthKind : {0, 1}) fields.pointer(kernelOf(module_, target_, plan, heightKind, widthKind));
  }
  for (const int heightKind : {0, 1}) {
    for (const int widthKind : {0, 1}) {
      const KernelStrides strides = stridesOf(plan, heightKind, widthKind);
      // What is widened is packed, so kernels read elements of the result's type alone.
      for (const std::int64_t stride : {strides.aRow, strides.aK, strides.bK, strides.cRow})
        fields.integer(stride * sourceBytes(plan.element, GemmSource::Element));
    }
  }
  for (const int kind : {0, 1}) fields.pointer(packAOf(module_, target_, plan, kind));
  for (const int kind : {0, 1}) fields.pointer(packBOf(module_, target_, plan, kind));
  for (const std::int64_t value : {plan.blockK, plan.blockPanelsM, plan.blockPanelsN, plan.packedWidth(plan.width),
                                   plan.workspaceBytesA(), plan.workspaceBytesB(), plan.workspaceBytesTile()}) {
    fields.integer(value);
  }
  fields.integer(plan.scatterC ? 1 : 0);
  fields.integer(plan.addToC ? 1 : 0);
  llvm::Function* epilogue = plan.epilogue.empty() ? nullptr : module_.getFunction(plan.epilogue);
  GSHARD_CHECK(plan.epilogue.empty() || epilogue, "the epilogue of a product is not in the module");
  fields.pointer(epilogue);
  fields.integer(sourceBytes(plan.element, plan.source));
  fields.integer(plan.skipsEmpty ? 1 : 0);
  llvm::GlobalVariable* descriptor = fields.finish("gshard_gemm_" + std::to_string(descriptors_.size()));
  descriptors_.emplace(key, descriptor);
  return descriptor;
}

}  // namespace gshard
