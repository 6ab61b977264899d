// Images of program tables: see table_builder.h.
#include "codegen/table_builder.h"

#include <algorithm>
#include <bit>

#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include "runtime/abi.h"
#include "support/check.h"

namespace gshard {
namespace {

constexpr std::uint64_t kWordBytes = 8;

// A constant of the module; without a value, one that another module defines.
llvm::GlobalVariable* constantIn(llvm::Module& module, const std::string& name, llvm::Type* type, llvm::Constant* value,
                                 llvm::GlobalValue::LinkageTypes linkage) {
  auto* made = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(name, type));
  made->setInitializer(value);
  made->setConstant(true);
  made->setLinkage(linkage);
  made->setAlignment(llvm::Align(kWordBytes));
  return made;
}

llvm::GlobalVariable* defineBytes(llvm::Module& module, const std::string& name, std::string_view bytes) {
  llvm::Constant* value = llvm::ConstantDataArray::getString(module.getContext(), bytes, /*AddNull=*/false);
  return constantIn(module, name, value->getType(), value, llvm::GlobalValue::PrivateLinkage);
}

// What `module` calls a symbol that another module defines.
llvm::Constant* declareIn(llvm::Module& module, llvm::GlobalValue& symbol) {
  if (symbol.getParent() == &module) return &symbol;
  symbol.setLinkage(llvm::GlobalValue::ExternalLinkage);
  symbol.setVisibility(llvm::GlobalValue::HiddenVisibility);
  llvm::GlobalValue* declared = nullptr;
  if (auto* function = llvm::dyn_cast<llvm::Function>(&symbol)) {
    declared = llvm::Function::Create(function->getFunctionType(), symbol.getLinkage(), symbol.getName(), module);
  } else {
    declared = constantIn(module, symbol.getName().str(), symbol.getValueType(), nullptr, symbol.getLinkage());
  }
  declared->setVisibility(symbol.getVisibility());
  return declared;
}

// Both machines that we compile for are little-endian (llvm_target.cpp), and so is this one.
static_assert(std::endian::native == std::endian::little);

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

TableBuilder::TableBuilder(llvm::Module& module) : module_(module), words_(sizeof(gshard_rt_program) / kWordBytes) {}

TableWord TableBuilder::real(double value) {
  return {TableWord::Kind::Number, std::bit_cast<std::uint64_t>(value)};
}

TableWord TableBuilder::text(std::string_view value) {
  const auto [known, isNew] = texts_.try_emplace(std::string(value), characters_.size());
  if (isNew) {
    characters_ += value;
    characters_ += '\0';
  }
  return {TableWord::Kind::Text, known->second};
}

TableWord TableBuilder::integers(const std::vector<std::int64_t>& values) {
  if (values.empty()) return {};
  const auto [known, isNew] = integers_.try_emplace(values, words_.size() * kWordBytes);
  if (isNew) words_.insert(words_.end(), values.begin(), values.end());
  return {TableWord::Kind::Record, known->second};
}

TableWord TableBuilder::place(const TableRows& rows, std::size_t recordBytes) {
  GSHARD_CHECK(rows.words().size() * kWordBytes == static_cast<std::size_t>(rows.count()) * recordBytes,
               "fields of a struct of runtime/abi.h were forgotten");
  if (rows.count() == 0) return {};
  const std::uint64_t begin = words_.size() * kWordBytes;
  words_.insert(words_.end(), rows.words().begin(), rows.words().end());
  return {TableWord::Kind::Record, begin};
}

TableWord TableBuilder::symbol(llvm::GlobalValue& symbol) {
  const auto [known, isNew] = symbolNumbers_.try_emplace(&symbol, symbols_.size());
  if (isNew) symbols_.push_back(&symbol);
  return {TableWord::Kind::Symbol, known->second};
}

void TableBuilder::define(const std::string& symbol, const TableRows& program) {
  GSHARD_CHECK(program.words().size() * kWordBytes == sizeof(gshard_rt_program),
               "fields of the program were forgotten");
  std::copy(program.words().begin(), program.words().end(), words_.begin());
  const std::uint64_t textsBegin = words_.size() * kWordBytes;
  GSHARD_CHECK(words_.size() <= UINT32_MAX, "tables of a program fill 32 GiB");
  std::string bytes, addresses, symbolUses;  // the last two: numbers of words
  bytes.reserve(textsBegin + characters_.size());
  std::int64_t addressCount = 0, symbolUseCount = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const TableWord& word = words_[i];
    append(bytes, word.value + (word.kind == TableWord::Kind::Text ? textsBegin : 0));
    if (word.kind == TableWord::Kind::Number) continue;
    const bool isSymbol = word.kind == TableWord::Kind::Symbol;
    append(isSymbol ? symbolUses : addresses, static_cast<std::uint32_t>(i));
    ++(isSymbol ? symbolUseCount : addressCount);
  }
  bytes += characters_;

  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  auto* symbolsType = llvm::ArrayType::get(pointer, symbols_.size());
  std::vector<llvm::Constant*> symbols;
  for (llvm::GlobalValue* each : symbols_) symbols.push_back(declareIn(module_, *each));
  llvm::GlobalVariable* symbolTable =
      constantIn(module_, symbol + ".symbols", symbolsType, llvm::ConstantArray::get(symbolsType, symbols),
                 llvm::GlobalValue::PrivateLinkage);
  const auto number = [&](std::uint64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), value);
  };
  // gshard_rt_image, field by field.
  llvm::Constant* image = llvm::ConstantStruct::getAnon(
      context,
      {number(GSHARD_RT_ABI), number(bytes.size()), defineBytes(module_, symbol + ".bytes", bytes),
       number(static_cast<std::uint64_t>(addressCount)), defineBytes(module_, symbol + ".addresses", addresses),
       number(static_cast<std::uint64_t>(symbolUseCount)), defineBytes(module_, symbol + ".symbol_uses", symbolUses),
       number(symbols_.size()), symbolTable});
  constantIn(module_, symbol, image->getType(), image, llvm::GlobalValue::ExternalLinkage);
}

}  // namespace gshard
