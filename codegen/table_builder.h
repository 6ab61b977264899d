// Constant tables in an LLVM module: structs whose fields are all 64 bits wide (integers, doubles, pointers), as
// runtime/abi.h declares them, with equal strings and arrays kept once. Texts, numbers and records lie many to a
// global: a deep model has tens of thousands of them, and LLVM's cost is by globals.
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
                        const std::string& name);                            // address; null if empty
  llvm::Constant* address(llvm::Constant* record, const std::string& name);  // of a private constant that holds it
  void define(const std::string& symbol, llvm::Constant* value);             // an external constant
  void finish();                                                             // once, after the last call of the others

 private:
  // A private global of a fixed size that is filled from its begin.
  template <class Item>
  struct Chunk {
    llvm::GlobalVariable* global = nullptr;
    std::vector<Item> items;
  };
  static constexpr std::size_t kChunkRecords = 64, kChunkNumbers = 1024, kChunkText = 4096;

  llvm::GlobalVariable* declare(llvm::Type* type, const std::string& name);
  llvm::Constant* at(llvm::GlobalVariable* global, llvm::Type* item, std::size_t index);
  // `count` items at the end of the chunk, or of a new one of `size`.
  template <class Item>
  llvm::Constant* append(Chunk<Item>& chunk, llvm::Type* item, std::size_t size, const std::string& name,
                         const std::vector<Item>& added);
  void close(Chunk<std::uint64_t>& chunk);
  void close(Chunk<char>& chunk);
  void close(Chunk<llvm::Constant*>& chunk);

  llvm::Module& module_;
  Chunk<std::uint64_t> numbers_;
  Chunk<char> characters_;
  std::map<llvm::Type*, Chunk<llvm::Constant*>> records_;  // by type; only looked up
  std::int64_t globals_ = 0;
  std::map<std::string, llvm::Constant*> texts_;
  std::map<std::vector<std::int64_t>, llvm::Constant*> integers_;
};

}  // namespace gshard
