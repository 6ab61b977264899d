// The image of a program's tables (gshard_rt_image in runtime/abi.h): records whose fields are all 64 bits wide, one
// after another, texts behind them, and which fields become addresses when the program is loaded. Equal texts and
// arrays of numbers lie there once. LLVM sees a string of bytes: a deep model has tens of thousands of records, and as
// constants of LLVM, with a relocation for each address, they would cost more than all kernels.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llvm {
class GlobalValue;
class Module;
}  // namespace llvm

namespace gshard {

// One field. Of an address `value` is where it leads: a byte among the records or among the texts, the number of a
// symbol.
struct TableWord {
  enum class Kind : std::uint8_t { Number, Record, Text, Symbol };

  TableWord() = default;
  TableWord(std::int64_t number) : value(static_cast<std::uint64_t>(number)) {}
  TableWord(Kind theKind, std::uint64_t theValue) : kind(theKind), value(theValue) {}

  Kind kind = Kind::Number;
  std::uint64_t value = 0;
};

// Records of one type that are to lie one after another. A record in a record is its fields.
class TableRows {
 public:
  template <class... Fields>
  void add(const Fields&... fields) {
    ++count_;
    extend(fields...);
  }
  // More fields of the last record.
  template <class... Fields>
  void extend(const Fields&... fields) {
    (append(fields), ...);
  }
  std::int64_t count() const { return count_; }
  const std::vector<TableWord>& words() const { return words_; }
  void clear() {
    words_.clear();
    count_ = 0;
  }

 private:
  void append(const TableWord& word) { words_.push_back(word); }
  template <std::size_t size>
  void append(const std::array<TableWord, size>& record) {
    words_.insert(words_.end(), record.begin(), record.end());
  }

  std::vector<TableWord> words_;
  std::int64_t count_ = 0;
};

class TableBuilder {
 public:
  // The image is defined in `module`. Symbols may be of another module of the same context, and are then made visible
  // to the linker under their names.
  explicit TableBuilder(llvm::Module& module);

  TableWord real(double value);
  TableWord text(std::string_view value);                       // address of a NUL-terminated string
  TableWord integers(const std::vector<std::int64_t>& values);  // address of an array; null if empty
  TableWord symbol(llvm::GlobalValue& symbol);                  // address of a kernel, of a product's descriptor
  // Address of the first of records of a struct of abi.h; null if there is none.
  template <class Record>
  TableWord place(const TableRows& rows) {
    return place(rows, sizeof(Record));
  }
  // Once, last: the constant that holds all, with the one gshard_rt_program.
  void define(const std::string& symbol, const TableRows& program);

 private:
  TableWord place(const TableRows& rows, std::size_t recordBytes);

  llvm::Module& module_;
  std::vector<TableWord> words_;
  std::string characters_;
  std::vector<llvm::GlobalValue*> symbols_;
  // Looked up only.
  std::unordered_map<std::string, std::uint64_t> texts_;
  std::map<std::vector<std::int64_t>, std::uint64_t> integers_;
  std::unordered_map<const llvm::GlobalValue*, std::uint64_t> symbolNumbers_;
};

}  // namespace gshard
