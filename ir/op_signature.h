// What pure questions about an op depend on, as bytes: kind, attributes, types and, where asked for, shardings. Two ops
// of equal signature have equal factors, verify alike and are partitioned alike, so a model of many equal layers asks
// each question once. Source ranges, names and phases are left out.
#pragma once

#include <string>
#include <unordered_map>

#include "ir/module.h"

namespace gshard {

inline void appendNumber(std::string& key, std::int64_t number) {
  if (number >= 0 && number < 255) {
    key.push_back(static_cast<char>(number));
    return;
  }
  key.push_back(static_cast<char>(255));
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void appendAxes(std::string& key, std::span<const AxisRef> axes);
void appendSharding(std::string& key, const Sharding& sharding);

// Numbers of values by what a signature says of them: dtype, shape, row dim, the number of a scalar constant (what a
// `pad` pads with decides what may be pending in it) and, where asked for, the sharding. Shared by all functions whose
// signatures are compared.
class ValueNumbers {
 public:
  explicit ValueNumbers(bool sharded) : sharded_(sharded) {}
  std::int64_t of(const Value& value, const Attribute* constant);

 private:
  bool sharded_;
  std::string key_;
  std::unordered_map<std::string, std::int64_t> numbers_;
};

// Signatures of a function's ops. The function is not changed meanwhile.
class OpSignatures {
 public:
  OpSignatures(const Function& function, ValueNumbers& numbers);
  void append(std::string& key, const Op& op);
  std::int64_t number(ValueId value);

 private:
  const Function& function_;
  ValueNumbers& numbers_;
  std::vector<const Attribute*> constants_;  // by value; null: no scalar constant
  std::vector<std::int64_t> known_;  // by value; -1: not asked for yet, since many values of a function are dead
};

}  // namespace gshard
