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

llvm::GlobalVariable* TableBuilder::global(llvm::Constant* value, const std::string& name) {
  const std::string unique = name + "." + std::to_string(globals_++);
  auto* made = llvm::cast<llvm::GlobalVariable>(module_.getOrInsertGlobal(unique, value->getType()));
  made->setInitializer(value);
  made->setConstant(true);
  made->setLinkage(llvm::GlobalValue::PrivateLinkage);
  return made;
}

llvm::Constant* TableBuilder::address(llvm::Constant* value, const std::string& name) {
  llvm::GlobalVariable* made = global(value, name);
  made->setAlignment(llvm::Align(8));
  return made;
}

llvm::Constant* TableBuilder::text(const std::string& value) {
  llvm::Constant*& known = texts_[value];
  if (known == nullptr) {
    llvm::GlobalVariable* made = global(llvm::ConstantDataArray::getString(module_.getContext(), value, true), "text");
    made->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    known = made;
  }
  return known;
}

llvm::Constant* TableBuilder::integers(const std::vector<std::int64_t>& values) {
  if (values.empty()) return null();
  llvm::Constant*& known = integers_[values];
  if (known == nullptr) {
    std::vector<std::uint64_t> raw(values.begin(), values.end());
    known = address(llvm::ConstantDataArray::get(module_.getContext(), raw), "numbers");
  }
  return known;
}

llvm::Constant* TableBuilder::record(const Fields& fields) {
  return llvm::ConstantStruct::getAnon(module_.getContext(), fields);
}

llvm::Constant* TableBuilder::array(const std::vector<llvm::Constant*>& records, const std::string& name) {
  if (records.empty()) return null();
  return address(llvm::ConstantArray::get(llvm::ArrayType::get(records[0]->getType(), records.size()), records), name);
}

void TableBuilder::define(const std::string& symbol, llvm::Constant* value) {
  auto* made = llvm::cast<llvm::GlobalVariable>(module_.getOrInsertGlobal(symbol, value->getType()));
  made->setInitializer(value);
  made->setConstant(true);
  made->setAlignment(llvm::Align(8));
}

}  // namespace gshard
