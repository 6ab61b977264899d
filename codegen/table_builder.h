// Constant tables in an LLVM module: structs whose fields are all 64 bits wide (integers, doubles, pointers), as
// runtime/abi.h declares them, with equal strings and arrays kept once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

namespace gshard {

class TableBuilder {
 public:
  using Fields = std::vector<llvm::Constant*>;

  explicit TableBuilder(llvm::Module& module) : module_(module) {}

  llvm::Constant* integer(std::int64_t value);
  llvm::Constant* real(double value);
  llvm::Constant* null();
  llvm::Constant* text(const std::string& value);                     // address of a NUL-terminated string
  llvm::Constant* integers(const std::vector<std::int64_t>& values);  // address of an array; null if empty
  llvm::Constant* record(const Fields& fields);                       // a struct, by value
  llvm::Constant* array(const std::vector<llvm::Constant*>& records,
                        const std::string& name);                           // address; null if empty
  llvm::Constant* address(llvm::Constant* value, const std::string& name);  // of a private constant that holds it
  void define(const std::string& symbol, llvm::Constant* value);            // an external constant

 private:
  llvm::GlobalVariable* global(llvm::Constant* value, const std::string& name);

  llvm::Module& module_;
  std::int64_t globals_ = 0;
  std::map<std::string, llvm::Constant*> texts_;
  std::map<std::vector<std::int64_t>, llvm::Constant*> integers_;
};

}  // namespace gshard
