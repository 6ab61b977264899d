// LLVM's ORC linker around one object; apart from llvm_target.cpp because the compiler itself never needs it.
#include "codegen/loaded_object.h"

#include <utility>

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

namespace gshard {

struct LoadedObject::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

LoadedObject::LoadedObject() : impl_(std::make_unique<Impl>()) {}
LoadedObject::~LoadedObject() = default;

std::unique_ptr<LoadedObject> LoadedObject::load(const std::string& objectBytes, std::string& error) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  const auto fail = [&error](llvm::Error fault) {
    error = llvm::toString(std::move(fault));
    return nullptr;
  };
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return fail(jit.takeError());
  auto process =
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process) return fail(process.takeError());
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  if (llvm::Error fault = (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(objectBytes, "object"))) {
    return fail(std::move(fault));
  }
  std::unique_ptr<LoadedObject> loaded(new LoadedObject());
  loaded->impl_->jit = std::move(*jit);
  return loaded;
}

void* LoadedObject::address(const std::string& symbol) const {
  auto found = impl_->jit->lookup(symbol);
  if (!found) {
    llvm::consumeError(found.takeError());
    return nullptr;
  }
  return found->toPtr<void*>();
}

}  // namespace gshard
