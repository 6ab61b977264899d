// The function around every kernel, and sharing of equal ones.
#include "codegen/kernel_emitter.h"

#include "codegen/debug_info.h"
#include "codegen/kernel_body.h"
#include "llvm/IR/Module.h"
#include "runtime/abi.h"
#include "support/check.h"

namespace gshard {
namespace {

std::string symbolOf(const LoopKernel& kernel, const std::string& key) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = kernelSummary(kernel);
  text = text.substr(0, text.find(' '));
  text += '_';
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[hash >> shift & 15];
  return text;
}

llvm::Type* typeOf(llvm::LLVMContext& context, char code) {
  if (code == 'v') return llvm::Type::getVoidTy(context);
  if (code == 'p') return llvm::PointerType::get(context, 0);
  if (code == 'd') return llvm::Type::getDoubleTy(context);
  GSHARD_CHECK(code == 'l', "a type letter of GSHARD_RT_FUNCTIONS");
  return llvm::Type::getInt64Ty(context);
}

}  // namespace

llvm::FunctionCallee runtimeFunction(llvm::Module& module, std::string_view name) {
  struct Row {
    std::string_view name, result, parameters;
  };
  static constexpr Row kRows[] = {
#define GSHARD_ROW(function, result, parameters) {#function, #result, #parameters},
      GSHARD_RT_FUNCTIONS(GSHARD_ROW)
#undef GSHARD_ROW
  };
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    std::vector<llvm::Type*> parameters;
    for (const char code : row.parameters) parameters.push_back(typeOf(module.getContext(), code));
    return module.getOrInsertFunction(
        name, llvm::FunctionType::get(typeOf(module.getContext(), row.result[0]), parameters, false));
  }
  GSHARD_UNREACHABLE("the runtime has no function " + std::string(name));
}

llvm::Function* KernelEmitter::emit(const LoopKernel& kernel, const KernelSource& source) {
  const std::string key = kernelKey(kernel);
  if (debug_ == nullptr) {
    const auto found = functions_.find(key);
    if (found != functions_.end()) return found->second;
  }
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* integer = llvm::Type::getInt64Ty(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, integer, integer}, false);
  llvm::Function* function =
      llvm::Function::Create(type, llvm::Function::InternalLinkage, symbolOf(kernel, key), module_);
  function->addParamAttr(0, llvm::Attribute::ReadOnly);
  function->addParamAttr(1, llvm::Attribute::ReadOnly);
  target_.prepareFunction(*function);
  KernelBody body(*function, kernel, target_.shape());
  if (debug_ != nullptr) {
    debug_->begin(*function, source.name, source.range);
    body.ir().SetCurrentDebugLocation(debug_->at(source.range));
    if (source.places) body.setPlaces([&](std::int64_t op) { return debug_->at(source.places(op)); });
  }
  switch (kernel.kind) {
    case KernelKind::Map:
      emitMapKernel(body);
      break;
    case KernelKind::Reduce:
      emitReduceKernel(body);
      break;
    case KernelKind::ArgReduce:
      emitArgReduceKernel(body);
      break;
    case KernelKind::Scan:
      emitScanKernel(body);
      break;
    case KernelKind::Sort:
      emitSortKernel(body);
      break;
    case KernelKind::Route:
      emitRouteKernel(body);
      break;
    case KernelKind::Scatter:
      emitScatterKernel(body);
      break;
    case KernelKind::WindowWrite:
      emitWindowWriteKernel(body);
      break;
    case KernelKind::Random:
      emitRandomKernel(body);
      break;
  }
  body.ir().CreateRetVoid();
  ++count_;
  functions_[key] = function;
  return function;
}

}  // namespace gshard
