// Emitting a module in pieces at once. Apart from llvm_target.cpp, which knows one machine and one module.
#include <thread>

#include "codegen/llvm_target.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/SplitModule.h"
#include "support/check.h"

namespace gshard {

namespace {

// What one thread does; an exception of its own is handed over, since it cannot leave the thread.
void emitPiece(const TargetRequest& request, const llvm::SmallVector<char, 0>& bitcode, std::string& object,
               std::exception_ptr& fault) {
  try {
    std::string error;
    const std::unique_ptr<Target> target = Target::create(request, error);
    GSHARD_CHECK(target != nullptr, "the target was there a moment ago: " + error);
    llvm::LLVMContext context;
    llvm::Expected<std::unique_ptr<llvm::Module>> piece = llvm::parseBitcodeFile(
        llvm::MemoryBufferRef(llvm::StringRef(bitcode.data(), bitcode.size()), "piece"), context);
    GSHARD_CHECK(static_cast<bool>(piece), "a piece of the module cannot be read back");
    target->optimize(**piece);
    object = target->emitObject(**piece);
  } catch (...) {
    fault = std::current_exception();
  }
}

}  // namespace

std::vector<std::string> emitObjectsInParallel(const TargetRequest& request, llvm::Module& module, unsigned parts,
                                               const std::function<void()>& meanwhile) {
  std::vector<llvm::SmallVector<char, 0>> pieces;
  llvm::SplitModule(
      module, parts,
      [&](std::unique_ptr<llvm::Module> piece) {
        llvm::raw_svector_ostream stream(pieces.emplace_back());
        llvm::WriteBitcodeToFile(*piece, stream);
      },
      /*PreserveLocals=*/false);
  std::vector<std::string> objects(pieces.size());
  std::vector<std::exception_ptr> faults(pieces.size() + 1);
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    threads.emplace_back([&, i] { emitPiece(request, pieces[i], objects[i], faults[i]); });
  }
  try {
    meanwhile();
  } catch (...) {
    faults.back() = std::current_exception();
  }
  if (!pieces.empty()) emitPiece(request, pieces[0], objects[0], faults[0]);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
  return objects;
}

}  // namespace gshard
