// Constants of program tables: see table_builder.h.
#include "codegen/table_builder.h"

namespace gshard {

llvm::Constant* TableBuilder::integer(std::int64_t value) {
  return llvm::ConstantInt::get(llvm::Type::getInt64Ty(module_.getContext()), static_cast<std::uint64_t>(value), true);
}

llvm::Constant* TableBuilder::real(double value) {
  return llvm::ConstantFP::get(llvm::Type::getDoubleTy(module_.getContext()), value);
}

llvm::Constant* TableBuilder::null() {
  return llvm::ConstantPointerNull::get(llvm::PointerType::get(module_.getContext(), 0));
}

llvm::GlobalVariable* TableBuilder::declare(llvm::Type* type, const std::string& name) {
  auto* made = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage, nullptr,
                                        name + "." + std::to_string(globals_++));
  made->setAlignment(llvm::Align(8));
  return made;
}

llvm::Constant* TableBuilder::at(llvm::GlobalVariable* global, llvm::Type* item, std::size_t index) {
  llvm::Constant* number = llvm::ConstantInt::get(llvm::Type::getInt64Ty(module_.getContext()), index);
  return llvm::ConstantExpr::getInBoundsGetElementPtr(item, global, number);
}

void TableBuilder::close(Chunk<std::uint64_t>& chunk) {
  if (chunk.global == nullptr) return;
  chunk.items.resize(llvm::cast<llvm::ArrayType>(chunk.global->getValueType())->getNumElements());
  chunk.global->setInitializer(llvm::ConstantDataArray::get(module_.getContext(), chunk.items));
}

void TableBuilder::close(Chunk<char>& chunk) {
  if (chunk.global == nullptr) return;
  chunk.items.resize(llvm::cast<llvm::ArrayType>(chunk.global->getValueType())->getNumElements());
  const llvm::StringRef text(chunk.items.data(), chunk.items.size());
  chunk.global->setInitializer(llvm::ConstantDataArray::getString(module_.getContext(), text, /*AddNull=*/false));
}

void TableBuilder::close(Chunk<llvm::Constant*>& chunk) {
  if (chunk.global == nullptr) return;
  auto* type = llvm::cast<llvm::ArrayType>(chunk.global->getValueType());
  chunk.items.resize(type->getNumElements(), llvm::Constant::getNullValue(type->getElementType()));
  chunk.global->setInitializer(llvm::ConstantArray::get(type, chunk.items));
}

template <class Item>
llvm::Constant* TableBuilder::append(Chunk<Item>& chunk, llvm::Type* item, std::size_t size, const std::string& name,
                                     const std::vector<Item>& added) {
  if (added.size() > size) {  // one of its own
    Chunk<Item> own{declare(llvm::ArrayType::get(item, added.size()), name), added};
    close(own);
    return own.global;
  }
  if (chunk.global == nullptr || chunk.items.size() + added.size() > size) {
    close(chunk);
    chunk = {declare(llvm::ArrayType::get(item, size), name), {}};
  }
  const std::size_t index = chunk.items.size();
  chunk.items.insert(chunk.items.end(), added.begin(), added.end());
  return at(chunk.global, item, index);
}

llvm::Constant* TableBuilder::address(llvm::Constant* record, const std::string& name) {
  return append(records_[record->getType()], record->getType(), kChunkRecords, name,
                std::vector<llvm::Constant*>{record});
}

llvm::Constant* TableBuilder::text(const std::string& value) {
  llvm::Constant*& known = texts_[value];
  if (known == nullptr) {
    std::vector<char> characters(value.begin(), value.end());
    characters.push_back('\0');
    known = append(characters_, llvm::Type::getInt8Ty(module_.getContext()), kChunkText, "text", characters);
  }
  return known;
}

llvm::Constant* TableBuilder::integers(const std::vector<std::int64_t>& values) {
  if (values.empty()) return null();
  llvm::Constant*& known = integers_[values];
  if (known == nullptr) {
    known = append(numbers_, llvm::Type::getInt64Ty(module_.getContext()), kChunkNumbers, "numbers",
                   std::vector<std::uint64_t>(values.begin(), values.end()));
  }
  return known;
}

void TableBuilder::finish() {
  close(numbers_);
  close(characters_);
  for (auto& [type, chunk] : records_) close(chunk);
}

llvm::Constant* TableBuilder::record(const Fields& fields) {
  return llvm::ConstantStruct::getAnon(module_.getContext(), fields);
}

llvm::Constant* TableBuilder::array(const std::vector<llvm::Constant*>& records, const std::string& name) {
  if (records.empty()) return null();
  llvm::Type* type = records[0]->getType();
  return append(records_[type], type, kChunkRecords, name, records);
}

void TableBuilder::define(const std::string& symbol, llvm::Constant* value) {
  auto* made = llvm::cast<llvm::GlobalVariable>(module_.getOrInsertGlobal(symbol, value->getType()));
  made->setInitializer(value);
  made->setConstant(true);
  made->setAlignment(llvm::Align(8));
}

}  // namespace gshard
