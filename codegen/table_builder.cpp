// Constants of program tables: see table_builder.h.
#include "codegen/table_builder.h"

namespace gshard {

llvm::Constant* TableBuilder::integer(std::int64_t value) {
  return llvm::ConstantInt::get(llvm::Type::getInt64Ty(module_.getContext()), static_cast<std::uint64_t>(value), true);
}

llvm::Constant* TableBuilder::real(double value) { return llvm::ConstantFP::get(llvm::Type::getDoubleTy(module_.getContext()), value); }

llvm::Constant* TableBuilder::null() { return llvm::ConstantPointerNull::get(llvm::PointerType::get(module_.getContext(), 0)); }

llvm::Constant* TableBuilder::address(llvm::Constant* value, const std::string& name) {
  auto* global = new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, name);
  global->setAlignment(llvm::Align(8));
  return global;
}

llvm::Constant* TableBuilder::text(const std::string& value) {
  llvm::Constant*& known = texts_[value];
  if (known == nullptr) {
    llvm::Constant* data = llvm::ConstantDataArray::getString(module_.getContext(), value, true);
    auto* global = new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "text");
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    known = global;
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

llvm::Constant* TableBuilder::record(const Fields& fields) { return llvm::ConstantStruct::getAnon(module_.getContext(), fields); }

llvm::Constant* TableBuilder::array(const std::vector<llvm::Constant*>& records, const std::string& name) {
  if (records.empty()) return null();
  return address(llvm::ConstantArray::get(llvm::ArrayType::get(records[0]->getType(), records.size()), records), name);
}

void TableBuilder::define(const std::string& symbol, llvm::Constant* value) {
  auto* global = new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::ExternalLinkage, value, symbol);
  global->setAlignment(llvm::Align(8));
}

}  // namespace gshard
