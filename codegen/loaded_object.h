// An object file loaded into this process, so that tests and benchmarks run generated code without a linker.
#pragma once
#include <memory>
#include <string>

namespace gshard {

class LoadedObject {
 public:
  // Null with a reason in `error`. Symbols that the object lacks are looked up in this process.
  static std::unique_ptr<LoadedObject> load(const std::string& objectBytes, std::string& error);
  ~LoadedObject();
  // Address of an external symbol, or null.
  void* address(const std::string& symbol) const;

 private:
  struct Impl;
  LoadedObject();
  std::unique_ptr<Impl> impl_;
};

}  // namespace gshard
