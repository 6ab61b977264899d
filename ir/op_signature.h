// What pure questions about an op depend on, as a key: kind, attributes, types and, where asked for, shardings. Two ops
// of equal signature have equal factors, verify alike and are partitioned alike, so a model of many equal layers asks
// each question once. Source ranges, names and phases are left out.
#pragma once

#include "ir/key_numbers.h"
#include "ir/module.h"

namespace gshard {

void addAxes(Key& key, std::span<const AxisRef> axes);
void addSharding(Key& key, const Sharding& sharding);

// Numbers of values by what a signature says of them: dtype, shape, row dim, the number of a scalar constant (what a
// `pad` pads with decides what may be pending in it) and, where asked for, the sharding. Shared by all functions whose
// signatures are compared.
class ValueNumbers {
 public:
  explicit ValueNumbers(bool sharded) : sharded_(sharded) {}
  std::size_t of(const Value& value, const Attribute* constant);
  void addAttributes(Key& key, const Op& op);  // their number is the caller's to add
  std::size_t count() const { return numbers_.count(); }

 private:
  // What values looked like that hashes to the same place, and their number: most values are like one before.
  struct Seen {
    Type type;
    std::int64_t rowDim = -1;
    std::optional<Sharding> sharding;
    std::size_t number = SIZE_MAX;
  };
  std::uint64_t hashOf(const Value& value) const;
  std::size_t numberOf(const Value& value, const Attribute* constant);

  bool sharded_;
  std::vector<Seen> seen_ = std::vector<Seen>(256);
  std::int64_t tables_ = 0;  // long literals so far, none of which is equal to another
  Key key_;
  KeyNumbers numbers_;
};

// Signatures of a function's ops. The function is not changed meanwhile.
class OpSignatures {
 public:
  OpSignatures(const Function& function, ValueNumbers& numbers);
  void add(Key& key, const Op& op);
  std::size_t number(ValueId value);

 private:
  static constexpr std::size_t kUnasked = SIZE_MAX;

  const Function& function_;
  ValueNumbers& numbers_;
  std::vector<const Attribute*> constants_;  // by value; null: no scalar constant
  std::vector<std::size_t> known_;           // by value; kUnasked at first, since many values of a function are dead
};

}  // namespace gshard
